"""Motions of joints along paths of a frame, against forward kinematics and differences."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.analysis.kinematics.cartesian_motion import rotations
from kinetree.analysis.kinematics.pose_search import poses_of, rotation_vectors
from kinetree.simulation.acting.references import sampled
from tolerance import assert_close

START, END = np.array([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]), np.array([0.7, -0.4, 0.3, 0.5, 1.1, 0.1])


@pytest.fixture(scope="module")
def arm() -> kt.System:
    return kt.load("puma560")


def test_a_straight_line_is_followed_exactly(arm):
    """Keep the origin on the line and the rotation about one axis, from rest to rest."""
    a, b = arm.pose(START, "link6"), arm.pose(END, "link6")
    found = arm.cartesian_motion([a, b], "link6", duration=1.7, q0=START, samples=31)
    assert_close(found.q[0], START, 1e-12, "start")
    T = arm.pose(found.q, "link6")
    assert_close(T, found.poses, 1e-12, "poses along the path")
    way = b[:3, 3] - a[:3, 3]
    assert_close(np.cross(T[:, :3, 3] - a[:3, 3], way), np.zeros((31, 3)), 1e-13, "distance from the line")
    turn = rotation_vectors(a[:3, :3].T @ T[:, :3, :3])
    assert_close(
        np.cross(turn, rotation_vectors(a[:3, :3].T @ b[:3, :3])), np.zeros((31, 3)), 1e-12, "axis of rotation"
    )
    assert_close(found.qd[[0, -1]], np.zeros((2, 6)), 1e-12, "velocities at the ends")
    assert found.position.max() < 1e-12 and found.rotation.max() < 1e-12 and 0 < found.manipulability.min() < 1


@pytest.mark.parametrize("times", [None, pytest.param([0.3, 1.1, 2.0], marks=pytest.mark.slow)])
def test_velocities_and_accelerations_are_those_of_the_frame(arm, times):
    """Return qd and qdd whose twists and twist rates are the derivatives of the poses."""
    middle = arm.pose([0.5, -0.5, 0.45, 0.6, 0.8, 0.0], "link6")
    ends = [arm.pose(START, "link6"), arm.pose(END, "link6")]
    options = {"duration": 1.3} if times is None else {"times": times}
    poses = ends if times is None else [ends[0], middle, ends[1]]
    found = arm.cartesian_motion(poses, "link6", q0=START, samples=161, **options)
    h = found.t[1] - found.t[0]
    inner = slice(5, 60)  # within one piece of the spline
    t = arm.twist(found.q, found.qd, "link6", axes="world")
    dt = arm.twist_rate(found.q, found.qd, found.qdd, "link6", axes="world")
    speed = (found.poses[2:, :3, 3] - found.poses[:-2, :3, 3]) / (2 * h)
    turn = rotation_vectors(found.poses[2:, :3, :3] @ np.swapaxes(found.poses[:-2, :3, :3], -1, -2)) / (2 * h)
    assert_close(t[1:-1, 3:][inner], speed[inner], 2e-3, "velocity of the origin against differences")
    assert_close(t[1:-1, :3][inner], turn[inner], 2e-3, "angular velocity against differences")
    assert_close(
        dt[1:-1][inner], ((t[2:] - t[:-2]) / (2 * h))[inner], 1e-2, "twist rates against differences of twists"
    )
    table = kt.Table(found.t, found.q, rates=found.qd, accelerations=found.qdd)
    for mine, theirs, label in zip(
        sampled(table, found.t), (found.q, found.qd, found.qdd), ("q", "qd", "qdd"), strict=True
    ):
        assert_close(mine[1:-1], theirs[1:-1], 1e-9, f"{label} of the table at its own times")


def test_points_leave_the_rotation_to_the_arm(arm):
    """Follow points with a redundant choice of joints, with velocities of least norm."""
    a, b = (arm.pose(q, "link6")[:3, 3] for q in (START, END))
    found = arm.cartesian_motion([a, b], "link6", duration=1.0, q0=START, samples=11)
    assert_close(arm.pose(found.q, "link6")[:, :3, 3], found.poses[:, :3, 3], 1e-12, "points")
    J = arm.jacobian(found.q, "link6")[:, 3:]
    projected = np.einsum("nij,njk,nk->ni", np.linalg.pinv(J), J, found.qd)
    assert_close(found.qd, projected, 1e-9, "velocities of least norm")


def test_paths_out_of_reach_name_the_time(arm):
    """Name the time at which a path leaves the workspace."""
    a = arm.pose(START, "link6")
    far = a.copy()
    far[:3, 3] += (2.0, 0.0, 0.0)
    with pytest.raises(
        kt.UnreachableError, match=r"at t = .* s of the path, inverse kinematics of 'puma560': the target"
    ):
        arm.cartesian_motion([a, far], "link6", duration=1.0, q0=START, samples=21)


CASES = {
    "one": ({"poses": [np.eye(4)]}, r"the poses of a path have shape \(1, 4, 4\)"),
    "timing": ({}, "give the times of the poses, or two poses and the duration"),
    "both": ({"duration": 1.0, "times": [0, 1]}, "times and duration are given; give one of them"),
    "falling": ({"times": [1, 0]}, r"times have shape \(2,\); expected 2 finite numbers that rise"),
    "count": ({"times": [0, 1, 2]}, r"times have shape \(3,\); expected 2 finite numbers"),
    "duration": ({"duration": -1.0}, "duration is -1; give more than zero"),
    "samples": ({"duration": 1.0, "samples": 1}, "samples is 1; give 2 or more"),
    "weights": ({"duration": 1.0, "weights": [1, 1, 1, 0, 0, 0]}, "paths take no weights: all poses"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_wrong_paths_are_refused(case, arm):
    """Refuse wrong arguments with the value and what was expected."""
    options, message = CASES[case]
    poses = options.pop("poses", [np.eye(4), np.eye(4)])
    with pytest.raises(kt.InputError, match=message):
        arm.cartesian_motion(poses, "link6", **options)


def test_closed_mechanisms_are_refused():
    """Refuse mechanisms whose joints depend on each other."""
    with pytest.raises(kt.InputError, match="'five_bar' has loops or couplings on the way to 'tool'"):
        kt.load("five_bar").cartesian_motion(np.zeros((2, 3)), "tool", duration=1.0)


def test_poses_of_angles_and_rotations_of_vectors_agree():
    """Return Rz(yaw) Ry(pitch) Rx(roll), and invert rotation vectors."""
    numbers = np.array([0.1, 0.2, 0.3, 0.4, -0.5, 0.6])
    x, y, z = (rotations(angle * np.eye(3)[k]) for k, angle in enumerate(numbers[3:]))
    assert_close(poses_of(numbers)[:3, :3], z @ y @ x, 1e-15, "roll, pitch and yaw")
    assert_close(poses_of(numbers)[:3, 3], numbers[:3], 0.0, "position")
    turn = np.array([[0.3, -1.2, 0.7], [1e-9, 2e-9, 0.0], [0.0, 0.0, 0.0]])
    assert_close(rotation_vectors(rotations(turn)), turn, 1e-15, "rotation vectors")
