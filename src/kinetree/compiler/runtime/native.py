"""Native code as gufuncs: compiled or read from the cache, loaded into memory, and registered with NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from ..ir.program import Program
from ..lanes.form import Kernel
from ..targets import target
from ..targets.protocol import Loaded, Unit
from . import cache
from .gufunc import core_signature, register


def loaded(name: str, unit: Callable[[], Unit], dtype: str) -> Loaded:
    """Return the code that the cache holds under a name; `unit` is called only if there is none."""
    chosen = target()
    return chosen.load(cache.fetch(name, lambda: chosen.build(chosen.emit(unit(), dtype))))


def loaded_text(unit: Unit, dtype: str) -> Loaded:
    """Return the code of a unit, which the cache holds under the hash of the unit's source text."""
    chosen = target()
    source = chosen.emit(unit, dtype)
    return chosen.load(cache.fetch(cache.digest(source, chosen.fingerprint()), lambda: chosen.build(source)))


def native(program: Program, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a Program, each of whose inputs and outputs has at least one entry."""
    signature = core_signature(program.inputs, program.outputs)
    return _registered(program, signature, (len(program.inputs), len(program.outputs)), dtype)


def native_kernel(kernel: Kernel, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a kernel of the lane language."""
    return _registered(kernel, kernel.signature, kernel.arity, dtype)


def _registered(unit: Program | Kernel, signature: str, arity: tuple[int, int], dtype: str) -> np.ufunc:
    code = loaded(cache.digest(unit.hash, dtype, target().fingerprint()), lambda: unit, dtype)
    counter = (ctypes.c_int64 * 2)()
    return register(code.find("kernel"), counter, unit.name, signature, signature, arity, dtype, code)
