"""The recursive Newton-Euler algorithm of [Goncalves2023] 4.2 and 5.1, for all instants of a motion at once.

Joints are fixed, prismatic or revolute about a local axis. Vectors are in the axes of their body, [..., 3]. Point A_i
is the point of body i in its joint, and B the point of its parent there. Forces are balanced body by body, so that the
loads of closed loops can be included.

Differs from the paper: (1) has a plus sign, by which a body with a positive d_i moves against its axis. Table 2 has
that for body 4 and the opposite for bodies 1 and 2. Here a body moves along its axis, and the axis of body 4 is -z.
(17) prints s1 s3 for s1 s2 in its upper right corner. (19) prints A_(i-1) for A_i. (18), (29)-(31) have no fixed
joints; these are joints at rest here, after the rotations (2)-(4). Gravity is not printed: the ground accelerates
upward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import from_moments
from ..errors import InputError
from ..model.mechanism import Mechanism, resolve_parts
from .kinematics import Matrix
from .linear_actuators import Motion


@dataclass(frozen=True)
class Link:
    """A body with the joint before it: type "P", "R" or "F", axis z, constant rotation, and B on the parent."""

    name: str
    joint: str
    parent: int
    type: str
    z: Matrix
    turn: Matrix
    B: Matrix
    mass: float
    C: Matrix
    I: Matrix  # noqa: E741 - the paper's letter


@dataclass(frozen=True)
class LinkMotion:
    """A body in motion: R to the parent's axes, R0 to the ground's, its origin O there, A, and accelerations [..., 3].

    `w`, `dw` are the angular velocity and acceleration, `pA` and `pC` the accelerations of A and C. That of A is of the
    point of the body that is there at this instant, gravity included.
    """

    R: Matrix
    R0: Matrix
    O: Matrix  # noqa: E741 - the paper's letter
    A: Matrix
    w: Matrix
    dw: Matrix
    pA: Matrix
    pC: Matrix


@dataclass(frozen=True)
class Load:
    """A force f and a torque mu that a body applies at a point to another body, in the axes of the former."""

    f: Matrix
    mu: Matrix
    point: Matrix


def links(mechanism: Mechanism, joints: Sequence[str]) -> list[Link]:
    """Return the bodies on the named joints, parents first."""
    values, out, index = mechanism.values(), [], {}
    for k, joint in enumerate(mechanism.joints):
        if joint.name not in joints:
            continue
        body, joint = resolve_parts(mechanism.bodies[k], values), resolve_parts(joint, values)
        kind = {"fixed": "F", "prismatic": "P", "revolute": "R"}.get(joint.kind)
        if kind is None or sorted(map(abs, joint.axis)) != [0, 0, 1]:
            raise InputError(
                f"joint {joint.name!r} is {joint.kind} about {joint.axis}; this recursion is for fixed, prismatic and "
                "revolute joints about x, y or z"
            )
        index[body.name] = len(out)
        out.append(
            Link(
                body.name,
                joint.name,
                index.get(joint.parent, -1),
                kind,
                np.array(joint.axis, dtype=float),
                np.array(joint.placement.rotation, dtype=float),
                np.array(joint.placement.translation, dtype=float),
                float(body.mass),
                np.array(body.com, dtype=float),
                np.array(from_moments(body.inertia), dtype=float),
            )
        )
    return out


def zxz(z1: ArrayLike, x2: ArrayLike, z3: ArrayLike) -> Matrix:
    """Return the rotation matrix of intrinsic Z-X-Z Euler angles, [..., 3, 3]."""
    z1, x2, z3 = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (z1, x2, z3)))
    c1, s1, c2, s2, c3, s3 = np.cos(z1), np.sin(z1), np.cos(x2), np.sin(x2), np.cos(z3), np.sin(z3)
    rows = [
        [c1 * c3 - s1 * c2 * s3, -c1 * s3 - s1 * c2 * c3, s1 * s2],  # Differs from the paper: printed s1 s3
        [s1 * c3 + c1 * c2 * s3, c1 * c2 * c3 - s1 * s3, -c1 * s2],
        [s2 * s3, s2 * c3, c2],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)  # (17)


def forward(tree: Sequence[Link], motion: Mapping[str, Motion], gravity: ArrayLike) -> list[LinkMotion]:
    """Return every body in motion, from the motions of the joints by name; gravity [3] is in the ground's axes."""
    lead = np.broadcast_shapes(*(np.shape(x) for m in motion.values() for x in m))
    zero, still = np.zeros(lead), np.zeros((*lead, 3))
    lift = np.broadcast_to(-np.asarray(gravity, dtype=float), still.shape)
    out: list[LinkMotion] = []
    for i in tree:
        p = out[i.parent] if i.parent >= 0 else None
        x, xd, xdd = motion.get(i.joint, (zero, zero, zero))
        R = i.turn @ _joint_rotation(i, x)  # (18), (2)-(4)
        R0 = R if p is None else p.R0 @ R  # (16)
        w, dw = (still, still) if p is None else (p.w, p.dw)
        pB = lift if p is None else _point(p, i.B)
        slides, turns = (x if i.type == "P" else zero), (x if i.type == "R" else zero)
        A = -slides[..., None] * i.z  # (1)
        own, rate, second = _times(i.turn, i.z), xd[..., None], xdd[..., None]
        if turns is x:
            dw = _back(R, dw + second * own + rate * np.cross(w, own))  # (30)
            w = _back(R, w + rate * own)  # (29)
            pA = _back(R, pB)  # (31)
        else:
            w, dw = _back(R, w), _back(R, dw)  # (29), (30)
            pA = _back(R, pB)
            if i.type == "P":
                pA = _back(R, pB + second * own) + 2 * rate * np.cross(w, _back(R, own))  # (31)
        at = np.zeros(3) if p is None else p.O
        O = at + _times(np.eye(3) if p is None else p.R0, i.B) - _times(R0, A)  # noqa: E741 - (15), (19)
        rAC = i.C - A
        pC = pA + np.cross(dw, rAC) + np.cross(w, np.cross(w, rAC))  # (31), (32)
        out.append(LinkMotion(R, R0, O, A, w, dw, pA, pC))
    return out


