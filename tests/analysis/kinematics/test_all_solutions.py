"""All solutions of inverse kinematics, against textbook formulas of a PUMA and against searches."""

from __future__ import annotations

import itertools
from math import atan2, cos, hypot, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everyday
import kinetree as kt
from kinetree.analysis.kinematics import all_solutions as module
from tolerance import assert_close


def wrapped(q):
    """Return angles within half a revolution."""
    return (np.asarray(q) + pi) % (2 * pi) - pi


def assert_same_set(found, expected, bound, label):
    """Fail unless two sets of positions are equal, up to whole revolutions."""
    assert len(found) == len(expected), f"{label}: {len(found)} solutions, expected {len(expected)}"
    for x in expected:
        away = np.abs(wrapped(found - x)).max(axis=-1)
        assert_close(away.min(), 0.0, bound, label)


def puma(T):
    """Return the solutions of a PUMA 560 by the textbook's formulas (modified DH of Craig's book, chapter 4).

    There, axes 4 and 6 and the forearm have the opposite sense: d4 < 0, and the tool is rotated by pi about x.
    """
    a2, a3, d3, d4 = 0.4318, -0.0203, 0.2435 - 0.0934, -0.4331
    R = T[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    x, y, z = T[:3, 3]
    out = []
    for arm, elbow, flip in itertools.product((1, -1), (1, -1), (0, 1)):
        t1 = atan2(y, x) - atan2(d3, arm * sqrt(x * x + y * y - d3 * d3))
        K = (x * x + y * y + z * z - a2**2 - a3**2 - d3**2 - d4**2) / (2 * a2)
        t3 = atan2(a3, d4) - atan2(K, elbow * sqrt(a3**2 + d4**2 - K * K))
        c1, s1, c3, s3 = cos(t1), sin(t1), cos(t3), sin(t3)
        reach = c1 * x + s1 * y
        t23 = atan2((-a3 - a2 * c3) * z - reach * (d4 - a2 * s3), (a2 * s3 - d4) * z + (a3 + a2 * c3) * reach)
        c23, s23 = cos(t23), sin(t23)
        t4 = atan2(-R[0, 2] * s1 + R[1, 2] * c1, -R[0, 2] * c1 * c23 - R[1, 2] * s1 * c23 + R[2, 2] * s23) + flip * pi
        c4, s4 = cos(t4), sin(t4)
        s5 = -(R[0, 2] * (c1 * c23 * c4 + s1 * s4) + R[1, 2] * (s1 * c23 * c4 - c1 * s4) - R[2, 2] * s23 * c4)
        c5 = -R[0, 2] * c1 * s23 - R[1, 2] * s1 * s23 - R[2, 2] * c23
        t5 = atan2(s5, c5)
        s6 = -R[0, 0] * (c1 * c23 * s4 - s1 * c4) - R[1, 0] * (s1 * c23 * s4 + c1 * c4) + R[2, 0] * s23 * s4
        c6 = (
            R[0, 0] * ((c1 * c23 * c4 + s1 * s4) * c5 - c1 * s23 * s5)
            + R[1, 0] * ((s1 * c23 * c4 - c1 * s4) * c5 - s1 * s23 * s5)
            - R[2, 0] * (s23 * c4 * c5 + c23 * s5)
        )
        out.append([t1, t23 - t3, t3, -t4, t5, -atan2(s6, c6)])
    return np.array(out)


def pieper_arm(seed):
    """Return an arm of awkward dimensions with a spherical wrist; some of its first axes are parallel or intersect."""
    rng = np.random.default_rng(seed)
    angle = lambda: rng.uniform(-2.0, 2.0)  # noqa: E731
    rows = [
        {"alpha": angle(), "a": rng.uniform(0.1, 0.5), "b": rng.uniform(0.1, 0.5), "theta": angle()} for _ in range(6)
    ]
    if seed % 4 == 1:
        rows[1]["a"] = 0.0
    if seed % 4 == 2:
        rows[1]["alpha"] = 0.0
    for k in (4, 5):
        rows[k] |= {"a": 0.0, "b": 0.0}
    rows[3]["b"] = rng.uniform(0.1, 0.5)
    kinds = ["revolute"] * 6
    if seed % 3 == 0:
        kinds[2] = "prismatic"
    mass = {"mass": 1.0, "com": (0.1, 0.02, 0.03), "inertia": (0.1, 0.2, 0.15, 0, 0, 0)}
    return kt.from_dh([dict(joint=k, **row, **mass) for k, row in zip(kinds, rows, strict=True)], convention="modified")


def searched(arm, T, frame, monkeypatch):
    """Return the solutions by searches alone."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "screw_chain", lambda *_: None)
        return arm.inverse_kinematics(T, frame, all=True)


def test_a_puma_has_the_eight_solutions_of_the_textbook():
    """Return the eight solutions of a PUMA in closed form, each with the pose to 1e-12, nearest to q0 first."""
    arm = kt.load("puma560")
    q, _ = arm.random_state(3, (5,))
    for x in q:
        T = arm.pose(x, "link6")
        found = arm.inverse_kinematics(T, "link6", all=True, q0=x)
        assert found.method == "closed form, spherical wrist" and found.complete and found.redundant == 0
        assert_same_set(found.q, puma(T), 1e-9, "PUMA against the textbook")
        assert_close(arm.pose(found.q, "link6"), np.broadcast_to(T, (8, 4, 4)), 1e-12, "poses of the solutions")
        assert_close(found.q[0], x, 1e-10, "the nearest solution")
        assert found.position.max() < 1e-12 and found.rotation.max() < 1e-12


@pytest.mark.slow
def test_searches_find_the_solutions_of_closed_forms(monkeypatch):
    """Return the same solutions of a Stanford arm, with its sliding joint, by closed form and by searches."""
    arm = kt.load("stanford")
    q, _ = arm.random_state(7, (1,))
    for x in q:
        T = arm.pose(x, "tool")
        found = arm.inverse_kinematics(T, "tool", all=True)
        other = searched(arm, T, "tool", monkeypatch)
        assert other.method == "search" and not other.complete
        assert_same_set(found.q, other.q, 1e-9, "closed form against searches")


@pytest.mark.slow
@settings(max_examples=24, deadline=None)
@given(st.integers(0, 10**6))
def test_random_wrists_agree_with_searches(seed):
    """Return at least the solutions that searches find, for random arms with spherical wrists."""
    arm = pieper_arm(seed)
    x, _ = arm.random_state(seed)
    frame = arm.bodies[-1].name
    T = arm.pose(x, frame)
    found = arm.inverse_kinematics(T, frame, all=True)
    assert found.method == "closed form, spherical wrist" and 1 <= len(found) <= 16
    original = module.screw_chain
    try:
        module.screw_chain = lambda *_: None
        other = arm.inverse_kinematics(T, frame, all=True)
    finally:
        module.screw_chain = original
    for y in other.q:
        assert np.abs(wrapped(found.q - y)).max(axis=-1).min() < 1e-6


@everyday.long
def test_planar_arms_have_two_solutions():
    """Return the two solutions of planar arms with two and three joints, equal to the cosine theorem's."""
    two = kt.load("planar_2r")
    x = np.array([0.4, 1.1])
    point = two.pose(x, "tool")[:3, 3]
    found = two.inverse_kinematics(point, "tool", all=True)
    l1 = np.linalg.norm(two.pose([0.0, 0.0], "link2")[:3, 3] - two.pose([0.0, 0.0], "link1")[:3, 3])
    l2 = np.linalg.norm(two.pose([0.0, 0.0], "tool")[:3, 3] - two.pose([0.0, 0.0], "link2")[:3, 3])
    r = hypot(*(point - two.pose(x, "link1")[:3, 3]))
    elbow = np.arccos((r * r - l1 * l1 - l2 * l2) / (2 * l1 * l2))
    assert found.method == "closed form, planar arm" and len(found) == 2
    assert_close(sorted(found.q[:, 1]), [-elbow, elbow], 1e-12, "elbow angles")
    three = kt.load("planar_3r")
    y = np.array([0.4, -1.1, 2.3])
    found = three.inverse_kinematics(three.pose(y, "tool"), "tool", all=True)
    assert found.method == "closed form, planar arm"
    assert_close(sorted(found.q[:, 1]), [-1.1, 1.1], 1e-12, "elbow angles of three joints")
    assert_close(found.q.sum(axis=-1) - y.sum(), np.zeros(2), 1e-12, "sum of the angles")


@pytest.mark.slow
def test_redundant_arms_list_one_solution_and_its_null_space():
    """List one solution of a redundant arm, with the velocities toward the others."""
    arm = kt.load("kuka_lwr4")
    x, _ = arm.random_state(2)
    found = arm.inverse_kinematics(arm.pose(x, "link7"), "link7", all=True)
    assert len(found) == 1 and found.redundant == 1 and found.nullspace.shape == (7, 1)
    still = arm.jacobian(found.q[0], "link7") @ found.nullspace
    assert_close(still, np.zeros((6, 1)), 1e-12, "velocity of the frame")


@pytest.mark.slow
def test_solutions_beyond_limits_are_counted():
    """List only solutions within the limits and count the others; without limits, list all."""
    arm = kt.load("puma560")
    limited = [kt.Joint(**{**vars(j), "limits": kt.Limits((-1.2,), (1.4,))}) for j in arm.joints]
    m = arm.mechanism
    tight = kt.System(kt.build_mechanism(m.name, m.bodies, limited, frames=m.frames, gravity=m.gravity))
    x = np.array([0.5, -0.4, 0.3, 0.6, 0.7, -0.2])
    T = tight.pose(x, "link6")
    found = tight.inverse_kinematics(T, "link6", all=True)
    everywhere = tight.inverse_kinematics(T, "link6", all=True, limits=False)
    assert len(everywhere) == 8 and everywhere.outside == 0
    assert len(found) + found.outside == 8 and 0 < len(found) < 8
    assert (np.abs(found.q - x).max(axis=-1) < 1e-9).any() and found.q.min() >= -1.2 and found.q.max() <= 1.4


def test_no_solution_is_an_empty_list():
    """Return no solution for a pose beyond the reach."""
    arm = kt.load("puma560")
    T = np.eye(4)
    T[:3, 3] = (3.0, 0.2, 0.4)
    assert len(arm.inverse_kinematics(T, "link6", all=True)) == 0


def test_batches_are_refused():
    """Refuse several targets, since each has its own number of solutions."""
    arm = kt.load("puma560")
    message = r"all solutions are those of one target .* the target has shape \(2, 4, 4\): call the method for each"
    with pytest.raises(kt.InputError, match=message):
        arm.inverse_kinematics(np.array([np.eye(4)] * 2), "link6", all=True)


def test_unknown_options_are_refused():
    """Refuse an option that is misspelled, also for arms whose closed form would not read it."""
    arm = kt.load("puma560")
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerence'"):
        arm.inverse_kinematics(arm.pose(arm.neutral(), "link6"), "link6", all=True, tolerence=1e-9)
