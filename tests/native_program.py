"""Any Program as a gufunc: the native target without a mechanism."""

from __future__ import annotations

import ctypes

import numpy as np

from kinetree.algebra.scalars import where
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.form import Kernel, Kind
from kinetree.runtime.native import core_signature, register
from kinetree.targets import Loaded, Unit, target


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


def sorting() -> Kernel:
    """Return a kernel whose lanes read and write at indices of their own: positive numbers first, then the others."""
    k = Builder("sorting", {})
    x, out = k.array("x", 5), k.array("out", 11, output=True)
    given, sorted_, place = k.block("given", 5), k.block("sorted", 12), k.block("place", 5, Kind.INDEX)
    positive, first = k.block("positive", 6, Kind.MASK), k.block("first", kind=Kind.INDEX)
    with k.each_lane(), k.loop(5) as j:
        given[j] = x[j]
    with k.loop(12) as j:
        sorted_[j] = 0.0
    with k.loop(6) as j:
        positive[j] = False
    first.value = 0
    for wanted in (True, False):
        with k.loop(5) as j:
            here = given[j] > 0.0 if wanted else ~(given[j] > 0.0)
            place[j] = here.where(first.value, 5)  # the sixth entry takes what belongs elsewhere
            sorted_[place[j]] = given[j] * 10.0
            positive[place[j]] = here & (given[j] > 0.0)
            first.value = here.where(first.value + 1, first.value)
    with k.loop(5) as j:
        turned = place[j] + 6
        sorted_[turned] = positive[place[j]].where(sorted_[place[j]], -1.0)
    with k.each_lane(), k.loop(11) as j:
        out[j] = (j.equals(5)).where(0.0, sorted_[j])
    return k.kernel()


def sorted_numbers(count: int) -> np.ndarray:
    """Return numbers of which some are positive, in each of a number of runs."""
    return np.random.default_rng(9).normal(size=(count, 5))
