"""Any Program, and any kernel of the lane language, as a gufunc, found again in the cache by its own hash."""

from __future__ import annotations

import ctypes

import numpy as np

from ..ir.program import Program
from ..lanes.form import Kernel
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


def native_kernel(kernel: Kernel, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a kernel."""
    from ..targets.llvm import machine as llvm
    from ..targets.llvm.lane_kernel import emit_lanes

    name = cache.digest(kernel.hash, dtype, llvm.fingerprint())
    llvm.add_memory_functions()
    loaded = llvm.Loaded(cache.fetch(name, lambda: llvm.compile_assembly(emit_lanes(kernel, dtype))))
    signature = kernel.signature
    return register(
        loaded.address, (ctypes.c_int64 * 2)(), kernel.name, signature, signature, kernel.arity, dtype, loaded
    )
