"""Working frames: the frames in which the arithmetic of each body is done, chosen so that few operations remain.

The user chooses a body's own frame. For the sweeps any other frame fixed to the body is equally correct, and constants
absorb the difference. Along a chain of axes the frames of Denavit and Hartenberg need the fewest operations. Their z is
along the joint's axis, x along the common normal to the axis of the (main) child, and the origin is the foot of the
normal from the parent's axis. Then the rotation from parent to child is Rx(alpha) Rz(q + theta), two planar rotations,
and the child's origin is at (a, 0, b). At a tip, which has no child, the x axis points to the center of mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ... import joints as joint_kinds
from ...algebra.rotations import Planar, Rotation, constant
from ...algebra.vectors import IDENTITY, ZERO, Matrix, Vector, to_matrix, to_vector
from ...joints import ROTATION, TRANSLATION
from ...model.mechanism import Mechanism, resolve_parts

# --- Common normals of joint axes, for the frames of Denavit and Hartenberg; for one body or for arrays of bodies.
#
# z is the axis of a joint and d that of the child's joint, both of unit length in the body's frame. `arm` is the vector
# from the body's joint to the child's. Vectors are arrays [..., 3].

CROSSING = 1e-6
"""Axes whose directions differ by less than this (the sine of their angle) count as parallel.

Angles in model files are often rounded to six digits, which tilts axes that are meant to be parallel by some 4e-6. With
a larger value such mechanisms would have fewer planar rotations. With a smaller one the direction of the normal, whose
error is eps / sine, would be noise."""

FAR = 4.0
"""The largest distance to the foot of a common normal that is used, in arm lengths; beyond it axes are almost parallel.

Moments about such a distant origin are differences of numbers that are larger by this factor."""

FLAT = 1e-9
"""The least ratio of the part of an arm perpendicular to z to the arm itself; a smaller part is rounding error."""


def main_children(parents: Sequence[int], single: Sequence[bool]) -> list[int | None]:
    """Return the main child of each body: of its children on `single`-axis joints, that with most bodies, or None."""
    weight = [1] * len(parents)
    for k in range(len(parents) - 1, -1, -1):
        if parents[k] >= 0:
            weight[parents[k]] += weight[k]
    main: list[int | None] = [None] * len(parents)
    for k, parent in enumerate(parents):
        if parent >= 0 and single[k]:
            best = main[parent]
            if best is None or weight[k] > weight[best]:
                main[parent] = k
    return main


def foot(z: np.ndarray, d: np.ndarray, arm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance along d from the child's joint to the foot of the common normal, and whether it is usable.

    It is not, and the distance is 0, where the axes are parallel or the foot is FAR.
    """
    sine, cosine = norm(np.cross(z, d)), np.vecdot(z, d)
    crossing = sine > CROSSING
    # The lines arm + s d and u z are nearest to each other where their difference is perpendicular to both.
    s = np.vecdot(cosine[..., None] * z - d, arm) / np.where(crossing, sine * sine, 1.0)
    usable = crossing & (np.abs(s) <= FAR * norm(arm))
    return np.where(usable, s, 0.0), usable


