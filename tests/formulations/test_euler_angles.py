"""Euler-angle joints as intersecting revolute joints: their tables and the mechanisms built from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from interpreted import compute
from kinetree.algebra.rotations import from_euler
from kinetree.formulations.denoc import denoc
from kinetree.formulations.euler_angles import TABLES, euler_table, intersecting_revolutes
from kinetree.joints.euler import SEQUENCES
from kinetree.model import Joint, Limits, Parameter, Placement, build_mechanism, parse
from rounding_scales import EPS, convective_scale, inertia_scale, torque_scale
from strategies import State, examples, random_mechanism
from tolerance import assert_close


def test_all_sequences_have_a_table():
    """Find exactly the twelve sequences of the joint kind."""
    assert set(TABLES) == set(SEQUENCES)
    assert all(abs(a) == 90 for table in TABLES.values() for a in table.alpha[:2])  # axes at right angles


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_rows_turn_as_the_sequence(sequence):
    """Multiply the rotations of the rows at random angles and find R_a R_b R_c."""
    for angles in np.random.default_rng(1).uniform(-3, 3, (20, 3)):
        expected = np.array(from_euler(sequence, angles.tolist()))
        assert_close(euler_table(sequence).rotation(angles), expected, 1e-15, "R")


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_rows_are_a_denavit_hartenberg_table(sequence):
    """Build an arm from the rows by from_dh and find the same rotation between the constant ones, at one point."""
    table = euler_table(sequence)
    rows = [row | {"mass": 1.0, "inertia": (1, 1, 1, 0, 0, 0)} for row in table.rows()]
    arm = kt.from_dh(rows, degrees=True).mechanism
    q = np.array([0.3, -0.7, 1.1])
    pose = compute(arm, "pose", q, frame="tool")
    before = np.array(from_euler("zx", np.radians(table.before).tolist()))
    after = np.array(from_euler("z", [np.radians(table.after)]))
    assert_close(before @ pose[:3, :3] @ after, np.array(from_euler(sequence, q.tolist())), 1e-15, "R")
    assert not pose[:3, 3].any()


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), free=st.booleans())
@examples(20)
def test_revolute_joints_have_the_equations_of_the_euler_joint(seed, free):
    """Replace Euler joints by revolute ones on massless bodies and find the same I, C, g, tau and qdd."""
    kinds = ["free_euler" if free else "euler", "revolute", "euler"]
    mechanism = random_mechanism(kinds, [-1, 0, 0], seed, armature=True)
    chain = intersecting_revolutes(mechanism)
    assert (chain.nq, chain.nv) == (mechanism.nq, mechanism.nv)
    assert {j.kind for j in chain.joints} <= {"revolute", "prismatic"}
    s = State(mechanism, seed, ())
    for name, arguments, scale in (
        ("inertia_matrix", (s.q,), inertia_scale(mechanism, s.q)),
        ("convective_matrix", (s.q, s.qd), convective_scale(mechanism, s.q, s.qd)),
        ("gravity_torque", (s.q,), torque_scale(mechanism, s.q, 0 * s.qd)),
        ("inverse_dynamics", (s.q, s.qd, s.qdd), torque_scale(mechanism, s.q, s.qd, s.qdd)),
    ):
        assert_close(compute(chain, name, *arguments), compute(mechanism, name, *arguments), 20 * EPS * scale, name)
    for name in ("I", "C", "g"):
        a, b = denoc(chain, s.q, s.qd)[name], denoc(mechanism, s.q, s.qd)[name]
        assert_close(a, b, 20 * EPS * (inertia_scale(mechanism, s.q) + torque_scale(mechanism, s.q, s.qd)), name)
    gim = compute(mechanism, "inertia_matrix", s.q)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau)
    scale = torque_scale(mechanism, s.q, s.qd) + np.abs(s.tau).max()
    bound = 20 * EPS * (np.linalg.cond(gim) * np.abs(qdd).max() + np.abs(np.linalg.inv(gim)).max() * scale)
    assert_close(compute(chain, "forward_dynamics", s.q, s.qd, s.tau), qdd, bound, "qdd")


def test_frames_and_poses_stay():
    """Find the tool and every named body at the same pose."""
    mechanism = random_mechanism(["euler", "prismatic", "free_euler"], [-1, 0, 1], 7)
    chain = intersecting_revolutes(mechanism)
    s = State(mechanism, 1, ())
    for frame in ("tool", "b0", "b2"):
        a, b = compute(chain, "pose", s.q, frame=frame), compute(mechanism, "pose", s.q, frame=frame)
        assert_close(a, b, 20 * EPS * (1 + np.abs(b).max()), frame)
    assert [b.name for b in chain.bodies][:4] == ["b0_1", "b0_2", "b0", "b1"]
    assert all(b.mass == 0 for b in chain.bodies if b.name.startswith("b0_"))


def test_limits_losses_and_parameters_go_to_their_axes():
    """Split limits, armature and damping, and keep a parameter in the placement."""
    made = random_mechanism(["euler"], [-1], 3)
    limits = Limits((-1.0, -2.0, -3.0), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    joint = Joint(
        "wrist",
        "euler",
        "ground",
        "b0",
        Placement((parse("h"), 0.0, 0.0)),
        sequence="xyx",
        limits=limits,
        damping=(0.1, 0.2, 0.3),
        armature=(0.4, 0.5, 0.6),
    )
    made = build_mechanism("wrist", made.bodies, [joint], parameters=[Parameter("h", 0.5, free=True)])
    first, second, third = intersecting_revolutes(made).joints
    assert [j.name for j in (first, second, third)] == ["wrist_1", "wrist_2", "wrist_3"]
    assert (second.limits.lower, second.limits.effort, second.damping, second.armature) == (
        (-2.0,),
        (8.0,),
        (0.2,),
        (0.5,),
    )
    assert first.placement.translation[0] == parse("h") and third.child == "b0"
    assert third.axis == (1.0, 0.0, 0.0)  # the letter, in the body's own frame


def test_other_joints_stay_and_unknown_sequences_are_refused():
    """Leave a mechanism without Euler joints unchanged, and read the available sequences."""
    arm = kt.load("planar_3r").mechanism
    assert intersecting_revolutes(arm).joints == arm.joints
    with pytest.raises(
        kt.UnknownNameError, match="no Euler sequence 'xxz'; did you mean '...'\\? available: xyx, xyz, xzx"
    ):
        euler_table("xxz")


def test_tables_are_printed_in_a_line():
    """Read the table of zxz."""
    assert str(euler_table("zxz")) == (
        "zxz  before   +0,   +0  q1  -90,  -90  q2   +0,  +90  q3  +90,   +0  after   +0"
    )
