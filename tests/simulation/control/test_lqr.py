from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import kinetree as kt
from kinetree.errors import KinetreeError
from kinetree.simulation.acting.smooth import sin
from tolerance import assert_close


def cart_and_pole() -> kt.System:
    """Return a pole on a cart, with a damped pivot."""
    cart = kt.Body("cart", 2.1, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    pole = kt.Body("pole", 0.3, (0.0, 0.0, 0.5), (0.03, 0.03, 0.001, 0.0, 0.0, 0.0))
    rail = kt.Joint("rail", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0))
    pivot = kt.Joint("pivot", "revolute", "cart", "pole", axis=(0.0, 1.0, 0.0), damping=(0.02,))
    return kt.System(kt.build_mechanism("cart and pole", [cart, pole], [rail, pivot]))


WEIGHTS = {"Q": [10.0, 7.0, 1.0, 1.3], "R": 0.7, "joints": "rail"}


def test_gains_solve_the_riccati_equation():
    """Solve the algebraic Riccati equations, continuous and discrete, with stable closed loops."""
    system = cart_and_pole()
    Q, R = np.diag(WEIGHTS["Q"]), np.array([[0.7]])
    found = kt.LQR(system, [0.4, 0.0], **WEIGHTS)
    A, B, S = found.plant.A, found.plant.B[:, :1], found.cost
    left = A.T @ S + S @ A - S @ B @ np.linalg.solve(R, B.T @ S) + Q
    assert_close(left, np.zeros((4, 4)), 1e-9 * np.abs(S).max(), "continuous")
    assert_close(found.K, np.linalg.solve(R, B.T @ S), 1e-9, "gains")
    assert found.poles.real.max() < 0.0 and not found.tau.any()
    held = kt.LQR(system, [0.4, 0.0], dt=0.04, **WEIGHTS)
    A, B, S = held.plant.A, held.plant.B[:, :1], held.cost
    left = A.T @ S @ A - S - A.T @ S @ B @ np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A) + Q
    assert_close(left, np.zeros((4, 4)), 1e-9 * np.abs(S).max(), "discrete")
    assert np.abs(held.poles).max() < 1.0


def test_runs_near_rest_are_those_of_the_linear_closed_loop():
    """Move near rest as the exponential of A - B K, by the derivatives of a native run."""
    system = cart_and_pole()
    found = kt.LQR(system, [0.4, 0.0], **WEIGHTS)
    d = kt.simulation_derivatives(system, [0.4, 0.0], control=found, times=[0.0, 0.5], method="rk4", dt=1e-3)
    closed = found.plant.A - found.plant.B[:, :1] @ found.K
    moved = np.concatenate([d["q0"], d["qd0"]], axis=-1)[-1]
    assert_close(moved, expm(0.5 * closed), 1e-9 * np.abs(moved).max(), "a run near rest")


@pytest.mark.slow
def test_held_torques_are_those_of_the_discrete_closed_loop():
    """Move near rest from sample to sample as A - B K of the discrete regulator."""
    system, x = cart_and_pole(), np.array([2e-6, 1e-6, -1e-6, 3e-6])
    held = kt.LQR(system, [0.0, 0.0], dt=0.04, **WEIGHTS)
    times = 0.04 * np.arange(6)
    run = kt.simulate(system, x[:2], x[2:], times=times, control=kt.Sampled(held, 25.0), rtol=1e-10, atol=1e-16)
    step = held.plant.A - held.plant.B[:, :1] @ held.K
    expected = np.linalg.matrix_power(step, 5) @ x
    assert_close(np.concatenate([run.q[-1], run.qd[-1]]), expected, 1e-8 * np.abs(expected).max(), "held torques")


