"""Working frames of all bodies at once, by arrays, for code with loops over the bodies of a class.

The rule is that of unrolled code (lower/common_normals.py): z along the joint's axis, x along the common normal to the
axis of the main child, the origin at the foot of the normal from the parent's axis. It is used only where both joints
have one axis, and a body on parallel axes keeps its joint's origin. Each frame therefore depends only on its
neighbors, and all are computed at once. x is perpendicular to both axes up to rounding, because the code of a lean
class omits the products with the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import joints as joint_kinds
from ..lower.common_normals import CROSSING, foot, main_children, normal

LEAN = 16 * float(np.finfo(float).eps)
"""The largest relative difference between a placement and a lean one: the rounding error of three rotations."""


@dataclass(frozen=True)
class Stands:
    """Joints as arrays: kinds, parents (-1: the ground), placements in the parents and canonical axes."""

    kinds: list[str]
    parents: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray
    axes: np.ndarray


def lean_frames(s: Stands) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return axes [n, 3, 3] and origins [n, 3] of the working frames, and which bodies have lean placements."""
    axes, origins = s.axes.copy(), np.zeros((len(s.kinds), 3))
    lean = np.zeros(len(s.kinds), dtype=bool)
    i = _followers(s)
    if not len(i):
        return axes, origins, lean
    p = s.parents[i]
    z, R, arm = s.axes[:, :, 2], s.rotations[i], s.translations[i]
    d = np.einsum("nij,nj->ni", R, z[i])  # the axis in the parent's frame
    along, near = foot(z[p], d, arm)
    origins[i] = along[:, None] * z[i]
    x, there, crossing = normal(z[p], d, arm)
    usable = there & (near | ~crossing)
    axes[p[usable]] = _facing(x[usable], z[p[usable]], d[usable], crossing[usable])
    lean[i] = _are_lean(axes, origins, s, i)
    return axes, origins, lean


def _followers(s: Stands) -> np.ndarray:
    """Return the bodies on joints of one axis that are the main child of a body on such a joint."""
    single = [joint_kinds.kind(name).AXIAL is not None for name in s.kinds]
    main = main_children(s.parents.tolist(), single)
    followers = sorted(k for parent, k in enumerate(main) if k is not None and single[parent])
    return np.array(followers, dtype=np.int64)


def _facing(x: np.ndarray, z: np.ndarray, d: np.ndarray, crossing: np.ndarray) -> np.ndarray:
    """Return axes with this z, and x along a normal; x is perpendicular to z and, where the axes cross, to d."""
    x = x / np.linalg.norm(x, axis=1)[:, None]
    for _ in range(2):
        x = x - _dot(x, z)[:, None] * z
        part = d - _dot(d, z)[:, None] * z  # perpendicular to z
        share = np.where(crossing, _dot(x, d) / np.maximum(_dot(part, part), CROSSING**2 / 4), 0.0)
        x = x - share[:, None] * part
        x = x / np.linalg.norm(x, axis=1)[:, None]
    return np.stack([x, np.cross(z, x), z], axis=2)


def _are_lean(axes: np.ndarray, origins: np.ndarray, s: Stands, i: np.ndarray) -> np.ndarray:
    """Return which placements of bodies in their parents are Rx(alpha) Rz(theta) and (a, 0, b), up to rounding."""
    p = s.parents[i]
    E = np.einsum("nji,njk,nkl->nil", axes[p], s.rotations[i], axes[i])
    place = s.translations[i] + np.einsum("nij,nj->ni", s.rotations[i], origins[i]) - origins[p]
    r = np.einsum("nji,nj->ni", axes[p], place)
    ca, sa, ct, st = E[:, 2, 2], -E[:, 1, 2], E[:, 0, 0], -E[:, 0, 1]
    zero = np.zeros_like(ca)
    rows = [[ct, -st, zero], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    expected = np.moveaxis(np.array(rows), 2, 0)
    size = np.abs(s.translations[i]).max(axis=1) + np.abs(origins[i]).max(axis=1) + np.abs(origins[p]).max(axis=1)
    return (np.abs(E - expected).max(axis=(1, 2)) <= LEAN) & (np.abs(r[:, 1]) <= LEAN * size)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ni,ni->n", a, b)
