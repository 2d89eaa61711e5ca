"""Any Program, and any kernel of the lane language, as a gufunc, found again in the cache by its own hash."""

from __future__ import annotations

import ctypes

import numpy as np

from ..ir.program import Program
from ..lanes.form import Kernel
from ..targets import target
from . import cache
from .gufunc import core_signature, register
from .loaded import loaded


def native(program: Program, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a Program; all its inputs and outputs have entries."""
    signature = core_signature(program.inputs, program.outputs)
    return _registered(program, signature, (len(program.inputs), len(program.outputs)), dtype)


def native_kernel(kernel: Kernel, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a kernel."""
    return _registered(kernel, kernel.signature, kernel.arity, dtype)


def _registered(unit: Program | Kernel, signature: str, arity: tuple[int, int], dtype: str) -> np.ufunc:
    code = loaded(cache.digest(unit.hash, dtype, target().fingerprint()), lambda: unit, dtype)
    counter = (ctypes.c_int64 * 2)()
    return register(code.find("kernel"), counter, unit.name, signature, signature, arity, dtype, code)