@pytest.mark.slow
def test_loops_are_held_by_independent_joints():
    """Hold a four-bar against gravity by its crank, and bring it back from afar."""
    system = kt.load("four_bar")
    q = system.assemble()
    found = kt.LQR(system, q, Q=[100.0, 1.0])
    assert found.plant.names == ("crank",) and found.K.shape == (1, 2) and found.tau[0] != 0.0
    start = system.assemble(hold={"crank": q[0] + 0.3})
    run = kt.simulate(system, start, duration=3.0, control=found)
    assert_close(run.q[-1], q, 1e-6, "back at rest")


@pytest.mark.slow
def test_rotations_return_on_the_short_way():
    """Bring a free body with an arm back to its pose, in a batch of starts."""
    system = kt.load("space_robot_3r")
    home = system.integrate(system.neutral(), 0.7 * np.ones(9))
    found = kt.LQR(system, home, Q=5.0)
    starts = system.integrate(home, 0.3 * np.random.default_rng(2).normal(size=(4, 9)))
    run = kt.simulate(system, starts, times=[0.0, 300.0], control=found, rtol=1e-7)
    assert_close(system.difference(home, run.q[:, -1]), np.zeros((4, 9)), 1e-4, "back at home")


@pytest.mark.slow
def test_tracking_brings_a_run_back_to_its_motion():
    """Follow an unstable motion of a pole by a cart, from another start, and end at rest along a constant motion."""
    system = cart_and_pole()
    push = kt.TorqueFunction(lambda t, q, qd: [4.0 * sin(3.0 * t), 0.0])
    options = {"times": np.linspace(0.0, 3.0, 61), "method": "rk4", "dt": 5e-3}
    wanted = kt.simulate(system, [0.0, 0.3], control=push, **options)
    follow = kt.TrackingLQR(wanted, knots=31, S=[90.0, 90.0, 9.0, 9.0], **WEIGHTS)
    off = [[0.05, 0.35], [0.1, -0.1]]
    alone, kept = (kt.simulate(system, *off, control=c, **options) for c in (push, follow))
    errors = [np.abs(run.q[-1] - wanted.q[-1]).max() for run in (alone, kept)]
    assert errors[1] < 0.25 * errors[0]
    same = kt.simulate(system, [0.0, 0.3], control=follow, **options)
    assert_close(same.q, wanted.q, 2e-3, "on the motion itself, up to the interpolation")


def test_the_motion_of_an_optimal_control_is_followed():
    """Follow states whose torques are held between the times, as a transcription returns them, also from elsewhere."""
    system = cart_and_pole()
    times = np.linspace(0.0, 0.9, 37)
    pushes = np.zeros((36, 2))
    pushes[:, 0] = np.random.default_rng(5).normal(size=36) * 6.0
    options = {"times": times, "method": "rk4", "dt": 1.0 / 400.0}
    given = kt.run_function(system, **options)
    (q, qd), (alone, _) = (given(start, [0.2, -0.3], torques=pushes) for start in ([0.1, 0.2], [0.13, 0.16]))
    found = kt.Trajectory(system, times, q, qd)
    weights = {"Q": 50.0, "R": 0.02, "joints": "rail"}
    follow = kt.TrackingLQR(found, torques=pushes, **weights)
    same, off = (kt.simulate(system, x, [0.2, -0.3], control=follow, **options) for x in ([0.1, 0.2], [0.13, 0.16]))
    assert_close(same.q, q, 1e-3, "on the motion itself, up to the interpolation")
    assert np.abs(off.q[-1] - q[-1]).max() < 0.3 * np.abs(alone[-1] - q[-1]).max()
    at_times = kt.TrackingLQR(found, torques=np.concatenate([pushes, pushes[-1:]]), knots=37, **weights)
    assert_close(at_times.K, follow.K, 1e-9 * np.abs(follow.K).max(), "gains")


