"""Zero-moment point and capture point against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close

G = 9.81


def test_an_inverted_pendulum_has_the_zero_moment_point_of_its_closed_form() -> None:
    """Compare a pendulum on a foot with x - (z ax + I alpha / m) / (az + g)."""
    m, length, inertia = 3.1, 0.83, 0.21
    body = kt.Body("rod", m, (0.0, 0.0, length), (inertia, inertia, 0.01, 0.0, 0.0, 0.0))
    joint = kt.Joint("foot", "revolute", kt.GROUND, "rod", kt.Placement((0.4, -0.3, 0.0)), axis=(0.0, 1.0, 0.0))
    system = kt.System(kt.build_mechanism("pendulum", [body], [joint]))
    q, w, a = np.array([[0.31], [-0.17]]), np.array([[0.9], [1.3]]), np.array([[2.1], [-0.7]])
    x, z = length * np.sin(q), length * np.cos(q)
    ax, az = z * a - x * w**2, -x * a - z * w**2
    expected = 0.4 + x - (z * ax + inertia * a / m) / (az + G)
    found = system.zero_moment_point(q, w, a)
    assert_close(found[:, :1], expected, 1e-13, "zero-moment point")
    assert_close(found[:, 1:], [[-0.3, 0.0]] * 2, 1e-13, "in the plane of the motion, on the ground")
    falling = system.zero_moment_point([math.pi / 2], [0.0], [30.0])
    assert np.isnan(falling).all()


def pendulum(height: float) -> kt.System:
    """Return a point mass that moves at a height: a linear inverted pendulum."""
    bodies = [kt.Body("x"), kt.Body("mass", 2.7, (0.0, 0.0, height), (0.02, 0.03, 0.04, 0.0, 0.0, 0.0))]
    joints = [
        kt.Joint("x", "prismatic", kt.GROUND, "x", axis=(1.0, 0.0, 0.0)),
        kt.Joint("y", "prismatic", "x", "mass", axis=(0.0, 1.0, 0.0)),
    ]
    return kt.System(kt.build_mechanism("linear_pendulum", bodies, joints))


def test_a_linear_inverted_pendulum_comes_to_rest_over_its_capture_point() -> None:
    """Push a mass at constant height away from a point: over the capture point it stops, and its distance decays."""
    height = 0.77
    system, rate = pendulum(height), math.sqrt(G / height)
    q, qd = np.array([0.12, -0.31]), np.array([0.4, 0.23])
    point = system.capture_point(q, qd)
    assert_close(point, [*(q + qd / rate), 0.0], 1e-15, "capture point")
    px, py, stiff = float(point[0]), float(point[1]), 2.7 * rate**2
    push = kt.TorqueFunction(lambda t, q, qd: [stiff * (q[0] - px), stiff * (q[1] - py)])
    times = np.linspace(0, 6 / rate, 9)
    run = kt.simulate(system, q, qd, times=times, control=push, rtol=1e-12, atol=1e-14)
    assert_close(run.q - point[:2], (q - point[:2]) * np.exp(-rate * times)[:, None], 1e-9, "decay")
    zero = system.zero_moment_point(run.q, run.qd, run["qdd"])
    assert_close(zero, np.tile(point, (9, 1)), 1e-9, "zero-moment point where the ground acts")
    assert_close(system.capture_point(run.q, run.qd), np.tile(point, (9, 1)), 1e-8, "capture point stays")


def test_slopes_and_bad_planes() -> None:
    """Find points on a slope, and refuse planes that no point of balance has."""
    system = pendulum(0.6)
    slope = kt.Placement.from_euler("y", (0.2,), (0.0, 0.0, -0.1))
    q, qd = [0.3, 0.1], [0.2, -0.5]
    for point in (system.capture_point(q, qd, plane=slope), system.zero_moment_point(q, qd, [1.0, 0.3], plane=slope)):
        assert_close((point - slope.translation) @ np.array(slope.rotation)[:, 2], 0.0, 1e-15, "on the slope")
    with pytest.raises(InputError, match="the normal of the plane does not point upward"):
        system.capture_point(q, qd, plane=kt.Placement.from_euler("y", (2.0,)))
    with pytest.raises(
        InputError, match="plane is 3; give a kt.Surface of kind plane on the ground, or a kt.Placement"
    ):
        system.capture_point(q, qd, plane=3)
    with pytest.raises(InputError, match=r"the center of mass is -0.4 m above the plane"):
        system.capture_point(q, qd, plane=kt.Placement((0.0, 0.0, 1.0)))
    light = kt.System(kt.build_mechanism("light", system.bodies, system.joints, gravity=(0.0, 0.0, 0.0)))
    with pytest.raises(InputError, match="'light' has no gravity"):
        light.capture_point(q, qd)
