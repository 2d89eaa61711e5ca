"""Working frames: where each body's arithmetic is done, chosen so that little of it is left.

A body's own frame is its user's choice. For the sweeps any other frame fixed to the body will do, and constants absorb
the difference. Along a chain of axes the frames of Denavit and Hartenberg leave the least: z along the joint's axis, x
along the common normal to the axis of the (main) child, the origin at the foot of the normal from the parent's axis.
Then a turn from parent to child is Rx(alpha) Rz(q + theta), two planar turns, and the child's origin lies at (a, 0, b).
A tip has no child to face: its x axis points at the mass centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ... import joints as joint_kinds
from ...algebra.rotations import Planar, Rotation, constant
from ...algebra.vectors import IDENTITY, ZERO, Matrix, Vector
from ...joints import ROTATION, TRANSLATION
from ...model.mechanism import Mechanism, resolved
from .common_normals import FLAT, foot, main_children, norm, normal

NOISE = 16 * np.finfo(float).eps
"""Entries this small are the rounding of a zero in products of three rotations."""


@dataclass(frozen=True)
class WorkingFrame:
    """A body's working frame: its axes (columns) and origin in the body's own frame."""

    axes: Matrix = IDENTITY
    origin: Vector = ZERO


def plain_frames(mechanism: Mechanism, values) -> list[WorkingFrame]:
    """Return the joints' canonical axes at the joints' own origins, for numbers of any sort."""
    joints = (resolved(j, values) for j in mechanism.joints)
    return [WorkingFrame(joint_kinds.kind(j.kind).frame(j)) for j in joints]


def chosen_frames(mechanism: Mechanism) -> list[WorkingFrame]:
    """Return Denavit and Hartenberg's frames where joints have one axis, the canonical ones elsewhere."""
    values = mechanism.values()
    joints = [resolved(j, values) for j in mechanism.joints]
    main = main_children(mechanism.parents, [joint_kinds.kind(j.kind).AXIAL is not None for j in joints])
    out: list[WorkingFrame] = []
    for i, joint in enumerate(joints):
        axes = np.array(joint_kinds.kind(joint.kind).frame(joint), dtype=float)
        if not _has_axis(joints, i):
            out.append(WorkingFrame(_tuples(axes)))
            continue
        z = axes[:, 2]
        parent = mechanism.parents[i]
        origin = _origin(joint, z, out[parent] if parent >= 0 else WorkingFrame(), _has_axis(joints, parent))
        child = main[i]
        if child is not None:
            axes = _facing(axes, z, origin, joints[child])
        elif _is(joint, ROTATION):
            axes = _turned(axes, z, np.array(resolved(mechanism.bodies[i].com, values), dtype=float))
        out.append(WorkingFrame(_tuples(axes), tuple(map(float, origin))))  # type: ignore[arg-type]
    return out


def _has_axis(joints, i: int) -> bool:
    return i >= 0 and joint_kinds.kind(joints[i].kind).AXIAL is not None


def _is(joint, what: str) -> bool:
    return joint_kinds.kind(joint.kind).AXIAL == what


def _origin(joint, z, parent: WorkingFrame, parent_has_axis: bool):
    """Return the working origin in the body's frame: the foot of the normal from the parent's axis (or origin)."""
    R, p = np.array(joint.placement.rotation, dtype=float), np.array(joint.placement.translation, dtype=float)
    arm = p - np.array(parent.origin)  # from the parent's working origin to the joint, in the parent's frame
    if _is(joint, TRANSLATION):
        return _cleared(-(R.T @ arm), 1 + np.abs(arm).max())  # any point will do: the parent's own
    axis, across = R @ z, np.array(parent.axes, dtype=float)[:, 2]
    s, usable = foot(across, axis, arm)
    if not (parent_has_axis and usable):
        s = -(axis @ arm)
    return _cleared(s * z, 1 + np.abs(arm).max())


def _facing(axes, z, origin, child):
    """Return axes turned about z so that x points along the common normal to the child's axis."""
    R, p = np.array(child.placement.rotation, dtype=float), np.array(child.placement.translation, dtype=float)
    direction = R @ np.array(joint_kinds.kind(child.kind).frame(child), dtype=float)[:, 2]
    x, there, crossing = normal(z, direction, p - origin)
    if not there or not (crossing or _is(child, ROTATION)):
        return axes
    return _turned(axes, z, x / norm(x))


def _turned(axes, z, direction):
    """Return axes turned about z so that x points along a direction, as far as that is across z."""
    across = direction - (direction @ z) * z
    if np.linalg.norm(across) <= FLAT * (1 + np.linalg.norm(direction)):
        return axes
    x = across / np.linalg.norm(across)
    x -= (x @ z) * z  # once more, for directions almost along z
    x = _cleared(x / np.linalg.norm(x))
    return np.stack([x, _cleared(np.cross(z, x)), z], axis=1)


def standing(rotation: Matrix) -> tuple[Rotation, tuple[float, float]]:
    """Return factors F and (cos, sin) of theta with rotation = F Rz(theta).

    rotation = Rz(gamma) Rx(alpha) Rz(theta); of the two ways to write it, the one without a first turn is taken.
    """
    C = _cleared(np.array(rotation, dtype=float))
    sine = math.hypot(C[0, 2], C[1, 2])
    factors: tuple = ()
    if sine > NOISE:
        # alpha is taken negative where that turns gamma = pi into gamma = 0. For small alpha gamma is uncertain, but
        # harmless: what is left of the rotation without it decides alpha and theta.
        gamma = _pair(-C[1, 2], C[0, 2], sine if C[1, 2] <= 0 else -sine)
        C = _cleared(np.array(Planar(2, *gamma).matrix()).T @ C)
        factors = _turn(2, *gamma)
    alpha = _pair(C[2, 2], -C[1, 2], math.hypot(C[2, 2], C[1, 2]))
    theta = _pair(C[0, 0], -C[0, 1], math.hypot(C[0, 0], C[0, 1]))
    return Rotation((*factors, *_turn(0, *alpha))), theta


def _pair(c: float, s: float, size: float) -> tuple[float, float]:
    """Return cosine and sine, cleared of rounding."""
    return tuple(map(float, _cleared([c / size, s / size])))  # type: ignore[return-value]


def _turn(k: int, c: float, s: float) -> tuple:
    """Return the factors of a constant turn about axis k: none, a permutation, or a planar turn."""
    return constant(Planar(k, c, s).matrix()).factors


def _cleared(x, scale: float = 1.0):
    """Return an array with entries that are -1, 0 or 1 but for rounding set to these."""
    x = np.array(x, dtype=float)
    x[np.abs(x) <= NOISE * scale] = 0.0
    for exact in (1.0, -1.0):
        x[np.abs(x - exact) <= NOISE] = exact
    return x


def _tuples(m) -> Matrix:
    return tuple(tuple(map(float, row)) for row in m)  # type: ignore[return-value]
