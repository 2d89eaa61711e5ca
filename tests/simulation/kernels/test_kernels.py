"""Kernels of runs: interpreted and native, stopped and resumed, on small stacks."""

from __future__ import annotations

import threading
from itertools import product

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.compiler.lanes.interpret import interpret
from kinetree.runtime.native import native_kernel
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods import adaptive_steps, fixed_steps
from kinetree.simulation.methods.fixed_steps import RK4, Explicit
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
from tolerance import assert_close

FIXED = [name for name, m in METHODS.items() if m.native and not m.adaptive]
PAIRS = [name for name, m in METHODS.items() if m.native and m.adaptive]
FRESH = (0.0, np.inf)


def states(name: str, count: int = 3):
    """Return a library mechanism with states, which are closed if it has loops."""
    arm = kt.load(name)
    q, qd = arm.random_state(5, count)
    if arm.closures:
        q = np.tile(arm.assemble(), (count, 1))
        qd = arm.closing_speed(q, qd)
    return arm, q, qd


def native(arm, method: str):
    """Return the stepper of a mechanism without forces."""
    return stepper(ForcedMechanism(arm.mechanism), METHODS[method].scheme)


@pytest.mark.parametrize(
    ("name", "method"),
    everyday.some(product(["planar_2r", "spatial_pendulum", "four_bar"], [*FIXED, *PAIRS])),
)
def test_interpreted_kernels_equal_native_ones(name, method):
    """Run every method statement by statement in NumPy and natively, and compare."""
    arm, q, qd = states(name, 2)
    made = native(arm, method)
    times = np.array([0.13, 0.151, 0.162])
    settings = (0.0061, *FRESH) if method in FIXED else (1e-7, 1e-9, np.array([1e-3, 4e-3]), 500.0, times[0])
    arguments = (q, qd, times, *settings)
    fast, plain = made.gufunc(*arguments), interpret(made.kernel, *arguments)
    if method in PAIRS:  # the next step follows from an error estimate, all differences, and amplifies rounding
        assert_close(fast[4][:, 5] / plain[4][:, 5], np.ones(2), 1e-4, "step")
        fast[4][:, 5] = plain[4][:, 5] = 0.0
    for label, a, b in zip(("q", "qd", "q_end", "qd_end", "report"), fast, plain, strict=True):
        assert_close(a, b, (1e-9 if method in PAIRS else 2e-12) * max(1.0, np.abs(b).max()), f"{label} of {method}")


@pytest.mark.parametrize("name", ["spatial_pendulum", "four_bar"])
def test_steps_in_registers_have_the_same_bits(name):
    """Keep one stage and a sum instead of all stages, in native code."""
    arm, q, qd = states(name)
    made = native(arm, "rk4")
    lean = made.register_kernel
    sizes = [{m.name: m.size for m in kernel.memory}["k"] for kernel in (made.kernel, lean)]
    assert sizes == [4 * (arm.nq + arm.nv), arm.nq + arm.nv]
    arguments = (q, qd, np.array([0.0, 0.011, 0.02]), 1e-3, *FRESH)
    for a, b in zip(native_kernel(lean, "float64")(*arguments), made.gufunc(*arguments), strict=True):
        np.testing.assert_array_equal(a, b)


def test_stages_that_need_several_others_are_kept():
    """Run the rule of three eighths, whose stages are no chain, and compare with half the step and with RK4."""
    rule = Explicit(
        "three_eighths", ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)), (0.125, 0.375, 0.375, 0.125),
        (0.0, 1 / 3, 2 / 3, 1.0),
    )  # fmt: skip
    assert (RK4.chain, rule.chain) == ((0.5, 0.5, 1.0), ())
    arm, q, qd = states("spatial_pendulum")
    made = native(arm, "rk4")
    kernel = rule.kernel(made.program, made.quaternions, None, dtype="float64", in_registers=True)
    ends = []
    for dt in (0.02, 0.01):
        ends.append(
            [g(q, qd, np.array([0.0, 0.2]), dt, *FRESH)[2] for g in (native_kernel(kernel, "float64"), made.gufunc)]
        )
    far, near = (np.abs(a - b).max() for a, b in ends)
    assert 8 < far / near < 32


@pytest.mark.parametrize("method", everyday.some(["gauss", *PAIRS]))
def test_a_lane_does_not_depend_on_others(method):
    """Interpret runs with different iterations and steps one by one and together, and find the same bits."""
    arm, q, qd = states("four_bar")
    kernel, times = native(arm, method).kernel, np.array([0.0, 0.004, 0.02])
    qd = qd * [[0.1], [1.0], [3.0]]
    settings = (0.01, *FRESH) if method == "gauss" else (1e-6, 1e-8, 1e-3, 500.0, times[0])
    together = interpret(kernel, q, qd, times, *settings)
    for k in range(3):
        alone = interpret(kernel, q[k : k + 1], qd[k : k + 1], times, *settings)
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a[0], b[k])


