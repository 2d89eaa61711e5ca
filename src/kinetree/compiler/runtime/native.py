"""Any Program as a gufunc, found again in the cache by its own hash."""

from __future__ import annotations

import ctypes

import numpy as np

from ..ir.program import Program
from . import cache
from .gufunc import core_signature, register


def native(program: Program, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a Program; all its inputs and outputs have entries."""
    from ..targets.llvm import machine as llvm

    name = cache.digest(program.hash, dtype, llvm.fingerprint())
    loaded = llvm.Loaded(cache.fetch(name, lambda: llvm.compile_object(program, dtype)))
    signature = core_signature(program.inputs, program.outputs)
    arity = (len(program.inputs), len(program.outputs))
    return register(loaded.address, (ctypes.c_int64 * 2)(), program.name, signature, signature, arity, dtype, loaded)
