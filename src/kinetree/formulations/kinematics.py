"""Poses and velocities of the bodies of a mechanism in the ground's axes, the basis of every formulation here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import joints as joint_kinds
from ..algebra.vectors import from_moments
from ..errors import InputError
from ..model.mechanism import Mechanism, resolve_parts

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class BodyState:
    """One body at one instant; all vectors in the ground's axes.

    R holds the body's axes as columns, o its origin (that of its joint) and c its center of mass; w is its angular
    velocity and v the velocity of o. P [6, k] holds the joint's motion [omega; v] at o and dP its rate; I is about c.
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

    @property
    def d(self) -> Matrix:
        """The vector from the origin to the center of mass."""
        return self.c - self.o


def skew(a: ArrayLike) -> Matrix:
    """Return the matrix of the cross product a x."""
    x, y, z = np.asarray(a, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def body_states(mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None) -> list[BodyState]:
    """Return the state of every body for coordinates q [nq] and joint velocities qd [nv], zero by default."""
    q, qd = _vector("q", q, mechanism.nq), _vector("qd", np.zeros(mechanism.nv) if qd is None else qd, mechanism.nv)
    values = mechanism.values()
    out: list[BodyState] = []
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        body, joint = resolve_parts(body, values), resolve_parts(joint, values)
        kind, parent = joint_kinds.kind(joint.kind), mechanism.parents[i]
        mine, dofs = q[mechanism.q_slices[i]].tolist(), mechanism.v_slices[i]
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


def gravity(mechanism: Mechanism) -> Matrix:
    """Return the acceleration of gravity [m/s^2]."""
    return np.array(resolve_parts(mechanism.gravity, mechanism.values()), dtype=float)


def _motion(b: BodyState):
    return b.R, b.o, b.w, b.v


def _columns(work: Matrix, columns, count: int = 0) -> Matrix:
    if not columns:
        return np.zeros((6, count))
    return np.array([[*(work @ np.array(t.w)), *(work @ np.array(t.v))] for t in columns]).T


def _vector(name: str, x: ArrayLike, size: int) -> Matrix:
    array = np.asarray(x, dtype=float)
    if array.shape != (size,):
        raise InputError(f"{name} has shape {array.shape}; expected ({size},): one state at a time")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has entries that are not finite")
    return array