def normal(z: np.ndarray, d: np.ndarray, arm: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a direction for the x axis, whether it exists, and whether the axes cross.

    The direction is along the common normal. For parallel axes it is the part of the arm perpendicular to z.
    """
    across = np.cross(z, d)
    crossing = norm(across) > CROSSING
    flat = arm - np.vecdot(arm, z)[..., None] * z
    there = crossing | (norm(flat) > FLAT * norm(arm))
    return np.where(crossing[..., None], across, flat), there, crossing


def norm(x: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors."""
    return np.sqrt(np.vecdot(x, x))


NOISE = 16 * np.finfo(float).eps
"""The magnitude below which an entry is the rounding error of a zero, for products of three rotations."""


@dataclass(frozen=True)
class WorkingFrame:
    """A body's working frame: its axes (columns) and origin in the body's own frame."""

    axes: Matrix = IDENTITY
    origin: Vector = ZERO


def plain_frames(mechanism: Mechanism, values) -> list[WorkingFrame]:
    """Return frames with the canonical axes of the joints at the bodies' own origins, for scalars of any type."""
    joints = (resolve_parts(j, values) for j in mechanism.joints)
    return [WorkingFrame(joint_kinds.kind(j.kind).frame(j)) for j in joints]


def chosen_frames(mechanism: Mechanism) -> list[WorkingFrame]:
    """Return the frames of Denavit and Hartenberg where joints have one axis, the canonical ones elsewhere."""
    values = mechanism.values()
    joints = [resolve_parts(j, values) for j in mechanism.joints]
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
            axes = _with_x(axes, z, np.array(resolve_parts(mechanism.bodies[i].com, values), dtype=float))
        out.append(WorkingFrame(_tuples(axes), to_vector(map(float, origin))))
    return out


def _has_axis(joints, i: int) -> bool:
    return i >= 0 and joint_kinds.kind(joints[i].kind).AXIAL is not None


def _is(joint, what: str) -> bool:
    return joint_kinds.kind(joint.kind).AXIAL == what


def _origin(joint, z, parent: WorkingFrame, parent_has_axis: bool):
    """Return the working origin in the body's frame: the foot of the normal from the parent's axis or origin."""
    R, p = np.array(joint.placement.rotation, dtype=float), np.array(joint.placement.translation, dtype=float)
    arm = p - np.array(parent.origin)  # from the parent's working origin to the joint, in the parent's frame
    if _is(joint, TRANSLATION):
        return _cleared(-(R.T @ arm), 1 + np.abs(arm).max())  # any point is correct: the parent's origin costs least
    axis, parent_axis = R @ z, np.array(parent.axes, dtype=float)[:, 2]
    s, usable = foot(parent_axis, axis, arm)
    if not (parent_has_axis and usable):
        s = -(axis @ arm)
    return _cleared(s * z, 1 + np.abs(arm).max())


def _facing(axes, z, origin, child):
    """Return axes rotated about z so that x is along the common normal to the child's axis."""
    R, p = np.array(child.placement.rotation, dtype=float), np.array(child.placement.translation, dtype=float)
    direction = R @ np.array(joint_kinds.kind(child.kind).frame(child), dtype=float)[:, 2]
    x, there, crossing = normal(z, direction, p - origin)
    if not there or not (crossing or _is(child, ROTATION)):
        return axes
    return _with_x(axes, z, x / norm(x))


def _with_x(axes, z, direction):
    """Return axes rotated about z so that x is along the part of a direction perpendicular to z."""
    part = direction - (direction @ z) * z
    if np.linalg.norm(part) <= FLAT * (1 + np.linalg.norm(direction)):
        return axes
    x = part / np.linalg.norm(part)
    x -= (x @ z) * z  # a second time, because the first result is inaccurate for directions almost along z
    x = _cleared(x / np.linalg.norm(x))
    return np.stack([x, _cleared(np.cross(z, x)), z], axis=1)


def split_rotation(rotation: Matrix) -> tuple[Rotation, tuple[float, float]]:
    """Return factors F and (cos, sin) of theta with rotation = F Rz(theta).

    rotation = Rz(gamma) Rx(alpha) Rz(theta) has two solutions; the one with gamma = 0 is returned if there is one.
    """
    C = _cleared(np.array(rotation, dtype=float))
    sine = math.hypot(C[0, 2], C[1, 2])
    factors: tuple = ()
    if sine > NOISE:
        # alpha is negative where that makes gamma 0 instead of pi. For small alpha, gamma is uncertain. This is
        # harmless: alpha and theta are computed from the rotation that remains without gamma.
        gamma = _pair(-C[1, 2], C[0, 2], sine if C[1, 2] <= 0 else -sine)
        C = _cleared(np.array(Planar(2, *gamma).matrix()).T @ C)
        factors = _planar_factors(2, *gamma)
    alpha = _pair(C[2, 2], -C[1, 2], math.hypot(C[2, 2], C[1, 2]))
    theta = _pair(C[0, 0], -C[0, 1], math.hypot(C[0, 0], C[0, 1]))
    return Rotation((*factors, *_planar_factors(0, *alpha))), theta


def _pair(c: float, s: float, size: float) -> tuple[float, float]:
    """Return c / size and s / size, cleared of rounding errors."""
    c, s = map(float, _cleared([c / size, s / size]))
    return c, s


def _planar_factors(k: int, c: float, s: float) -> tuple:
    """Return the factors of a constant rotation about axis k: none, a permutation, or a planar rotation."""
    return constant(Planar(k, c, s).matrix()).factors


def _cleared(x, scale: float = 1.0):
    """Return an array with entries that are -1, 0 or 1 up to rounding set to exactly these."""
    x = np.array(x, dtype=float)
    x[np.abs(x) <= NOISE * scale] = 0.0
    for exact in (1.0, -1.0):
        x[np.abs(x - exact) <= NOISE] = exact
    return x


def _tuples(m) -> Matrix:
    return to_matrix(map(float, row) for row in m)
