"""Motions within limits, through points and along paths: closed forms, linear programs, and limits that are kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import everyday
import kinetree as kt
from kinetree.errors import InputError
from kinetree.simulation.acting.references import sampled
from kinetree.simulation.acting.references.waypoints import Bounds, path_speeds
from tolerance import assert_close

ARM = kt.load("planar_2r")
POINTS = np.array([[0.13, -0.31, 0.7], [1.27, 0.42, 0.5], [-0.53, 2.01, 0.9], [-1.07, 1.03, 0.91]])
VELOCITY, ACCELERATION, JERK = np.array([1.1, 2.3, 0.7]), np.array([3.1, 2.7, 4.3]), np.array([19.0, 31.0, 23.0])


def farthest(T: float, v: float, a: float, j: float, steps: int = 240) -> float:
    """Return the longest way from rest to rest in a time T within limits, by a linear program in the accelerations.

    Accelerations are linear in time between knots, with slopes up to j; velocities and the way are sums of them.
    """
    h = T / steps
    of_speed = np.zeros((steps + 1, steps + 1))
    way = np.zeros(steps + 1)
    for n in range(steps):
        way += h * of_speed[n]
        way[n] += h * h / 3.0
        way[n + 1] += h * h / 6.0
        of_speed[n + 1] = of_speed[n]
        of_speed[n + 1, n : n + 2] += h / 2.0
    slopes = np.eye(steps, steps + 1, 1) - np.eye(steps, steps + 1)
    rows = np.concatenate([of_speed, slopes, -slopes])
    most = np.concatenate([np.full(steps + 1, v), np.full(2 * steps, j * h)])
    bounds = [(0.0, 0.0), *[(-a, a)] * (steps - 1), (0.0, 0.0)]
    found = linprog(-way, rows, most, of_speed[-1:], [0.0], bounds)
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize(
    ("way", "v", "a", "j"),
    [
        (2.7, 1.3, 2.1, 9.0),  # all limits are reached
        (0.61, 1.3, 2.1, 9.0),  # acceleration and jerk
        (0.02, 1.3, 2.1, 9.0),  # jerk alone
        (2.7, 0.23, 2.1, 9.0),  # velocity and jerk
    ],
)
def test_jerk_limited_moves_take_the_least_time(way, v, a, j):
    """Compare with linear programs: a little less time is not enough for the way, a little more is."""
    motion = kt.Waypoints([0.4, 0.4 - way], velocity=v, acceleration=a, jerk=j)
    T = motion.duration
    assert farthest(0.985 * T, v, a, j) < way < farthest(1.015 * T, v, a, j)
    q, qd, qdd = sampled(motion, np.linspace(0.0, T, 3001))
    assert_close(q[[0, -1], 0], [0.4, 0.4 - way], 1e-14, "ends")
    assert_close(np.abs(qd).max(), min(v, np.abs(qd).max()), 1e-14, "velocity")
    assert np.abs(qdd).max() <= a * (1 + 1e-13) and np.abs(np.diff(qdd[:, 0])).max() <= j * T / 3000 * (1 + 1e-9)


@pytest.mark.parametrize("way", [2.7, 0.31])
def test_moves_without_a_limit_of_jerk_take_the_time_of_the_trapezoid(way):
    """Compare with T = v / a + d / v, or 2 sqrt(d / a) for a short way."""
    v, a = 1.3, 2.1
    expected = v / a + way / v if way > v * v / a else 2.0 * math.sqrt(way / a)
    motion = kt.Waypoints([[0.4], [0.4 + way]], velocity=v, acceleration=a)
    assert_close(motion.duration, expected, 1e-14, "duration")
    fast = kt.TimedPath([[0.4], [0.4 + way]], velocity=v, acceleration=a)
    assert_close(fast.duration, expected, 2e-5 * expected, "duration of a timed path")


@pytest.mark.parametrize("jerk", [None, JERK])
def test_all_coordinates_stop_at_every_point_within_their_limits(jerk):
    """Follow straight lines, stop together at the points at the arrivals, and keep every limit to rounding."""
    motion = kt.Waypoints(POINTS, velocity=VELOCITY, acceleration=ACCELERATION, jerk=jerk, start=0.27)
    q, qd, _ = sampled(motion, motion.arrivals)
    assert_close(q, POINTS, 1e-14, "points")
    assert_close(qd, np.zeros((4, 3)), 1e-13, "stops")
    t = np.linspace(motion.arrivals[0], motion.arrivals[-1], 20001)
    q, qd, qdd = sampled(motion, t)
    assert (np.abs(qd) <= VELOCITY * (1 + 1e-12)).all() and (np.abs(qdd) <= ACCELERATION * (1 + 1e-12)).all()
    if jerk is not None:
        assert (np.abs(np.diff(qdd, axis=0)) <= jerk * np.diff(t)[:, None] * (1 + 1e-7)).all()
    for k in range(3):
        inside = (t > motion.arrivals[k]) & (t < motion.arrivals[k + 1])
        share = (q[inside] - POINTS[k]) / (POINTS[k + 1] - POINTS[k])
        assert_close(share, share[:, :1] * np.ones(3), 1e-9, "a straight line")
        fastest = np.abs(qd[inside] / VELOCITY).max(), np.abs(qdd[inside] / ACCELERATION).max()
        assert max(fastest) > 1 - 1e-6  # some limit is reached


def test_points_are_passed_without_a_stop_within_the_limits():
    """Meet all points at the arrivals while moving, keep the limits, and be faster than with stops."""
    motion = kt.Waypoints(POINTS, velocity=VELOCITY, acceleration=ACCELERATION, stop=False, start=0.27)
    q, qd, _ = sampled(motion, motion.arrivals)
    assert_close(q, POINTS, 1e-12, "points")
    assert np.abs(qd[1:3]).max(axis=1).min() > 0.1 and not qd[[0, -1]].any()
    _, qd, qdd = sampled(motion, np.linspace(0.0, motion.arrivals[-1] + 0.1, 20001))
    assert (np.abs(qd) <= VELOCITY * (1 + 1e-6)).all() and (np.abs(qdd) <= ACCELERATION * (1 + 1e-6)).all()
    assert (np.abs(qd / VELOCITY).max(axis=1) > 0.99).mean() + (
        np.abs(qdd / ACCELERATION).max(axis=1) > 0.99
    ).mean() > 0.8
    assert motion.duration < kt.Waypoints(POINTS, velocity=VELOCITY, acceleration=ACCELERATION).duration
    assert motion.duration < kt.Waypoints(POINTS, velocity=VELOCITY, acceleration=ACCELERATION, jerk=JERK).duration


def test_the_timing_is_that_of_a_linear_program():
    """Compare with the largest sum of squares of ds/dt: the fastest motion is the largest everywhere on the path."""
    s = np.linspace(0.0, 2.0, 401)
    angles = np.stack([1.3 * s, 0.7 * s + 0.4, 2.1 * s], axis=-1)
    rate = np.array([1.3, 0.7, 2.1])
    a, b, c = np.cos(angles) * rate, -np.sin(angles) * rate**2, 0.6 * np.sin(angles)  # c as the torques of gravity
    one, top = np.ones_like(a), 1.7 + np.sin(5.0 * s)
    x = path_speeds(s, Bounds(a, b, c, -2.3 * one, 2.1 * one, top))
    n, h = len(s), np.diff(s)
    change = (np.eye(n - 1, n, 1) - np.eye(n - 1, n)) / (2.0 * h[:, None])
    rows, most = [], []
    for k in (0, 1):
        here = np.eye(n - 1, n, k)
        for i in range(3):
            row = a[k : n - 1 + k, i, None] * change + b[k : n - 1 + k, i, None] * here
            rows += [row, -row]
            most += [2.1 - c[k : n - 1 + k, i], 2.3 + c[k : n - 1 + k, i]]
    limits = [(0.0, 0.0), *[(0.0, v) for v in top[1:-1]], (0.0, 0.0)]
    found = linprog(-np.ones(n), np.concatenate(rows), np.concatenate(most), bounds=limits)
    assert found.success
    assert_close(x, found.x, 1e-4, "squares of ds/dt")  # 3.1e-5: the largest step is not quite the best on a grid


def test_a_circle_is_run_at_the_velocity_that_its_curvature_allows():
    """Run around a circle of radius r with one limit a of both coordinates, against the bounds of its acceleration.

    The normal acceleration v^2 / r is at most a where a coordinate has all of it, so that v never exceeds
    sqrt(a r 2^0.5) and falls to sqrt(a r) at the axes.
    """
    r, a = 0.8, 3.0
    path = kt.Cosine([r, r], 1.0, phase=[0.3, 0.3 - math.pi / 2], offset=[0.4, -0.1])
    motion = kt.TimedPath(path, span=(0.0, 2 * math.pi), velocity=50.0, acceleration=a)
    t = np.linspace(0.0, motion.duration, 20001)
    q, qd, qdd = sampled(motion, t)
    assert_close(np.hypot(*(q - [0.4, -0.1]).T), np.full(20001, r), 1e-14, "on the circle")
    assert np.abs(qdd).max() <= a * (1 + 1e-6)
    speed = np.hypot(*qd.T)
    at_axes = np.abs(np.sin(2.0 * np.arctan2(*(q - [0.4, -0.1]).T))) < 1e-3
    assert speed[at_axes].max() <= math.sqrt(a * r) * (1 + 1e-4)
    assert speed.max() <= math.sqrt(a * r * math.sqrt(2.0)) * (1 + 1e-4)
    assert speed[at_axes].max() > 0.99 * math.sqrt(a * r)


def test_paths_keep_their_shape():
    """Time a Table and Waypoints anew: all positions are on the curve, and the limits hold."""
    table = kt.Table([0.0, 0.4, 1.1, 1.9], POINTS, ends="natural")
    for path in (table, kt.Waypoints(POINTS, velocity=9.0, acceleration=9.0, stop=False)):
        motion = kt.TimedPath(path, velocity=VELOCITY, acceleration=ACCELERATION, start=-0.2)
        q, qd, qdd = sampled(motion, np.linspace(-0.2, motion.duration - 0.2, 4001))
        assert_close(q[[0, -1]], POINTS[[0, -1]], 1e-12, "ends")
        assert (np.abs(qd) <= VELOCITY * (1 + 1e-6)).all() and (np.abs(qdd) <= ACCELERATION * (1 + 1e-6)).all()
        curve = sampled(motion.path, np.linspace(motion.span[0], motion.span[1], 40001))[0]
        away = [np.linalg.norm(curve - x, axis=1).min() for x in q[::100]]
        assert max(away) < 2e-4


@everyday.long
def test_a_driven_run_follows_waypoints_natively():
    """Drive two joints by one reference of two columns, against its values in NumPy."""
    arm = kt.load("planar_2r")
    names = [joint.name for joint in arm.joints]
    motion = kt.Waypoints(POINTS[:, :2], velocity=VELOCITY[:2], acceleration=ACCELERATION[:2], stop=False)
    times = np.linspace(0.0, motion.duration, 41)
    run = kt.simulate(arm, times=times, control=kt.Driven(names[::-1], motion))
    q, qd, qdd = sampled(motion, times)
    assert_close(run.q, q[:, ::-1], 1e-12, "driven coordinates")
    tau = arm.inverse_dynamics(q[:, ::-1], qd[:, ::-1], qdd[:, ::-1])
    assert_close(run["control"], tau, 1e-9 * np.abs(tau).max(), "torques of the drives")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: kt.Waypoints([[0.1, 0.2]], velocity=1.0, acceleration=1.0),
            "points of Waypoints has shape (1, 2); give",
        ),
        (
            lambda: kt.Waypoints([[0.1], [0.3], [0.3]], velocity=1.0, acceleration=1.0),
            "points 2 and 3 of Waypoints are equal; leave one of them out",
        ),
        (
            lambda: kt.Waypoints(POINTS, velocity=0.0, acceleration=1.0),
            "velocity of Waypoints is 0; give more than zero",
        ),
        (
            lambda: kt.Waypoints(POINTS, velocity=[1.0, 2.0], acceleration=1.0),
            "velocity of Waypoints has 2 numbers; give one, or 3",
        ),
        (
            lambda: kt.Waypoints(POINTS, velocity=1.0, acceleration=1.0, jerk=3.0, stop=False),
            "jerk of Waypoints is given with stop=False, and the timing along a curved path has no limit",
        ),
        (
            lambda: kt.TimedPath(kt.Waypoints(POINTS, velocity=1.0, acceleration=1.0), velocity=1.0, acceleration=1.0),
            "these Waypoints stop at their points, along straight lines; give Waypoints other limits",
        ),
        (lambda: kt.TimedPath(kt.Cosine(1.0, 1.0), velocity=1.0, acceleration=1.0), "span of TimedPath is missing"),
        (
            lambda: kt.TimedPath(kt.Cycloid(0.0, 1.0, 2.0), span=(0.0, 2.0), velocity=1.0, acceleration=1.0).duration,
            "the path of TimedPath stands still at s = 0: its derivatives are zero there; give an array",
        ),
        (
            lambda: kt.Driven(["crank", 3], kt.Hold(0.1)),
            "the joint of Driven is ('crank', 3); give the name of a joint, or a list of names",
        ),
        (
            lambda: kt.simulate(
                kt.load("planar_2r"), duration=1.0, control=kt.Driven(["joint1", "joint2"], kt.Hold(0.1))
            ),
            "the reference of the drive of 'joint1, joint2' returns 1 coordinates; expected 2",
        ),
    ],
)
def test_wrong_input_is_refused(make, message):
    """Name the argument, its value and the remedy."""
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(message)
