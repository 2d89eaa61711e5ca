"""Poses and velocities of the bodies of a mechanism in the ground's axes, the basis of every formulation here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import joints as joint_kinds
from ..algebra.nodes import Node
from ..algebra.spatial import Twist
from ..algebra.vectors import from_moments, to_vector
from ..errors import InputError
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import Body

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class BodyState:
    """One body at one instant; all vectors in the ground's axes.

    R holds the body's axes as columns, o its origin (that of its joint) and c its center of mass; w is its angular
    velocity and v the velocity of o. P [6, k] holds the joint's motion [omega; v] at o and dP its rate; I is about c.
    `deformed` has the mass and the convective matrix [6 + m, 6 + m] of a deformed body, about o. `node` has the motions
    S [6, m] of a node per rate of each mode, about the origin of its body, and their rates.
    """

    name: str
    parent: int
    R: Matrix
    o: Matrix
    c: Matrix
    w: Matrix
    v: Matrix
    P: Matrix
    dP: Matrix
    m: float
    I: Matrix  # noqa: E741 - the papers' letter
    armature: Matrix
    dofs: slice
    deformed: tuple[Matrix, Matrix] | None = None
    node: tuple[Matrix, Matrix] | None = None

    @property
    def d(self) -> Matrix:
        """The vector from the origin to the center of mass."""
        return self.c - self.o


def skew(a: ArrayLike) -> Matrix:
    """Return the matrix of the cross product a x."""
    x, y, z = np.asarray(a, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def body_states(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, *, flexible: bool = False
) -> list[BodyState]:
    """Return the state of every body for coordinates q [nq] and joint velocities qd [nv], zero by default.

    Mechanisms with flexible bodies are refused by their kinds of joint unless the caller knows them.
    """
    q, qd = _vector("q", q, mechanism.nq), _vector("qd", np.zeros(mechanism.nv) if qd is None else qd, mechanism.nv)
    values = mechanism.values()
    out: list[BodyState] = []
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        body, joint = resolve_parts(body, values), resolve_parts(joint, values)
        kind, parent = joint_kinds.kind(joint.kind), mechanism.parents[i]
        mine, dofs = q[mechanism.q_slices[i]].tolist(), mechanism.v_slices[i]
        if flexible and isinstance(kind, joint_kinds.Elastic):
            carrier = i if kind.node is None else parent
            e, de = q[mechanism.q_slices[carrier]], qd[mechanism.v_slices[carrier]]
            if kind.node is None:
                out.append(_deformed(out[parent], parent, body, e, de, dofs))
            else:
                node = resolve_parts(mechanism.bodies[parent], values).flexible.modal.node(kind.node)
                out.append(_at_node(out[parent], parent, body, node, e, de, dofs))
            continue
        Rp, op, wp, vp = (np.eye(3), *np.zeros((3, 3))) if parent < 0 else _motion(out[parent])
        # R0 holds the joint's own axes (z along its axis) in the ground; in the child they have the same columns.
        axes = np.array(kind.frame(joint), dtype=float)
        R0 = Rp @ np.array(joint.placement.rotation, dtype=float) @ axes
        before, turn, after = kind.displacement(joint, mine)
        work = R0 @ np.array(turn.matrix(), dtype=float)
        o = (
            op
            + Rp @ np.array(joint.placement.translation, dtype=float)
            + R0 @ np.array(before)
            + work @ np.array(after)
        )
        motion = kind.motion(joint, mine, qd[dofs].tolist())
        P = _columns(work, motion.columns)
        relative = P @ qd[dofs]
        w = wp + relative[:3]
        v = vp + np.cross(wp, o - op) + relative[3:]
        dP = np.vstack([skew(w) @ P[:3], skew(w) @ P[3:]]) + _columns(work, motion.rates or (), kind.NV)
        R = work @ axes.T
        inertia = R @ np.array(from_moments(body.inertia), dtype=float) @ R.T
        c = o + R @ np.array(body.com, dtype=float)
        armature = np.array(joint.armature or (0.0,) * kind.NV, dtype=float)
        out.append(BodyState(body.name, parent, R, o, c, w, v, P, dP, float(body.mass), inertia, armature, dofs))
    return out


def _deformed(above: BodyState, parent: int, body: Body, e: Matrix, de: Matrix, dofs: slice) -> BodyState:
    """Return the state of a deformed body on its frame at the joint: t = [A t_p; 0] + P e', P = [0; 1]."""
    assert body.flexible is not None, "modes carry a deformed body"
    m = len(e)
    mass = body.flexible.modal.moments.at(tuple(e.tolist()))
    w, v = above.R.T @ above.w, above.R.T @ above.v
    convection = mass.coriolis(Twist(to_vector(w.tolist()), to_vector(v.tolist()), tuple(de.tolist())))
    units = [Twist(to_vector(row[:3]), to_vector(row[3:6]), tuple(row[6:])) for row in np.eye(6 + m).tolist()]
    turn = np.eye(6 + m)
    turn[:3, :3] = turn[3:6, 3:6] = above.R
    M, dM = (turn @ _array([(x @ t).entries() for t in units]).T @ turn.T for x in (mass, convection))
    P = np.eye(6 + m)[:, 6:]
    return BodyState(
        body.name, parent, above.R, above.o, above.o, above.w, above.v, P, np.zeros_like(P), 0.0, np.zeros((3, 3)),
        np.zeros(m), dofs, deformed=(M, dM),
    )  # fmt: skip


def _at_node(above: BodyState, parent: int, body: Body, node: Node, e: Matrix, de: Matrix, dofs: slice) -> BodyState:
    """Return the state of a node of a deformed body: t_k = A_k (t + S_k e').            docs/theory/flexible.md (4)"""
    A = node.at(tuple(e.tolist()), tuple(de.tolist()))
    R = above.R @ np.array(A.E.matrix(), dtype=float)
    turn = np.kron(np.eye(2), above.R)
    w, v = above.R.T @ above.w, above.R.T @ above.v
    rates = A.motion.rate(Twist(to_vector(w.tolist()), to_vector(v.tolist()))).columns
    S, dS = (turn @ _array([t.entries() for t in columns]).T for columns in (A.S, rates))
    r = above.R @ np.array(A.r, dtype=float)
    w, v = np.split(np.concatenate([above.w, above.v]) + S @ de, 2)
    none = np.zeros((6, 0))
    return BodyState(
        body.name, parent, R, above.o + r, above.o + r, w, v + np.cross(w, r), none, none, 0.0, np.zeros((3, 3)),
        np.zeros(0), dofs, node=(S, dS),
    )  # fmt: skip


def gravity(mechanism: Mechanism) -> Matrix:
    """Return the acceleration of gravity [m/s^2]."""
    return np.array(resolve_parts(mechanism.gravity, mechanism.values()), dtype=float)


def _motion(b: BodyState):
    return b.R, b.o, b.w, b.v


def _columns(work: Matrix, columns, count: int = 0) -> Matrix:
    if not columns:
        return np.zeros((6, count))
    return np.array([[*(work @ np.array(t.w)), *(work @ np.array(t.v))] for t in columns]).T


def _array(rows: Sequence[Sequence[Any]]) -> Matrix:
    return np.array(rows, dtype=np.float64)


def _vector(name: str, x: ArrayLike, size: int) -> Matrix:
    array = np.asarray(x, dtype=float)
    if array.shape != (size,):
        raise InputError(f"{name} has shape {array.shape}; expected ({size},): one state at a time")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has entries that are not finite")
    return array