@pytest.mark.parametrize("method", everyday.some(FIXED))
@pytest.mark.parametrize("name", ["spatial_pendulum", "four_bar"])
def test_fixed_steps_are_taken_up_again_to_the_same_bits(name, method):
    """Stop after every few steps, within and between intervals, and continue to the same bits."""
    arm, q, qd = states(name)
    gufunc = native(arm, method).gufunc
    times = np.array([0.0, 0.011, 0.02, 0.031])
    whole = gufunc(q, qd, times, 1e-3, *FRESH)
    np.testing.assert_array_equal(whole[4][0], [31, 4, 0, 0])
    at_q, at_qd, start, skip, total = q, qd, 0, 0.0, 0
    kept = np.full_like(whole[0], np.nan)
    while start < 3:
        part = gufunc(at_q, at_qd, times[start:], 1e-3, skip, 4)
        steps, reached, skip, interval = part[4][0]
        kept[:, start + 1 : start + int(reached)] = part[0][:, 1 : int(reached)]
        assert np.isnan(part[0][:, int(reached) :]).all()
        assert (interval > skip) == (reached < len(times) - start)
        at_q, at_qd, start, total = part[2], part[3], start + int(reached) - 1, total + steps
    assert total == 31
    np.testing.assert_array_equal(kept[:, 1:], whole[0][:, 1:])
    np.testing.assert_array_equal(at_qd, whole[1][:, -1])


@pytest.mark.parametrize("method", everyday.some(PAIRS))
@pytest.mark.parametrize("name", ["spatial_pendulum", "four_bar"])
def test_adaptive_steps_are_taken_up_again_to_the_same_bits(name, method):
    """Stop after every two attempts, each run at its own time, and continue to the same bits."""
    arm, q, qd = states(name)
    gufunc = native(arm, method).gufunc
    times = np.linspace(0.2, 0.5, 7)
    whole = gufunc(q, qd, times, 1e-9, 1e-11, 1e-4, 1e5, times[0])
    expected = dict(zip(adaptive_steps.REPORT, whole[4].T, strict=True))
    at_q, at_qd, first, begin = q, qd, np.full(3, 1e-4), np.full(3, times[0])
    kept, attempts, calls = np.full_like(whole[0], np.nan), np.zeros(3), 0
    while (begin < times[-1]).any():
        part = gufunc(at_q, at_qd, times, 1e-9, 1e-11, first, 2.0, begin)
        report = dict(zip(adaptive_steps.REPORT, part[4].T, strict=True))
        new = (times > begin[:, None]) & (times <= report["time"][:, None])
        np.copyto(kept, part[0], where=new[..., None])
        assert np.isnan(part[0][:, 1:][~new[:, 1:]]).all()
        np.testing.assert_array_equal(report["status"], np.where(report["time"] < times[-1], 2.0, 0.0))
        at_q, at_qd, first, begin, calls = part[2], part[3], report["step"], report["time"], calls + 1
        attempts += report["accepted"] + report["rejected"]
    assert calls > 5
    np.testing.assert_array_equal(kept[:, 1:], whole[0][:, 1:])
    np.testing.assert_array_equal(at_qd, whole[3])
    np.testing.assert_array_equal(attempts, expected["accepted"] + expected["rejected"])


@pytest.mark.parametrize("dt", [1e-25, 1e-300, 0.0, np.nan])
def test_more_steps_than_integers_count_do_not_overflow(dt):
    """Request more steps in an interval than 64-bit integers can count."""
    arm, q, qd = states("planar_2r")
    with np.errstate(all="ignore"):
        out = native(arm, "rk4").gufunc(q, qd, np.array([0.0, 0.5]), dt, 0, 3)
    report = dict(zip(fixed_steps.REPORT, out[4][0], strict=True))
    assert report == {"steps": 3, "reached": 1, "skip": 3, "interval": 2.0**62 + 1}
    assert np.isnan(out[0][:, 1]).all()
    assert np.isfinite(out[2]).all()


@everyday.long
@pytest.mark.parametrize("method", everyday.only(["rk4", "dop853"], ["rk4"]))
def test_memory_of_long_mechanisms_is_not_taken_from_the_stack(method):
    """Run a chain of 60 bodies in a thread with a stack of 512 KiB."""
    arm = kt.chain(60)
    q, qd = arm.random_state(2, 9)
    results = []

    def work() -> None:
        results.append(kt.simulate(arm, q, qd * 0.1, times=[0.0, 0.001, 0.002], method=method, **numbers))

    numbers = {"dt": 1e-3} if method == "rk4" else {"rtol": 1e-4, "atol": 1e-4}
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert results[0].status == "finished"
