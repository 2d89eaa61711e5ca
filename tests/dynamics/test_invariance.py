"""Invariance of the dynamics: joints reversed, reordered, locked or welded, and another root."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreted import compute, relative
from kinetree.algebra.rotations import about
from kinetree.joints import kind
from kinetree.model import GROUND, Mechanism, Placement, build_mechanism
from kinetree.model.topology import path
from rigid_body import moved, transform, welded
from strategies import MOVING, SINGLE, State, examples, mechanisms, moving_mechanisms, nested, random_mechanism
from tolerance import assert_close

REVERSIBLE = (*SINGLE, "cylindrical")


def places(mechanism: Mechanism, what: str = "NV") -> dict[str, slice]:
    """Return where in qd (or q) each joint's entries are."""
    out, at = {}, 0
    for joint in mechanism.joints:
        n = getattr(kind(joint.kind), what)
        out[joint.name] = slice(at, at + n)
        at += n
    return out


def placed(T: np.ndarray) -> Placement:
    """Return the placement of a 4x4 matrix."""
    return Placement(nested(T[:3, 3]), nested(T[:3, :3]))


def reordered(mechanism: Mechanism, other: Mechanism, x: np.ndarray, what: str = "NV") -> np.ndarray:
    """Return the entries of x, in the order of the first mechanism's joints, in that of the other's."""
    mine = places(mechanism, what)
    return np.concatenate([x[..., mine[j.name]] for j in other.joints], axis=-1)


@given(moving_mechanisms(), st.randoms(use_true_random=False))
@examples(20)
def test_order_of_the_parts_does_not_matter(mechanism, random):
    """Shuffle bodies and joints before assembly and find the same torques under the same names."""
    bodies, joints = list(mechanism.bodies), list(mechanism.joints)
    random.shuffle(bodies)
    random.shuffle(joints)
    other = build_mechanism("shuffled", bodies, joints, gravity=mechanism.gravity)
    s = State(mechanism)
    q = reordered(mechanism, other, s.q, "NQ")
    tau = compute(other, "inverse_dynamics", q, *(reordered(mechanism, other, x) for x in (s.qd, s.qdd)))
    expected = reordered(mechanism, other, compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd))
    assert_close(relative(tau, expected), 0.0, 1e-12, "tau")  # 3e-15


@given(moving_mechanisms(REVERSIBLE))
@examples(20)
def test_reversed_axes_reverse_the_coordinates(mechanism):
    """Reverse all axes, change the signs of coordinates and torques, and find the same motion."""
    joints = [replace(j, axis=tuple(-x for x in j.axis)) for j in mechanism.joints]
    other = replace(mechanism, joints=tuple(joints))
    s = State(mechanism)
    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau)
    assert_close(relative(-compute(other, "forward_dynamics", -s.q, -s.qd, -s.tau), qdd), 0.0, 1e-12, "qdd")  # 2e-14


def rerooted(mechanism: Mechanism, root: str) -> Mechanism:
    """Return a floating mechanism with another body on the free joint, and the joints between them reversed.

    The body behind a reversed joint gets a frame at that joint: the old frame moved by the joint's placement.
    """
    index = [b.name for b in mechanism.bodies].index(root)
    way = path(mechanism, index)
    shift = {mechanism.bodies[i].name: np.eye(4) for i in range(len(mechanism.bodies))}
    for i, below in itertools.pairwise(way):
        shift[mechanism.bodies[i].name] = transform(mechanism.joints[below].placement)
    bodies = [moved(b, np.linalg.inv(shift[b.name])) for b in mechanism.bodies]
    joints = [replace(mechanism.joints[0], child=root, placement=Placement())]
    for i, joint in enumerate(mechanism.joints[1:], start=1):
        parent = np.linalg.inv(shift[joint.parent])
        if i in way:  # the parent now hangs on the child, at the child's old frame
            back = placed(np.linalg.inv(shift[joint.child]))
            axis = tuple(-x for x in joint.axis)
            joints.append(replace(joint, parent=joint.child, child=joint.parent, placement=back, axis=axis))
        else:
            joints.append(replace(joint, placement=placed(parent @ transform(joint.placement))))
    return build_mechanism("rerooted", bodies, joints, gravity=mechanism.gravity)


@given(mechanisms((*REVERSIBLE, "free"), least=2, most=6, root=("free",), armature=False), st.integers(1, 5))
@examples(20)
def test_another_root_moves_the_same(mechanism, pick):
    """Choose another root of a floating tree and find the same accelerations at every joint."""
    root = mechanism.bodies[1 + pick % (len(mechanism.bodies) - 1)].name
    if any(
        mechanism.joints[i].kind == "free" for i in path(mechanism, [b.name for b in mechanism.bodies].index(root))[1:]
    ):
        return  # a free joint on the way is not reversed here
    start = replace(mechanism, joints=(replace(mechanism.joints[0], placement=Placement()), *mechanism.joints[1:]))
    other = rerooted(start, root)
    s = State(start)
    base, tau = places(start)[start.joints[0].name], s.tau.copy()
    tau[:, base] = 0.0
    qdd = compute(start, "forward_dynamics", s.q, s.qd, tau)

    T = compute(start, "pose", s.q, frame=root)
    q2, qd2, tau2 = (reordered(start, other, x, w) for x, w in ((s.q, "NQ"), (s.qd, "NV"), (tau, "NV")))
    q2[:, :7] = np.concatenate([T[:, :3, 3], quaternions(T[:, :3, :3])], axis=-1)
    qd2[:, :6] = compute(start, "twist", s.q, s.qd, frame=root)
    qdd2 = compute(other, "forward_dynamics", q2, qd2, tau2)
    expected = reordered(start, other, qdd)
    condition = float(np.linalg.cond(compute(start, "inertia_matrix", s.q)).max())
    bound = max(1e-12, condition * 1e-15)
    size = np.abs(qdd).max() + np.abs(qdd2).max()
    assert_close(qdd2[:, 6:] / size, expected[:, 6:] / size, bound, "qdd")  # 2e-14
    accelerations = [
        compute(m, "twist_rate", a, b, c, frame=root, axes="world")
        for m, a, b, c in ((start, s.q, s.qd, qdd), (other, q2, qd2, qdd2))
    ]
    assert_close(accelerations[0] / size, accelerations[1] / size, bound, "acceleration of the root")  # 3e-15


