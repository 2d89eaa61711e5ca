"""Joint motions of frames that follow paths."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.apps.walking.gaits import FramePath, joint_motion, lift_path, pendulum_path, stride_path
from tolerance import assert_close


def circle(t: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a circle of the tip of the planar arm in its plane, with its rates."""
    c, s, w, r = np.cos(2.1 * t), np.sin(2.1 * t), 2.1, 0.11
    zero = np.zeros_like(t)
    return (
        np.stack([0.33 + r * c, 0.11 + r * s, zero], axis=-1),
        np.stack([-r * w * s, r * w * c, zero], axis=-1),
        np.stack([-r * w * w * c, -r * w * w * s, zero], axis=-1),
    )


def test_frames_follow_their_paths():
    """Lead the last link of a planar arm around a circle without rotation, and find positions and rates."""
    arm, t = kt.load("planar_3r"), np.linspace(0.0, 1.0, 401)
    tip = arm.bodies[-1].name
    q, qd, qdd = joint_motion(arm, [FramePath(tip, circle(t), rows=(2, 3, 4))], (-0.4, 1.2, -0.8))
    assert_close(arm.pose(q, tip)[:, :3, 3], circle(t)[0], 1e-12, "positions")
    h = t[1]
    assert_close((q[2:] - q[:-2]) / (2 * h), qd[1:-1], 1e-4, "velocities")
    assert_close((qd[2:] - qd[:-2]) / (2 * h), qdd[1:-1], 1e-3, "accelerations")


def test_paths_out_of_reach_and_missing_rows_are_refused():
    """Report the sample that is not reached, and paths that do not determine the motion."""
    arm, t = kt.load("planar_3r"), np.linspace(0.0, 1.0, 3)
    tip, far = arm.bodies[-1].name, tuple(4.0 * x for x in circle(t))
    with pytest.raises(kt.InputError, match=r"do not reach their paths at sample \d: .* missing"):
        joint_motion(arm, [FramePath(tip, far, rows=(2, 3, 4))], (-0.4, 1.2, -0.8))
    with pytest.raises(kt.InputError, match="prescribe 2 rows; expected 3"):
        joint_motion(arm, [FramePath(tip, circle(t), rows=(3, 4))], (-0.4, 1.2, -0.8))


def test_paths_of_a_step_have_their_ends_and_rates():
    """Find ends, and velocities and accelerations as differences."""
    t, T = np.linspace(0.0, 0.7, 701), 0.7
    pendulum = pendulum_path(t, -0.13, 0.17, T, height=0.9, gravity=9.81)
    for x, v, a in (pendulum, stride_path(t, -0.2, 0.35, T), lift_path(t, 0.08, T)):
        assert_close((x[2:] - x[:-2]) / (t[2] - t[0]), v[1:-1], 1e-4, "velocity")
        assert_close((v[2:] - v[:-2]) / (t[2] - t[0]), a[1:-1], 1e-3, "acceleration")
    assert_close(pendulum[0][[0, -1]], np.array([-0.13, 0.17]), 1e-15, "ends")
    assert_close(pendulum[2], 9.81 / 0.9 * pendulum[0], 1e-12, "law of the pendulum")
    assert_close(lift_path(t, 0.08, T)[0].max(), 0.08, 1e-15, "height")
