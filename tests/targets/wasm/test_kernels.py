"""Kernels of runs in WebAssembly: whole simulations in Node against the native ones."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.form import Kind
from kinetree.compiler.lanes.interpret import interpret
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
from kinetree.targets.wasm import wasm_module
from native_program import sorted_numbers, sorting
from tolerance import assert_close
from wasm_hosts import Call, in_chromium, in_node, in_wasmtime, needs_chromium, needs_node, needs_wasmtime

PAIRS = [name for name, m in METHODS.items() if m.native and m.adaptive]
TIMES = np.array([0.13, 0.151, 0.162, 0.211])


def runs(name: str, method: str, *, forces=(), control=None):
    """Return the stepper of a mechanism, and the arguments of two runs."""
    arm = kt.load(name)
    q, qd = arm.random_state(5, 2)
    if arm.closures:
        q = np.tile(arm.assemble(), (2, 1))
        qd = arm.closing_speed(q, qd)
    made = stepper(ForcedMechanism(arm.mechanism, forces, control), METHODS[method].scheme)
    settings = (1e-7, 1e-9, np.array([1e-3, 4e-3]), 500.0, TIMES[0]) if method in PAIRS else (0.0061, 0.0, np.inf)
    return made, (q, qd, TIMES, *settings)


def check(found, made, arguments) -> None:
    """Compare the outputs of a kernel with those of the native one: the same steps, to rounding."""
    expected = [np.array(x) for x in made.gufunc(*arguments)]
    found = [np.array(x) for x in found]
    if made.adaptive:  # the next step follows from an error estimate, all differences, and amplifies rounding
        assert_close(found[4][:, 5] / expected[4][:, 5], np.ones(2), 1e-4, "step")
        found[4][:, 5] = expected[4][:, 5] = 0.0
    for label, a, b in zip(("q", "qd", "q_end", "qd_end", "report"), found, expected, strict=True):
        bound = (1e-9 if made.adaptive else 2e-12) * max(1.0, np.abs(b).max())
        assert_close(a, b, bound, f"{label} of {made.kernel.name}")


def check_in(host, folder, cases) -> None:
    """Run all cases in one process of a host."""
    calls = [Call(wasm_module([made.kernel]), made.kernel.name, given, len(TIMES)) for made, given in cases]
    for found, case in zip(host(calls, folder), cases, strict=True):
        check(found, *case)


@needs_node
def test_runs_of_arms_and_loops(tmp_path):
    """Take fixed and adaptive steps of an arm, and steps of a four-bar with its loop closed after each."""
    check_in(in_node, tmp_path, [runs("planar_2r", "dopri5"), runs("four_bar", "rk4")])


@needs_node
def test_runs_with_forces_and_a_controller(tmp_path):
    """Take steps under friction and a PD controller, which are parts of the module."""
    control = kt.PD(3.0, 0.4, kt.Cosine([0.4, -0.3], [1.3, 2.1]))
    friction = kt.JointFriction("joint1", 0.3, slip_speed=0.8)
    check_in(in_node, tmp_path, [runs("planar_2r", "rk4", forces=[friction], control=control)])


@pytest.mark.slow
@needs_node
def test_every_method_in_node(tmp_path):
    """Run every native method on trees, a free base and loops."""
    methods = [name for name, m in METHODS.items() if m.native]
    names = ("planar_3r", "spatial_pendulum", "space_robot_3r", "four_bar", "slider_crank")
    check_in(in_node, tmp_path, [runs(name, method) for name in names for method in methods])


@pytest.mark.slow
@needs_chromium
def test_runs_in_chromium(tmp_path):
    """Take fixed and adaptive steps of a free base and of a loop in a browser."""
    check_in(in_chromium, tmp_path, [runs("space_robot_3r", "dop853"), runs("four_bar", "gauss")])


@needs_wasmtime
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_statement_of_the_lane_language(dtype):
    """Run each kind of statement, operation and memory, in both precisions, against the interpreter."""
    k = Builder("statements", {})
    x, times = k.array("x", 3), k.array("times", "t", shared=True)
    table = k.array("table", "t", 3, output=True)
    out = k.array("out", 9, output=True)
    sums, numbers = k.block("sums", 2), k.block("numbers", 3)
    count, flag = k.block("count", kind=Kind.COUNT), k.block("flag", kind=Kind.MASK)
    with k.each_lane(), k.loop(3) as j:
        numbers[j] = x[j]
    sums[0], sums[1], count.value = 0.0, 1.0, 0
    with k.loop(k.extent()) as i:
        t = k.cast(times[i], Kind.LANE)
        with k.each_lane(), k.loop(3) as j:
            table[i, j] = numbers[j] * t + sums[0]
        sums[0] = sums[0] + abs(numbers[0] - t)
        with k.loop(k.extent() - 5):
            sums[1] = -1.0
    with k.repeat() as turn:
        sums[1] = sums[1] * 1.5
        count.value = count.value + 1
        turn.again = count.value < 4
    with k.each_lane():
        with k.whilst(lambda: sums[1] > 1.2):
            sums[1] = sums[1] / 1.25
        flag.value = (sums[1] < 1.1) | ~(numbers[1] >= numbers[2])
        out[0] = flag.value.where(sums[1], numbers[1])
        with k.when(flag.value & (numbers[0] <= 10.0)):
            sums[0] = sums[0].sqrt()
        one = {"float64": float(1023 << 52), "float32": float(127 << 23)}[dtype]
        root = k.unbits(k.bits(numbers[2]) * 0.5 + one * 0.5)
        for i, value in enumerate((sums[0], sums[1], root, numbers[0] - numbers[1]), 1):
            out[i] = value
        whole = k.whole(times[1] * 100.0)
        out[5] = k.cast(k.number(whole), Kind.LANE)
        out[6] = k.cast(k.number(whole.equals(0).where(k.constant(2, Kind.COUNT), count.value)), Kind.LANE)
        out[8] = k.cast(k.choose(count.value - 2, [0.1, 0.7, 0.3, 9.1]), Kind.LANE) + k.choose(
            count.value - 3, [3.0, 5.0]
        )
        out[7] = k.any(flag.value).where(numbers[0], 0.0)
    kernel = k.kernel()
    given = (np.array([[0.7, 1.9, 2.6], [3.1, 0.4, 0.9]]), np.array([0.21, 0.47]))
    found = in_wasmtime([Call(wasm_module([kernel], dtype), "statements", given, 2)])[0]
    for a, b in zip(found, interpret(kernel, *given, dtype=dtype), strict=True):
        assert np.isfinite(b).all()
        assert_close(a, b, {"float64": 1e-14, "float32": 1e-5}[dtype], dtype)


@needs_wasmtime
def test_indices_of_lanes():
    """Sort the numbers of each run in WebAssembly."""
    x = sorted_numbers(4)
    ((found,),) = in_wasmtime([Call(wasm_module([sorting()], "float64"), "sorting", (x,), 1)])
    np.testing.assert_array_equal(found, interpret(sorting(), x)[0])