def quaternions(R: np.ndarray) -> np.ndarray:
    """Return unit quaternions of rotation matrices, from the largest column of 4 q q^T."""
    out = []
    for m in R:
        K = np.empty((4, 4))
        K[3, 3] = 1 + np.trace(m)
        for i in range(3):
            K[i, 3] = K[3, i] = m[(i + 2) % 3, (i + 1) % 3] - m[(i + 1) % 3, (i + 2) % 3]
            for j in range(3):
                K[i, j] = 1 - np.trace(m) + 2 * m[i, i] if i == j else m[i, j] + m[j, i]
        column = K[:, np.argmax(np.diag(K))]
        out.append(column / np.linalg.norm(column))
    return np.array(out)


def locked(mechanism: Mechanism, name: str, q: np.ndarray) -> Mechanism:
    """Return the mechanism with one joint fixed where it is."""
    joint = mechanism.joint(name)
    alone = build_mechanism("alone", [mechanism.body(joint.child)], [replace(joint, parent=GROUND)])
    here = placed(compute(alone, "pose", q[places(mechanism, "NQ")[name]], frame=joint.child))
    fixed = replace(joint, kind="fixed", placement=here, armature=())
    return replace(mechanism, joints=tuple(fixed if j.name == name else j for j in mechanism.joints))


@given(mechanisms(MOVING, least=2, most=5), st.integers(0, 4))
@examples(30)
def test_a_locked_joint_is_a_welded_one(mechanism, pick):
    """Keep a joint at rest and find the torques of the mechanism in which it is fixed."""
    name = mechanism.joints[pick % len(mechanism.joints)].name
    s = State(mechanism, shape=())
    other = locked(mechanism, name, s.q)
    at_q, at_v = places(mechanism, "NQ")[name], places(mechanism)[name]
    qd, qdd = s.qd.copy(), s.qdd.copy()
    qd[at_v] = qdd[at_v] = 0.0
    tau = np.delete(compute(mechanism, "inverse_dynamics", s.q, qd, qdd), at_v)
    welded_tau = compute(other, "inverse_dynamics", np.delete(s.q, at_q), np.delete(qd, at_v), np.delete(qdd, at_v))
    size = np.abs(tau).max()
    assert_close(welded_tau / size, tau / size, 1e-12, "tau")  # 4e-16


@given(mechanisms(least=2, most=6, armature=False))
@examples(30)
def test_kept_fixed_joints_are_merged_ones(mechanism):
    """Merge bodies on fixed joints into their parents and find the same torques and energies."""
    bodies, joints = list(mechanism.bodies), list(mechanism.joints)
    for k in reversed(range(1, len(joints))):
        joint = joints[k]
        if joint.kind != "fixed" or joint.parent == GROUND:
            continue
        T = transform(joint.placement)
        at = next(i for i, b in enumerate(bodies) if b.name == joint.parent)
        bodies[at] = welded(joint.parent, bodies[at], moved(bodies[k], T))
        for i, other in enumerate(joints):
            if other.parent == joint.child:
                stands = placed(T @ transform(other.placement))
                joints[i] = replace(other, parent=joint.parent, placement=stands)
        del bodies[k], joints[k]
    merged = build_mechanism("merged", bodies, joints, gravity=mechanism.gravity)
    s = State(mechanism)
    q, qd, qdd = (reordered(mechanism, merged, x, w) for x, w in ((s.q, "NQ"), (s.qd, "NV"), (s.qdd, "NV")))
    expected = reordered(mechanism, merged, compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd))
    assert_close(relative(compute(merged, "inverse_dynamics", q, qd, qdd), expected), 0.0, 1e-12, "tau")  # 5e-16
    T, T2 = compute(mechanism, "kinetic_energy", s.q, s.qd), compute(merged, "kinetic_energy", q, qd)
    assert_close(relative(T2, T), 0.0, 1e-12, "kinetic energy")  # 1e-15
    U, U2 = compute(mechanism, "potential_energy", s.q), compute(merged, "potential_energy", q)
    assert_close(U2 / (1 + np.abs(U).max()), U / (1 + np.abs(U).max()), 1e-12, "potential energy")  # 2e-16


@pytest.mark.parametrize("what", SINGLE)
def test_a_turned_world_turns_gravity(what):
    """Rotate a whole mechanism with gravity and find the same torques."""
    made = random_mechanism([what, "spherical", what], [-1, 0, 1], 9)
    T = np.eye(4)
    T[:3, :3] = np.array((about(0, 0.3) @ about(2, 1.1)).matrix())
    root = replace(made.joints[0], placement=placed(T @ transform(made.joints[0].placement)))
    turned = replace(made, joints=(root, *made.joints[1:]), gravity=nested(T[:3, :3] @ np.array(made.gravity)))
    s = State(made)
    tau, tau2 = (compute(m, "inverse_dynamics", s.q, s.qd, s.qdd) for m in (made, turned))
    assert_close(relative(tau2, tau), 0.0, 1e-13, "tau")  # 1e-15
