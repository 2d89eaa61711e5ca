"""Common normals of joint axes, for the frames of Denavit and Hartenberg; for one body or for arrays of bodies.

z is the axis of a joint and d that of the child's joint, both of unit length in the body's frame. `arm` is the vector
from the body's joint to the child's. Vectors are arrays [..., 3].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
