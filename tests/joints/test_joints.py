"""All kinds of joints: displacement, motion, steps and random coordinates, compared with one another."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from interpreted import compute, derivative, program
from kinetree import Body, Joint, Limits, ModelError, System, UnknownNameError, build_mechanism
from kinetree.joints import KINDS, kind
from kinetree.joints._common import axes_with_z
from kinetree.joints.euler import SEQUENCES
from rigid_body import cross_matrix, transform
from strategies import ALL, MOTORS, MOVING, State, nested, random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps
ANGLES = (0.0, 1e-9, 1e-5, 1e-2, 1.0, 3.0)
EULER = [("euler", s) for s in SEQUENCES] + [("free_euler", s) for s in SEQUENCES]
EVERY = [(k, "zyx") for k in (*MOVING, *MOTORS) if k not in ("euler", "free_euler")] + EULER


def alone(what: str, sequence: str = "zyx", seed: int = 1):
    """Return one body on a general joint of a kind."""
    made = random_mechanism([what], [-1], seed)
    return replace(made, joints=(replace(made.joints[0], sequence=sequence),))


def test_list_of_kinds():
    """Find thirteen kinds, each with the same functions."""
    names = (
        "fixed revolute prismatic helical cylindrical universal planar spherical euler free free_euler rotor circuit"
    )
    assert tuple(KINDS) == tuple(names.split())
    functions = "check frame displacement motion common rate neutral integrate difference random".split()
    for name, module in KINDS.items():
        assert all(callable(getattr(module, f)) for f in functions), name
        assert len(module.UNITS) == module.NV
        assert len(module.neutral(Joint("j", name, "a", "b"))) == module.NQ


def test_an_unknown_kind_lists_the_known():
    """Mistype a kind and read the closest match, then all kinds."""
    with pytest.raises(
        UnknownNameError, match=r"joint 'j': no joint kind 'revolut'; did you mean 'revolute'\? available: fixed, "
    ):
        kind("revolut", where="joint 'j'")


@pytest.mark.parametrize(("what", "sequence"), EVERY)
def test_motion_is_the_slope_of_the_pose(what, sequence):
    """Differentiate the pose along each velocity and find the columns of P."""
    mechanism = alone(what, sequence)
    q = State(mechanism, 4).q
    T = compute(mechanism, "pose", q, frame="b0")
    J = compute(mechanism, "jacobian", q, frame="b0")
    for k in range(mechanism.nv):
        rate = compute(mechanism, "coordinate_rate", q, np.eye(mechanism.nv)[k])
        dT = derivative(program(mechanism, "pose", "b0"), [q], [rate])
        spin = np.stack([cross_matrix(w) for w in J[:, :3, k]]) @ T[:, :3, :3]
        assert_close(dT[:, :3, :3], spin, 1e-14, "dR/dq")  # 7e-16
        assert_close(dT[:, :3, 3], J[:, 3:, k], 1e-14, "dr/dq")  # 3e-16


@pytest.mark.parametrize(("what", "sequence"), EVERY)
def test_rate_of_motion(what, sequence):
    """Differentiate the joint's Jacobian in the child's axes along the motion."""
    mechanism = alone(what, sequence)
    s = State(mechanism, 5)
    rate = compute(mechanism, "coordinate_rate", s.q, s.qd)
    expected = derivative(program(mechanism, "jacobian", "b0", "body"), [s.q], [rate])
    assert_close(
        compute(mechanism, "jacobian_rate", s.q, s.qd, frame="b0", axes="body"), expected, 1e-14, "dP/dt"
    )  # 2e-15


@pytest.mark.parametrize("what", ALL)
def test_neutral_is_the_placement(what):
    """Find the child at the joint's placement at zero displacement."""
    mechanism = alone(what)
    T = compute(mechanism, "pose", System(mechanism).neutral(), frame="b0")
    assert_close(T, transform(mechanism.joints[0].placement), 8 * EPS, "neutral pose")


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("what", MOVING)
def test_integrate_and_difference_invert_each_other(what, angle):
    """Step by dq of a given size, from anywhere, and find dq again as the difference."""
    mechanism = alone(what)
    q = State(mechanism, 6, 20).q
    dq = np.random.default_rng(7).normal(size=(20, mechanism.nv))
    dq *= angle / np.linalg.norm(dq[:, :3], axis=1, keepdims=True)  # of a free joint: the angle of rotation
    there = compute(mechanism, "integrate", q, dq)
    again = compute(mechanism, "difference", q, there)
    assert_close(again, dq, 1e-12 * (1 + np.abs(dq).max()), "difference(q, integrate(q, dq))")  # 4e-15
    back = compute(mechanism, "integrate", there, compute(mechanism, "difference", there, q))
    T, T2 = (compute(mechanism, "pose", x, frame="b0") for x in (q, back))
    assert_close(T, T2, 1e-12 * (1 + np.abs(dq).max()), "there and back")  # 6e-15


