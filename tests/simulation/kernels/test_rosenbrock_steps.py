"""The Rosenbrock method: its order, classical stiff problems, and mechanisms with stiff forces."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.algebra.scalars import cos, sqrt
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.simulation.methods.rosenbrock import RODAS5P
from kinetree.simulation.methods.stepper import Stepper
from strategies import random_mechanism
from tolerance import assert_close

MANY = 1e6


def program_of(nq: int, nv: int, rates) -> Program:
    """Return the Program of rates (t, q, qd) -> (dq, dqd) given as a function of scalars."""
    trace, inputs = Trace(), (Array("t", (1,)), Array("q", (nq,)), Array("qd", (nv,)))
    t, q, qd = ([trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs))
    return Program.of_trace("rates", inputs, (Array("dq", (nq,)), Array("dqd", (nv,))), trace, rates(t[0], q, qd))


def van_der_pol(stiffness: float) -> Program:
    """Return the Van der Pol oscillator, q'' = stiffness ((1 - q^2) q' - q)."""
    return program_of(1, 1, lambda t, q, v: ([v[0]], [stiffness * ((1.0 - q[0] * q[0]) * v[0] - q[0])]))


def robertson(t, q, v):
    """Return the rates of Robertson's reaction; the state is split into one and two entries."""
    (a,), (b, c) = q, v
    first, second = 1e4 * b * c - 0.04 * a, 3e7 * b * b
    return [first], [-1.0 * first - second, second]


def made(program: Program) -> Stepper:
    """Return the integrator of a Program of rates."""
    return Stepper(program, RODAS5P, ())


def solved(program: Program, q, v, times, rtol: float, atol: float, first: float = 1e-4):
    """Return q and qd of one run at the times."""
    settings = rtol, atol, first, MANY, times[0]
    *states, _, _, report = made(program).gufunc(np.array(q), np.array(v), np.array(times), *settings)
    assert report[3] == 0.0
    return states


def test_the_order_of_steps_and_of_the_dense_output():
    """Halve the steps of a smooth problem that depends on time, and find orders 5 and 4 by regression."""
    program = program_of(1, 1, lambda t, q, v: ([v[0] + 0.3 * cos(2.0 * t)], [cos(t) * v[0] - q[0] * q[0] * t]))
    solve = made(program).gufunc
    exact = solved(program, [0.7], [-0.4], [0.1, 1.3, 1.3 + 0.037], 1e-14, 1e-15)
    counts = np.array([12, 24, 48, 96])
    at_end, inside = [], []
    for count in counts:
        q, v, h = np.array([0.7]), np.array([-0.4]), 1.2 / count
        grid = np.linspace(0.1, 1.3, count + 1)
        for begin, end in pairwise(grid):  # a huge tolerance, and one step per call
            (*_, q, v, report) = solve(q, v, np.array([begin, end]), 1e9, 1e9, end - begin, MANY, begin)
            assert report[1] == 1.0
        at_end.append(np.hypot(q[0] - exact[0][1, 0], v[0] - exact[1][1, 0]))
        middle = 0.1 + 0.37 * h
        fine = solved(program, [0.7], [-0.4], [0.1, middle], 1e-14, 1e-15)
        dense = solve(np.array([0.7]), np.array([-0.4]), np.array([0.1, middle, 0.1 + h]), 1e9, 1e9, h, MANY, 0.1)
        inside.append(np.hypot(dense[0][1, 0] - fine[0][1, 0], dense[1][1, 0] - fine[1][1, 0]))
    slopes = [-np.polyfit(np.log(counts), np.log(x), 1)[0] for x in (at_end, inside)]
    assert_close(slopes[0], 5.0, 0.3, "order")
    assert_close(slopes[1], 5.0, 0.4, "order of the error of the dense output within a step")


def test_van_der_pol_against_the_published_solution():
    """Pass the fast parts of the oscillator of stiffness 1e6, and compare with the test set for IVP solvers."""
    q, v = solved(van_der_pol(1e6), [2.0], [0.0], [0.0, 2.0], 1e-11, 1e-13)
    assert_close(q[-1], [1.706167732170483], 1e-8, "q")
    assert_close(v[-1], [-0.8928097010247975], 1e-8, "qd")


def test_robertson_against_the_published_solution():
    """Follow the reaction to 1e11 s, and compare with the test set for IVP solvers."""
    q, v = solved(program_of(1, 2, robertson), [1.0], [0.0, 0.0], [0.0, 40.0, 1e11], 1e-10, 1e-20, 1e-6)
    assert_close(q[-1] / 0.2083340149701255e-7, [1.0], 1e-8, "first")
    assert_close(v[-1] / [0.8333360770334713e-13, 0.9999999791665050], [1.0, 1.0], 1e-8, "second and third")
    assert_close(q[:, 0] + v.sum(axis=-1), np.ones(3), 1e-12, "their sum")


@pytest.mark.slow
def test_van_der_pol_and_robertson_against_scipy():
    """Compare states on the way with SciPy's Radau at tight tolerances."""
    from scipy.integrate import solve_ivp

    def oscillator(t, y):
        return [y[1], 50.0 * ((1.0 - y[0] * y[0]) * y[1] - y[0])]

    def reaction(t, y):
        first, second = robertson(t, y[:1], y[1:])
        return [*first, *second]

    for rate, program, start, end, split in (
        (oscillator, van_der_pol(50.0), [2.0, 0.1], 1.1, 1),
        (reaction, program_of(1, 2, robertson), [1.0, 0.0, 0.0], 40.0, 1),
    ):
        times = np.linspace(0.0, end, 7)
        other = solve_ivp(rate, (0.0, end), start, "Radau", times, rtol=1e-12, atol=1e-15).y.T
        q, v = solved(program, start[:split], start[split:], times, 1e-11, 1e-15)
        assert_close(np.hstack([q, v]), other, 1e-8, program.name)


ARM = ([0.3, 0.4], [1.0, -0.7])


def stiff_arm(method: str, q, qd, **options):
    """Return runs of an arm under stiff PD control along a reference."""
    arm = kt.load("planar_2r")
    control = kt.PD([4e5, 2e5], [3e4, 1e4], kt.Cosine([0.2, 0.3], 1.7))
    return kt.simulate(arm, q, qd, duration=1.5, control=control, method=method, progress=False, **options)


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_stiff_control_agrees_with_sundials_and_scipy(method):
    """Follow a reference by stiff PD control."""
    native, other = (stiff_arm(m, *ARM, rtol=1e-10, atol=1e-11) for m in ("rodas5p", method))
    assert (native.status, native.method) == ("finished", "rodas5p")
    assert_close(native.q, other.q, 1e-8, "q")
    assert native.evaluations < 12_000


def test_runs_have_the_same_bits_alone_in_a_batch_and_in_threads():
    """Compute runs of different stiffness of motion together, each alone, and in two threads."""
    rng = np.random.default_rng(4)
    q, qd = rng.normal(size=(17, 2)), 3.0 * rng.normal(size=(17, 2))
    together, parts = stiff_arm("rodas5p", q, qd), stiff_arm("rodas5p", q, qd, threads=2)
    assert np.array_equal(together.q, parts.q)
    for k in (0, 5, 16):
        alone = stiff_arm("rodas5p", q[k], qd[k])
        assert np.array_equal(alone.q, together.q[k])
        assert np.array_equal(alone.qd, together.qd[k])


BALL = random_mechanism(["spherical", "revolute"], [-1, 0], 8)


@pytest.mark.parametrize("name", everyday.some(["four_bar", "slider_crank", "ball"]))
def test_loops_and_quaternions(name):
    """Move closed mechanisms and a ball joint under a strong damper, and compare with an explicit method."""
    arm = kt.System(BALL) if name == "ball" else kt.load(name)
    q, qd = arm.random_state(5)
    if arm.closures:
        q = arm.assemble()
        qd = arm.closing_speed(q, np.random.default_rng(5).uniform(-1.0, 1.0, arm.nv))
    forces = kt.JointDamper(arm.mechanism.joints[-1].name, 50.0)
    runs = [
        kt.simulate(arm, q, qd, duration=0.5, forces=forces, method=m, rtol=1e-10, atol=1e-11, progress=False)
        for m in ("rodas5p", "dop853")
    ]
    assert [r.status for r in runs] == ["finished"] * 2
    assert_close(runs[0].q, runs[1].q, 1e-8, "q")
    assert_close(runs[0].qd, runs[1].qd, 1e-7, "qd")


def test_driven_joints_follow_their_references():
    """Drive one joint, damp the other hard, and compare with SUNDIALS."""
    arm, drive = kt.load("planar_2r"), kt.Driven("joint1", kt.Cycloid(0.4, 5.0, 0.9))
    runs = [
        kt.simulate(
            arm, duration=1.0, control=drive, forces=kt.JointDamper("joint2", 2e3), method=m, rtol=1e-10, atol=1e-12,
            progress=False,
        )
        for m in ("rodas5p", "bdf")
    ]  # fmt: skip
    assert_close(runs[0].q, runs[1].q, 1e-8, "q")


def test_failures_are_reported():
    """Use up the steps, and refuse fixed ones."""
    run = stiff_arm("rodas5p", *ARM, max_steps=3)
    assert run.status.startswith("stopped: the steps were used up")
    with pytest.raises(kt.InputError, match="rodas5p chooses its steps: leave dt out"):
        stiff_arm("rodas5p", *ARM, dt=1e-3)


def test_a_rate_that_is_nowhere_finite_ends_the_run():
    """Report a step below rounding, with the start as the last good state."""
    program = program_of(1, 1, lambda t, q, v: ([v[0]], [sqrt(q[0] - q[0] * q[0] - 1.0)]))
    with np.errstate(all="ignore"):
        *_, report = made(program).gufunc(
            np.array([0.3]), np.array([0.1]), np.array([0.0, 1.0]), 1e-6, 1e-8, 0.1, MANY, 0.0
        )
    assert (report[1], report[3]) == (0.0, 1.0)
