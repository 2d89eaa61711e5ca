"""Any Program as a gufunc: the native target without a mechanism."""

from __future__ import annotations

import ctypes

import numpy as np

from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.compiler.runtime.gufunc import core_signature, register
from kinetree.compiler.targets import target
from kinetree.compiler.targets.protocol import Loaded


def gufunc(program: Program, dtype: str = "float64") -> np.ufunc:
    """Compile a Program and register it."""
    return registered(compiled(program, dtype), program, dtype)


def compiled(program: Program, dtype: str = "float64") -> Loaded:
    """Return the code of a Program in memory, without the cache."""
    native = target()
    return native.load(native.build(native.emit(program, dtype)))


def registered(loaded: Loaded, program: Program, dtype: str = "float64") -> np.ufunc:
    """Register the loaded code of a Program."""
    signature = core_signature(program.inputs, program.outputs)
    arity = (len(program.inputs), len(program.outputs))
    return register(loaded.find("kernel"), (ctypes.c_int64 * 2)(), program.name, "", signature, arity, dtype, loaded)


def traced(function, count: int = 1) -> Program:
    """Return the Program of a function of `count` scalars that returns a list of scalars."""
    trace = Trace()
    results = function(*(trace.input(0, k) for k in range(count)))
    inputs, outputs = (Array("x", (count,)),), (Array("y", (len(results),)),)
    return Program.of_trace("function", inputs, outputs, trace, [results])