@pytest.mark.parametrize("what", ["spherical", "free"])
def test_integrate_follows_a_constant_twist(what):
    """Take one step of a constant twist, or a thousand small ones, and get the same pose."""
    mechanism = alone(what)
    s = State(mechanism, 8, ())
    q = s.q
    for _ in range(1000):
        q = compute(mechanism, "integrate", q, s.qd / 1000)
    T, T2 = (compute(mechanism, "pose", x, frame="b0") for x in (q, compute(mechanism, "integrate", s.q, s.qd)))
    assert_close(T, T2, 1e-12, "a thousand steps")  # 4e-15


def test_difference_takes_the_shorter_way():
    """Rotate by 4 rad and find the shorter rotation back, of 2 pi - 4 rad."""
    mechanism = alone("spherical")
    q = State(mechanism, 9, ()).q
    there = compute(mechanism, "integrate", q, [0.0, 0.0, 4.0])
    assert_close(compute(mechanism, "difference", q, there), [0.0, 0.0, 4.0 - 2 * math.pi], 1e-14, "shorter way")


def test_half_a_turn_has_a_difference():
    """Rotate by pi and find a rotation vector of length pi with the same result."""
    mechanism = alone("spherical")
    q = State(mechanism, 10, ()).q
    there = compute(mechanism, "integrate", q, [0.0, math.pi, 0.0])
    dq = compute(mechanism, "difference", q, there)
    assert_close(np.linalg.norm(dq), math.pi, 1e-14, "length")
    T, T2 = (compute(mechanism, "pose", x, frame="b0") for x in (there, compute(mechanism, "integrate", q, dq)))
    assert_close(T, T2, 1e-14, "pose")


@pytest.mark.parametrize("factor", [-1.0, 0.01, 30.0])
@pytest.mark.parametrize("what", ["spherical", "free"])
def test_quaternions_need_not_be_unit(what, factor):
    """Scale or negate a quaternion and find the same pose and Jacobian, and unit length after a step."""
    mechanism = alone(what)
    s = State(mechanism, 11)
    stretched = s.q.copy()
    stretched[:, -4:] *= factor
    for name in ("pose", "jacobian"):
        a, b = (compute(mechanism, name, q, frame="b0") for q in (s.q, stretched))
        assert_close(a, b, 16 * EPS, name)
    after = compute(mechanism, "integrate", stretched, s.qd)
    assert_close(np.linalg.norm(after[:, -4:], axis=1), np.ones(3), 4 * EPS, "length")
    assert_close(compute(mechanism, "difference", s.q, stretched), np.zeros((3, mechanism.nv)), 16 * EPS, "difference")


def test_revolute_by_hand():
    """Rotate about z by the right-hand rule."""
    arm = build_mechanism("arm", [Body("a", 1.0)], [Joint("j", "revolute", "ground", "a")])
    c, s = math.cos(0.3), math.sin(0.3)
    expected = [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert_close(compute(arm, "pose", [0.3], frame="a"), expected, 0.0, "Rz")


def test_helical_by_hand():
    """Advance by the pitch times the angle along the axis."""
    screw = build_mechanism(
        "screw", [Body("a", 1.0)], [Joint("j", "helical", "ground", "a", axis=(0.0, 3.0, 0.0), pitch=0.2)]
    )
    assert_close(compute(screw, "pose", [0.5], frame="a")[:3, 3], [0.0, 0.1, 0.0], EPS, "advance")
    assert_close(compute(screw, "twist", [0.5], [2.0], frame="a"), [0.0, 2.0, 0.0, 0.0, 0.4, 0.0], EPS, "twist")


def test_planar_coordinates_are_fixed_in_the_parent():
    """Translate along x and y of the parent at any angle of the child."""
    disc = build_mechanism("disc", [Body("a", 1.0)], [Joint("j", "planar", "ground", "a")])
    assert_close(compute(disc, "pose", [1.0, 2.0, 0.7], frame="a")[:3, 3], [1.0, 2.0, 0.0], 0.0, "place")
    t = compute(disc, "twist", [1.0, 2.0, 0.7], [3.0, 4.0, 0.5], frame="a", axes="world")
    assert_close(t, [0.0, 0.0, 0.5, 3.0, 4.0, 0.0], 4 * EPS, "twist")


def test_universal_turns_about_the_parents_then_the_childs_axis():
    """Compose the two rotations of a Cardan joint."""
    cross = Joint("j", "universal", "ground", "a", axis=(2.0, 0.0, 0.0), axis2=(0.0, 0.0, 0.5))
    made = build_mechanism("cardan", [Body("a", 1.0)], [cross])
    R = compute(made, "pose", [0.4, -0.9], frame="a")[:3, :3]
    first = np.array([[1, 0, 0], [0, math.cos(0.4), -math.sin(0.4)], [0, math.sin(0.4), math.cos(0.4)]])
    second = np.array([[math.cos(-0.9), -math.sin(-0.9), 0], [math.sin(-0.9), math.cos(-0.9), 0], [0, 0, 1]])
    assert_close(R, first @ second, 4 * EPS, "R")


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, -2, 0), (0, 0, 1), (0, 0, -1), (0.3, -0.5, 0.9), (1e-8, 1.0, 0.0)])
def test_axes_with_z_are_right_handed(axis):
    """Complete an axis to a right-handed set of unit axes."""
    R = np.array(axes_with_z(tuple(map(float, axis))))
    assert_close(R.T @ R, np.eye(3), 4 * EPS, "orthonormal")
    assert_close(R[:, 2], np.array(axis) / np.linalg.norm(axis), 2 * EPS, "z")
    assert np.linalg.det(R) > 0