def test_trajectories_without_torques_are_refused():
    """Name what is missing, the shapes, and the remedy."""
    system = cart_and_pole()
    found = kt.Trajectory(system, np.linspace(0.0, 1.0, 11), np.zeros((11, 2)), np.zeros((11, 2)))
    with pytest.raises(
        KinetreeError, match=r"the trajectory has no control, the torques of its drives; give them as torq"
    ):
        kt.TrackingLQR(found, **WEIGHTS)
    with pytest.raises(KinetreeError, match=r"torques have shape \(9, 2\); expected \(11, 2\) at the times of"):
        kt.TrackingLQR(found, torques=np.zeros((9, 2)), **WEIGHTS)
    with pytest.raises(KinetreeError, match="knots are given, and torques that are held in each interval; leave knots"):
        kt.TrackingLQR(found, torques=np.zeros((10, 2)), knots=5, **WEIGHTS)


@pytest.mark.slow
def test_gains_along_rest_become_those_of_the_regulator():
    """Return the discrete gains of LQR far from the end of a run at rest."""
    system = cart_and_pole()
    still = kt.simulate(system, [0.0, 0.0], times=np.linspace(0.0, 8.0, 81), method="rk4", dt=0.02)
    follow = kt.TrackingLQR(still, knots=81, Q=[10.0, 7.0, 1.0, 1.3], R=0.7, joints="rail")
    held = kt.LQR(system, [0.0, 0.0], dt=0.1, Q=WEIGHTS["Q"], R=WEIGHTS["R"], joints="rail")
    assert_close(follow.K[0], held.K, 1e-4 * np.abs(held.K).max(), "gains of a long run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joints": "wheel"}, "no joint 'wheel'; available: rail, pivot"),
        ({"joints": []}, "LQR: joints is ; give each driven joint once, at least one"),
        ({"joints": ["rail", "rail"]}, "LQR: joints is 'rail', 'rail'; give each driven joint once, at least one"),
        (
            {"R": 0.0},
            "LQR: R is not symmetric and positive definite; give weights of at least zero, and more than zero",
        ),
        ({"Q": [[1.0, 2.0], [0.0, 1.0]]}, "LQR: Q has shape (2, 2); expected a number, [4] or [4, 4]"),
        ({"Q": np.diag([1.0, 1.0, 1.0, -1.0])}, "LQR: Q is not symmetric and positive semidefinite; give weights of"),
        ({"q": [0.0]}, "LQR: q has shape (1,); expected one position [2]"),
        (
            {"q": [0.0, 0.3]},
            "LQR: no torques of the driven joints hold q: rail accelerates by ",
        ),
        (
            {"joints": "pivot", "Q": [0.0, 1.0, 0.0, 1.0]},
            "LQR: no gains of the driven joints (pivot) keep the mechanism there: they do not affect a motion",
        ),
    ],
)
def test_bad_input_is_refused(options, message):
    """Refuse unknown joints, weights of another shape, positions that cannot be held, and drives without effect."""
    system = cart_and_pole()
    with pytest.raises(KinetreeError) as caught:
        kt.LQR(system, **({"q": [0.0, 0.0], "joints": "rail"} | options))
    assert str(caught.value).startswith(message)


def test_more_bad_input_is_refused():
    """Refuse a regulator of another mechanism, and runs that cannot be followed."""
    system = cart_and_pole()
    found = kt.LQR(system, [0.0, 0.0], **WEIGHTS)
    with pytest.raises(KinetreeError, match="this LQR is that of a mechanism with 2 coordinates, and 'stanford' has 6"):
        kt.simulate(kt.load("stanford"), duration=1.0, control=found)
    with pytest.raises(KinetreeError, match="LQR takes a System first, not 3; load one with kt.load"):
        kt.LQR(3, [0.0])
    with pytest.raises(KinetreeError, match="TrackingLQR takes a run first, not <"):
        kt.TrackingLQR(system)
    many = kt.simulate(system, np.zeros((3, 2)), times=[0.0, 0.1], method="rk4", dt=0.1)
    with pytest.raises(KinetreeError, match="TrackingLQR takes a single run of at least 4 samples; q has shape"):
        kt.TrackingLQR(many)
