"""Joints moved by linear actuators against the triangles that define them."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.formulations.charmie import torso
from kinetree.formulations.linear_actuators import rotating_joint, sliding_joint
from kinetree.formulations.newton_euler import zxz
from tolerance import assert_close


def test_sign_of_14():
    """Find G_4 at the length of the actuator with the sign of (13), and elsewhere with the printed one."""
    F4, B4, G5 = np.array([0, 0.168, 0.4512]), np.array([0, 0, 0.438]), np.array([0, 0.056, 0.3972])
    act = np.array([0.37, 0.4, 0.43])
    angle, _, _ = rotating_joint((act, 0 * act, 0 * act), F4, B4, G5)
    turn = zxz(0, angle, 0)
    assert_close(np.linalg.norm(B4 + turn @ G5 - F4, axis=-1), act, 1e-15, "length")
    assert_close(angle[1], 0.0, 1e-15, "upright at 400 mm")
    e4, r = np.hypot(*(F4 - B4)[1:]), np.hypot(*G5[1:])
    l4 = (act**2 - r**2 + e4**2) / (2 * e4)
    h4 = np.sqrt(act**2 - l4**2)
    u = (B4 - F4)[1:] / e4
    printed = F4[1:] + l4[:, None] * u + h4[:, None] * u[::-1]
    assert (np.abs(np.linalg.norm(printed - F4[1:], axis=-1) - act) > 1e-3).all()


@pytest.mark.parametrize("which", ["actuator_4", "actuator_5"])
def test_rates_are_derivatives(which):
    """Compare velocity and acceleration of a joint with differences of its position."""
    T, h = torso(kt.load("charmie_complete").mechanism), 1e-4
    t = 0.4 + h * np.arange(-2, 3)
    act = (0.4 - 0.05 * t + 0.02 * t**2, -0.05 + 0.04 * t, 0.04 + 0 * t)
    joint = sliding_joint(act, T.D3, T.E4, T.B3[2]) if which == "actuator_4" else rotating_joint(act, T.F4, T.B4, T.G5)
    first, second = np.array([1, -8, 0, 8, -1]) / (12 * h), np.array([-1, 16, -30, 16, -1]) / (12 * h * h)
    assert_close(joint[1][2], first @ joint[0], 1e-10, "velocity")
    assert_close(joint[2][2], second @ joint[0], 1e-6, "acceleration")