def balance(i: Link, at: LinkMotion, loads: Sequence[Load]) -> tuple[Matrix, Matrix]:
    """Return the sum of the forces of preceding bodies on i, and their torque about its center of mass.

    `loads` are those that the body applies to succeeding bodies. The torque is the left side of (34) with the forces
    of the preceding bodies: sum(mu + f x r_AC).
    """
    force = i.mass * at.pC + sum(load.f for load in loads)  # (33)
    torque = _times(i.I, at.dw) + np.cross(at.w, _times(i.I, at.w))
    return force, torque + sum(load.mu + np.cross(load.f, i.C - load.point) for load in loads)  # (34)


def single(i: Link, at: LinkMotion, loads: Sequence[Load]) -> tuple[Matrix, Matrix]:
    """Return the force and torque of the only preceding body at A."""
    force, torque = balance(i, at, loads)
    return force, torque - np.cross(force, i.C - at.A)  # (34)


def onto_parent(i: Link, at: LinkMotion, f: Matrix, mu: Matrix) -> Load:
    """Return the load of the parent on body i, in the axes of the parent."""
    return Load(_times(at.R, f), _times(at.R, mu), np.broadcast_to(i.B, f.shape))


def at_origin(at: LinkMotion, f: Matrix, mu: Matrix) -> Matrix:
    """Return the wrench [n; f] at the origin of a body from the one at A, [..., 6]."""
    return np.concatenate([mu + np.cross(at.A, f), f], axis=-1)


def _joint_rotation(i: Link, x: Matrix) -> Matrix:
    """Return the rotation of a joint by x."""
    if i.type != "R":
        return zxz(0.0, 0.0, np.zeros_like(x))
    angle = x * i.z.sum()
    k = int(np.argmax(np.abs(i.z)))
    return (zxz(0, angle, 0), zxz(np.pi / 2, angle, -np.pi / 2), zxz(0, 0, angle))[k]  # (18)


def _point(at: LinkMotion, point: Matrix) -> Matrix:
    """Return the acceleration of a point of a body."""
    r = point - at.A
    return at.pA + np.cross(at.dw, r) + np.cross(at.w, np.cross(at.w, r))  # (31)


def _times(R: Matrix, v: Matrix) -> Matrix:
    return (R @ v[..., None])[..., 0]


def _back(R: Matrix, v: Matrix) -> Matrix:
    return _times(np.swapaxes(R, -1, -2), v)
