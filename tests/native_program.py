"""Any Program as a gufunc: the native target without a mechanism."""

from __future__ import annotations

import ctypes

import numpy as np

from kinetree.algebra.scalars import where
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.compiler.runtime.gufunc import core_signature, register
from kinetree.compiler.targets import target
from kinetree.compiler.targets.protocol import Loaded, Unit


def gufunc(program: Program, dtype: str = "float64") -> np.ufunc:
    """Compile a Program and register it."""
    return registered(compiled(program, dtype), program, dtype)


def compiled(unit: Unit, dtype: str = "float64") -> Loaded:
    """Return the code of a Program, or of another unit, in memory, without the cache."""
    native = target()
    return native.load(native.build(native.emit(unit, dtype)))


def registered(loaded: Loaded, program: Program, dtype: str = "float64", counts=None) -> np.ufunc:
    """Register the loaded code of a Program, with its two counts of blocks with numbers that are not finite."""
    counts = counts or (ctypes.c_int64 * 2)()
    signature = core_signature(program.inputs, program.outputs)
    arity = (len(program.inputs), len(program.outputs))
    return register(loaded.find("kernel"), counts, program.name, "", signature, arity, dtype, loaded)


def traced(function, count: int = 1, shape: tuple[int, ...] | None = None) -> Program:
    """Return the Program of a function of `count` scalars that returns a list of scalars, the entries of a shape."""
    trace = Trace()
    results = function(*(trace.input(0, k) for k in range(count)))
    inputs, outputs = (Array("x", (count,)),), (Array("y", shape or (len(results),)),)
    return Program.of_trace("function", inputs, outputs, trace, [results])


def tree(u, thresholds, leaves):
    """Return the leaf of u, by halving."""
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    left = tree(u, thresholds[: half - 1], leaves[:half])
    return where(u < thresholds[half - 1], left, tree(u, thresholds[half:], leaves[half:]))
