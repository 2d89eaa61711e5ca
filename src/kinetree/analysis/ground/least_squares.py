"""Least squares in cones: the smallest forces f in cones with A f nearest to b, for many states at once.

Where some f satisfies A f = b, the method of multipliers finds the smallest in a few rounds. Where none does, or only
one on the borders of its cones, its multipliers grow without end. There, least squares with a small weight of |f|^2
find on which face of its cone each force lies, and Newton's method on these faces gives the forces to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ...algebra.arrays import Numbers
from .cones import OPEN, Cones
from .dual_newton import Equations, multipliers
from .face_newton import on_faces

EPS = 1e-7
"""The weight of the proximal term of the method of multipliers, in parts of A A^T."""
ROUNDS = 8
"""The number of rounds of the method of multipliers. Each divides the residual by the ratio of A A^T to EPS."""
WEIGHTS = (1e-2, 1e-4, 1e-6)
"""Weights of |f|^2 in the least squares that find the faces, in parts of A A^T."""
FACES = (1e-3, 1e-5, 1e-2)
"""Distances from a face that are tried, in parts of the largest force."""
FALLS = 0.3
"""The part of the residual before a round below which that after it shows convergence."""
SETTLED = 1e-13
"""The residual, in parts of b, that is zero."""
OPTIMAL = 1e-10
"""The largest violation of the conditions of least squares by accepted forces, in parts of b."""


@dataclass(frozen=True)
class Smallest:
    """The smallest forces [b, n, 3], the residuals b - A f [b, m], and whether they are least up to rounding [b]."""

    forces: Numbers
    residual: Numbers
    settled: np.ndarray


def smallest_forces(A: Numbers, b: Numbers, cones: Cones) -> Smallest:
    """Return the smallest forces in cones with A f nearest to b, for A [b, m, n, 3] and b [b, m]."""
    unit, size = np.linalg.norm(b, axis=-1), np.sqrt((A * A).sum(axis=(1, 2, 3)))
    forces, settled = np.zeros((*A.shape[:1], *A.shape[2:])), np.ones(len(b), dtype=bool)
    active = np.flatnonzero((unit > 0) & (size > 0) & (cones.modes != OPEN).any(axis=-1))
    scale = size[active]
    at = Equations(A[active] / scale[:, None, None, None], b[active] / unit[active, None], cones.some(active))
    f, done = _by_multipliers(at)
    rest = np.flatnonzero(~done)
    if len(rest):
        f[rest], done[rest] = _by_faces(at.some(rest), f[rest])
    forces[active], settled[active] = f * (unit[active] / scale)[:, None, None], done
    return Smallest(forces, Equations(A, b, cones).lacking(forces), settled)


def _by_multipliers(at: Equations) -> tuple[Numbers, np.ndarray]:
    """Return forces, and the states at which they satisfy A f = b."""
    y, todo, done = np.zeros_like(at.b), np.arange(len(at.b)), np.zeros(len(at.b), dtype=bool)
    before = np.full(len(y), np.inf)
    for _ in range(ROUNDS):
        sub = at.some(todo)
        y[todo] = multipliers(sub, y[todo], EPS)
        lack = np.abs(sub.lacking(sub.forces(y[todo]))).max(axis=-1)
        done[todo] = lack <= SETTLED
        goes_on = (lack > SETTLED) & (lack < FALLS * before[todo])
        before[todo] = lack
        todo = todo[goes_on]
        if not len(todo):
            break
    return at.forces(y), done


def _by_faces(at: Equations, first: Numbers) -> tuple[Numbers, np.ndarray]:
    """Return forces of least |b - A f|, and the states at which they satisfy the conditions of least squares.

    `first` are those of the method of multipliers.
    """
    y = np.zeros_like(at.b)
    for weight in WEIGHTS:
        y = multipliers(at, np.zeros_like(y), weight, y)
    starts = at.forces(y), first
    f, best = starts[0].copy(), _violation(at, starts[0])
    for start, near in product(starts, FACES):
        todo = np.flatnonzero(best > OPTIMAL)
        if not len(todo):
            break
        sub = at.some(todo)
        new = sub.cones.nearest(on_faces(sub, start[todo], near))
        found = _violation(sub, new)
        better = found < best[todo]
        f[todo[better]], best[todo[better]] = new[better], found[better]
    return f, best <= OPTIMAL


def _violation(at: Equations, f: Numbers) -> Numbers:
    """Return the largest violation of the conditions of least |b - A f| for f in the cones [b].

    With p = A^T (b - A f), p is in the polar cone, so that its nearest point in the cone is zero, and f . p is zero.
    """
    p = at.pulled(at.lacking(f))
    off = np.abs(at.cones.nearest(p)).max(axis=(1, 2))
    return np.maximum(off, np.abs((f * p).sum(axis=(1, 2))))
