"""C source of kernels of the lane language, one run per call, against the native integrators."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import called, library, needs_compiler
from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.form import Kind
from kinetree.compiler.lanes.interpret import interpret
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
from kinetree.targets.c import source
from native_program import sorted_numbers, sorting, traced
from strategies import State
from tolerance import assert_close

EPS = float(np.finfo(float).eps)
TIMES = np.array([0.0, 0.004, 0.013])


def in_c(folder, kernel, arguments, dtype="float64", extent=()):
    """Return the outputs of a kernel in C for arguments [count, *shape]."""
    path = folder / f"{kernel.name}.c"
    path.write_text(source(kernel, dtype))
    shapes = [tuple(len(TIMES) if n == "t" else n for n in a.shape) for a in kernel.arguments if a.output]
    return called(library([path])[kernel.name], arguments, shapes, dtype, extent)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "method"),
    everyday.some(product(["four_bar", "space_robot_3r"], [m for m in METHODS if METHODS[m].native])),
)
def test_integrators_in_c(name, method, tmp_path):
    """Run every integrator in C, on a closed mechanism and on one with quaternions, and compare all outputs."""
    system = kt.load(name)
    s = State(system.mechanism, 4)
    q, qd = s.q, s.qd
    if system.closures:
        q = np.tile(system.assemble(), (3, 1))
        qd = system.closing_speed(q, qd)
    made = stepper(ForcedMechanism(system.mechanism), METHODS[method].scheme)
    more = {
        "dt": 1e-3,
        "skip": 0.0,
        "budget": 1e6,
        "rtol": 1e-9,
        "atol": 1e-11,
        "first": 1e-3,
        "most": 1e4,
        "begin": 0.0,
    }
    known = {"q0": q, "qd0": qd, "times": np.tile(TIMES, (3, 1))}
    inputs = made.kernel.arguments[: made.kernel.arity[0]]
    arguments = [known[a.name] if a.name in known else np.full(3, more[a.name]) for a in inputs]
    expected = made.gufunc(*(x[0] if a.shared else x for a, x in zip(inputs, arguments, strict=True)))
    found = in_c(tmp_path, made.kernel, arguments, extent=(len(TIMES),))
    for label, a, e in zip(("q", "qd", "q_end", "qd_end"), found, expected, strict=False):
        # Rounding grows along a run, and an implicit step ends its iteration by rounding.
        assert_close(a, e, 4000 * EPS * max(np.abs(e).max(), 1), f"{label} by {method}")
    np.testing.assert_array_equal(found[4][:, :2], expected[4][:, :2])


@needs_compiler
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 4 * EPS), ("float32", 1e-6)])
def test_every_statement(dtype, bound, tmp_path):
    """Write each statement and operation of the lane language."""
    k = Builder("kernel", {"double": traced(lambda x: [x + x, x * x])})
    x, times = k.array("x", 2), k.array("times", "t", shared=True)
    out, many = k.array("out", 8, output=True), k.array("many", "t", 2, output=True)
    a, b = k.block("a", 2), k.block("b", 4)
    unused = k.block("unused", 3)
    assert unused.memory.size == 3
    count, mask = k.block("count", kind=Kind.COUNT), k.block("mask", kind=Kind.MASK)
    index = k.block("index", kind=Kind.INDEX)
    with k.each_lane():
        a[0], a[1] = x[0], x[1]
        index.value = 0
        with k.whilst(lambda: index.value < k.extent()):
            many[index.value, 0] = times[index.value] * a[1]
            many[index.value, 1] = a[0]
            index.value = index.value + 1
    k.call("double", a, b)
    k.call("double", a, b, k.constant(2, Kind.COUNT))
    count.value = 0
    with k.repeat() as turn:
        count.value = count.value + 1
        turn.again = count.value < 5
    mask.value = (a[0] > a[1]) | (~(a[0] <= a[1]) & (a[0] >= a[1]))
    with k.when(k.any(mask.value)):
        b[3] = abs(a[0] - a[1]).sqrt()
    chosen = k.choose(count.value - 4, (0.25, 0.75, 1.5))
    powered = k.unbits(k.bits(a[0]) * 1.0)
    with k.each_lane():
        out[0], out[1], out[2], out[3] = b[0], b[1], b[2], b[3]
        out[4], out[5] = k.number(count.value), k.number(k.whole(times[1] * 1000.0))
        out[6], out[7] = mask.value.where(a[0] / a[1], -1.0), powered + chosen
    kernel = k.kernel()
    given = np.array([[0.37, 0.61], [0.83, 0.29]])
    alone = [interpret(kernel, row, TIMES, dtype=dtype) for row in given]  # `any` of one lane
    expected = [np.stack(rows) for rows in zip(*alone, strict=True)]
    found = in_c(tmp_path, kernel, [given, np.tile(TIMES, (2, 1))], dtype, (len(TIMES),))
    for a_, e in zip(found, expected, strict=True):
        assert_close(a_, e, bound * 8, dtype)


@needs_compiler
def test_indices_of_lanes(tmp_path):
    """Sort the numbers of each run in C."""
    x = sorted_numbers(4)
    (found,) = in_c(tmp_path, sorting(), [x])
    np.testing.assert_array_equal(found, interpret(sorting(), x)[0])
