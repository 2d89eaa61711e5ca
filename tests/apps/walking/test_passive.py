"""Passive walkers against closed forms, the equations of their papers, and independent integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import everyday
import kinetree as kt
from kinetree.apps.walking.passive import Compass, RimlessWheel, exchange_legs, pinned_speeds
from tolerance import assert_close


def test_a_rimless_wheel_rolls_at_its_known_speed():
    """Find the speed of steady rolling and its multiplier, the square of the loss, in closed form."""
    wheel = RimlessWheel(0.13, spokes=9, inertia=0.07, length=0.8)
    found = kt.periodic(wheel.step, [-1.1 * wheel.rolling_speed])
    assert_close(found.x, [-wheel.rolling_speed], 1e-9, "speed of rolling")
    assert_close(found.multipliers, [wheel.loss**2], 1e-7, "multiplier")
    assert found.stable
    assert np.isnan(wheel.step([[-0.1 * wheel.rolling_speed], [0.3]])).all()  # rolls back


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"spokes": 2}, "spokes is 2; give 3 or more"),
        ({"mass": -1.3}, "mass is -1.3; give more than zero"),
        ({"inertia": -0.01}, "inertia is -0.01; give 0 or more"),
        ({"slope": np.nan}, "slope is nan; give a finite number"),
    ],
)
def test_wheels_that_cannot_exist_are_refused(wrong, message):
    """Check the numbers of a wheel when it is made."""
    with pytest.raises(kt.InputError, match=message):
        RimlessWheel(**{"slope": 0.1, **wrong})
    assert RimlessWheel(1.2, spokes=3, inertia=0.02).rolling_speed == 0.0  # a strike would turn it back


def simplest_step(x, slope, foot):
    """Return one step of the walker with hip mass 1, foot masses and unit lengths, by SciPy on hand-derived equations.

    a and b are the angles of the legs from the normal of the slope, counterclockwise. The hip is at (-sin a, cos a),
    the swinging foot at hip + (sin b, -cos b).
    """
    m = foot
    gx, gy = np.sin(slope), -np.cos(slope)

    def rates(_, y):
        a, b, u, v = y
        # T = (1 + m)/2 u^2 + m/2 (v^2 - 2 u v cos(a - b)); V = -(g . positions)
        M = np.array([[1 + m, -m * np.cos(a - b)], [-m * np.cos(a - b), m]])
        fa = (1 + m) * (-gx * np.cos(a) - gy * np.sin(a)) + m * np.sin(a - b) * v * v
        fb = m * (gx * np.cos(b) + gy * np.sin(b)) - m * np.sin(a - b) * u * u
        return [u, v, *np.linalg.solve(M, [fa, fb])]

    def strike(t, y):
        return np.cos(y[0]) - np.cos(y[1]) if y[1] - y[0] > 0.05 else -1.0

    strike.direction, strike.terminal = -1, True  # type: ignore[attr-defined]
    start = [x[0], -x[0], x[1], x[1] + x[2]]
    run = solve_ivp(rates, (0, 9), start, method="DOP853", rtol=3e-14, atol=1e-15, events=strike, max_step=0.05)
    a, b, u, v = run.y_events[0][0]
    # angular momentum about the struck foot of everything, and about the hip of the leg that comes free
    hip, before = np.array([-np.sin(a), np.cos(a)]), np.array([-np.cos(a), -np.sin(a)]) * u
    swing, free = np.array([np.sin(b), -np.cos(b)]), before + np.array([np.cos(b), np.sin(b)]) * v
    foot_at = hip + swing
    cross = lambda p, q: p[0] * q[1] - p[1] * q[0]  # noqa: E731
    L = cross(hip - foot_at, before) + m * cross(-foot_at, np.zeros(2))

    # after: the hip moves about the struck foot with w, the old stance leg with s: foot0 = hip + (sin a, -cos a)
    def momentum(w, s):
        h = np.array([-np.cos(b), -np.sin(b)]) * w
        f0 = h + np.array([np.cos(a), np.sin(a)]) * s
        return np.array([cross(hip - foot_at, h) + m * cross(-foot_at, f0), m * cross(-hip, f0)])

    columns = np.column_stack([momentum(1.0, 0.0), momentum(0.0, 1.0)])
    w, s = np.linalg.solve(columns, [L, m * cross(-hip, np.zeros(2))])
    return np.array([b, w, s - w]), free


@pytest.mark.parametrize(("slope", "foot"), everyday.some([(0.009, 1e-3), (0.02, 0.02)]))
def test_the_simplest_walker_has_the_fixed_point_of_an_independent_integration(slope, foot):
    """Find the gait of two walkers, and the same state after a step by hand-derived equations to 1e-9."""
    walker = Compass.simplest(slope, foot=foot)
    # the long-period gait of [Garcia1998]: about 0.97 slope^(1/3)
    guess = 0.97 * slope ** (1 / 3)
    gait = kt.periodic(walker.step, [guess, -guess, guess * (1 - np.cos(2 * guess))])
    after, _ = simplest_step(gait.x, slope, foot)
    assert_close(after, gait.x, 1e-9, "state after a step by other equations")
    assert gait.residual < 1e-10


def test_the_compass_gait_of_the_literature():
    """Find the gait of [Goswami1998] on a slope of 3 degrees: stable, with a step of half a meter or so."""
    walker = Compass(np.deg2rad(3.0))
    gait = kt.periodic(walker.step, [0.27, -1.09, 0.72])
    assert gait.stable
    run = walker.step.steps(gait.x, 2)
    assert_close(run[0].q[0], run[1].q[0], 1e-9, "angles of two steps")


def test_a_pinned_point_stands_still_and_takes_no_energy_from_elsewhere():
    """Pin the foot of a moving walker: it stops, and angular momentum about it is kept."""
    walker = Compass(0.05)
    q, qd = np.array([0.3, -0.2, 0.21, -0.44]), np.array([0.1, -0.3, -1.2, 0.7])
    after = pinned_speeds(walker.floating, q, qd, "foot")
    J = walker.floating.jacobian(q, "foot")[3:5]
    assert_close(J @ after, np.zeros(2), 1e-13, "velocity of the pinned foot")
    change = walker.floating.inertia_matrix(q) @ (after - qd)
    across = np.linalg.svd(J)[2][2:]  # motions that leave the foot where it is
    assert_close(across @ change, np.zeros(2), 1e-13, "impulses act at the foot alone")


def test_legs_exchanged_twice_are_the_same():
    """Exchange the legs twice and find the first angles."""
    x = np.array([[0.3, -0.5], [0.1, 0.7]])
    assert_close(exchange_legs(exchange_legs(x)), x, 1e-16, "angles")


def test_a_basin_has_motions_that_fall():
    """Count returns over a few starts: the gait walks on, a start at rest does not return."""
    walker = Compass(np.deg2rad(3.0))
    gait = kt.periodic(walker.step, [0.27, -1.09, 0.72])
    count = walker.step.returns(np.stack([gait.x, [0.27, -0.01, 0.0]]), 3)
    assert count.tolist() == [3, 0]