@pytest.mark.parametrize(("what", "data", "message"), [
    ("revolute", {"axis": (0.0, 0.0, 0.0)},
     r"joint 'j': the axis \(0\.0, 0\.0, 0\.0\) has no direction; give three numbers"),
    ("universal", {"axis2": (0.0, 0.0, 0.0)}, r"joint 'j': the axis2 \(0\.0, 0\.0, 0\.0\) has no direction"),
    ("universal", {"axis2": (1.0, 0.0, 1.0)}, "joint 'j': the two axes of a universal joint enclose 45 degrees; "
                                              "they must be perpendicular; use two revolute joints for other angles"),
    ("euler", {"sequence": "xxy"}, "joint 'j': 'xxy' is not an Euler sequence; use one of xyx, xyz, xzx, "),
    ("free_euler", {"sequence": "abc"}, "joint 'j': 'abc' is not an Euler sequence"),
])  # fmt: skip
def test_impossible_joints_are_refused(what, data, message):
    """Refuse joints without a valid axis or sequence, and read the remedy."""
    with pytest.raises(ModelError, match=message):
        build_mechanism("bad", [Body("a", 1.0)], [Joint("j", what, "ground", "a", **data)])


@pytest.mark.parametrize("what", [k for k in MOVING if k not in ("spherical", "free")])
def test_random_coordinates_keep_the_limits(what):
    """Draw many coordinates and find all of them between the limits."""
    n = kind(what).NQ
    lower, upper = (0.1,) * n, (0.4,) * n
    joint = Joint("j", what, "a", "b", limits=Limits(lower, upper))
    rng = np.random.default_rng(0)
    drawn = np.array([kind(what).random(joint, rng) for _ in range(200)])
    assert drawn.min() >= 0.1
    assert drawn.max() <= 0.4
    assert np.ptp(drawn, axis=0).min() > 0.2


@pytest.mark.parametrize(
    "limits",
    [
        Limits(lower=(5.0,)),
        Limits(upper=(-5.0,)),
        Limits((-math.inf,), (-5.0,)),
    ],
)
def test_random_coordinates_keep_a_limit_beyond_a_turn(limits):
    """Draw an angle with only one limit, which is more than half a revolution from zero."""
    q = kind("revolute").random(Joint("j", "revolute", "a", "b", limits=limits), np.random.default_rng(0))[0]
    assert q >= (limits.lower or (-math.inf,))[0]
    assert q <= (limits.upper or (math.inf,))[0]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_random_euler_angles_stay_away_from_the_singular_one(sequence):
    """Draw Euler angles and find them away from the singular angle."""
    joint = Joint("j", "euler", "a", "b", sequence=sequence)
    rng = np.random.default_rng(0)
    for _ in range(50):
        columns = np.array(
            [c.w for c in kind("euler").motion(joint, kind("euler").random(joint, rng), (0.0,) * 3).columns]
        )
        assert abs(np.linalg.det(columns)) > 0.2


def test_random_rotations_are_uniform():
    """Draw many quaternions of unit length and find no preferred direction."""
    rng = np.random.default_rng(0)
    drawn = np.array([kind("spherical").random(None, rng) for _ in range(2000)])
    assert_close(np.linalg.norm(drawn, axis=1), np.ones(2000), 4 * EPS, "length")
    assert_close(drawn.T @ drawn / 2000, np.eye(4) / 4, 0.03, "second moments")  # 1 / sqrt(2000)
    assert nested(drawn[0]) != nested(drawn[1])
