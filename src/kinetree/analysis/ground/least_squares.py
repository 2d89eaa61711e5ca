"""Least squares in cones: the smallest forces f in cones with A f nearest to b, for many states at once.

Where some f satisfies A f = b, the method of multipliers finds the smallest in a few rounds. Where none does, or only
one on the borders of its cones, its multipliers grow without end. There, least squares with a small weight of |f|^2
find on which face of its cone each force lies, and Newton's method on these faces gives the forces to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ...algebra.scalars import Numbers
from ...contact_geometry.cone import OPEN, SLIP, Cones

# --- Forces in cones by their multipliers: Newton's method on a convex function with one unknown per equation.
#
# The smallest f in cones K with A f = b has multipliers y with f = P(A^T y), where P is the projection on K. They are
# the minimum of |P(A^T y)|^2 / 2 - b . y. With eps |y - y_0|^2 / 2 added, which is small, a minimum always exists: it
# is that of the augmented Lagrangian, or, with y_0 = 0, of the least squares |b - A f|^2 + eps |f|^2.

NEWTON = 60
"""The largest number of Newton steps."""
HALVINGS = 20
"""The largest number of halvings of a step."""
ROUNDING = 4e-16
"""The gradient, relative to the sizes of its terms, at which Newton's method ends."""


@dataclass(frozen=True)
class Equations:
    """Equations A f = b of forces in cones, for many states: A [b, m, n, 3], b [b, m]."""

    A: Numbers
    b: Numbers
    cones: Cones

    def some(self, which: np.ndarray) -> Equations:
        """Return the equations of some of the states."""
        return Equations(self.A[which], self.b[which], self.cones.some(which))

    def pulled(self, y: Numbers) -> Numbers:
        """Return A^T y [b, n, 3]."""
        return np.einsum("bmnk,bm->bnk", self.A, y)

    def lacking(self, f: Numbers) -> Numbers:
        """Return the residuals b - A f [b, m]."""
        return self.b - np.einsum("bmnk,bnk->bm", self.A, f)

    def forces(self, y: Numbers) -> Numbers:
        """Return P(A^T y) [b, n, 3]."""
        return self.cones.nearest(self.pulled(y))

    def value(self, y: Numbers, origin: Numbers, eps: float) -> Numbers:
        """Return the convex function [b]."""
        f, away = self.forces(y), y - origin
        return 0.5 * (f * f).sum(axis=(1, 2)) - (self.b * y).sum(axis=-1) + 0.5 * eps * (away * away).sum(axis=-1)

    def slopes(self, y: Numbers, origin: Numbers, eps: float) -> tuple[Numbers, Numbers, Numbers]:
        """Return gradient [b, m], Hessian [b, m, m], and the size of the terms of the gradient [b]."""
        f, D = self.cones.nearest_and_slope(self.pulled(y))
        rows = self.A.transpose(0, 2, 1, 3)
        hessian = (rows @ D @ rows.swapaxes(-1, -2)).sum(axis=1) + eps * np.eye(self.b.shape[-1])
        gradient = eps * (y - origin) - self.lacking(f)
        size = 1.0 + np.abs(f).max(axis=(1, 2)) + eps * np.abs(y).max(axis=-1)
        return gradient, hessian, size


def multipliers(at: Equations, origin: Numbers, eps: float, start: Numbers | None = None) -> Numbers:
    """Return the multipliers y [b, m] of all states at which the function is least."""
    y = origin.copy() if start is None else start.copy()
    todo = np.arange(len(y))
    for _ in range(NEWTON):
        sub, here, first = at.some(todo), y[todo], origin[todo]
        gradient, hessian, size = sub.slopes(here, first, eps)
        step = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        y[todo], moved = _stepped(sub, here, first, eps, step, gradient)
        ends = (np.abs(gradient).max(axis=-1) <= ROUNDING * size) | ~moved
        todo = todo[~ends]
        if not len(todo):
            break
    return y


def _stepped(at: Equations, y, origin, eps, step, gradient) -> tuple[Numbers, np.ndarray]:
    """Return y after the steps, halved until the function decreases or, near its minimum, its gradient does."""
    out, moved, todo, part = y.copy(), np.zeros(len(y), dtype=bool), np.arange(len(y)), 1.0
    value, slope = at.value(y, origin, eps), (gradient * step).sum(axis=-1)
    steep = np.abs(gradient).max(axis=-1)
    for _ in range(HALVINGS):
        sub, trial = at.some(todo), y[todo] + part * step[todo]
        better = np.abs(sub.slopes(trial, origin[todo], eps)[0]).max(axis=-1) < 0.5 * steep[todo]
        better |= sub.value(trial, origin[todo], eps) < value[todo] + 1e-4 * part * slope[todo]
        out[todo[better]], moved[todo[better]] = trial[better], True
        todo, part = todo[~better], 0.5 * part
        if not len(todo):
            break
    return out, moved


# --- Least squares on faces of cones: Newton's method from forces near the least |b - A f|, for many states at once.
#
# Each contact stays on the face on which it is found: inside of its cone, on the border with f = a (1, mu cos, mu sin),
# on its ray, or at zero. There the least squares are smooth, and Newton's method with the curvature of the border ends
# at rounding. Redundant forces change as little as possible.

STEPS = 12
"""The number of Newton steps."""
NEAR = 1e-3
"""The distance from a face, relative to the largest force, at which forces are taken to be on it."""
RANK = 1e-11
"""The ratio to the largest below which an eigenvalue counts as zero."""


def on_faces(at: Equations, f: Numbers, near: float = NEAR) -> Numbers:
    """Return forces [b, n, 3] on the faces of f with the least |b - A f|; they may be outside of the cones."""
    modes, mu = at.cones.modes, at.cones.mu
    unit = np.maximum(np.abs(f).max(axis=(1, 2), keepdims=True)[..., 0], 1e-300)
    size, normal = np.hypot(f[..., 1], f[..., 2]), f[..., 0]
    zero = (modes == OPEN) | (np.abs(f).max(axis=-1) <= near * unit)
    ray = ~zero & ((modes == SLIP) | (mu == 0.0))
    border = ~zero & ~ray & (size >= mu * normal - near * unit)
    inside = ~(zero | ray | border)
    f = np.where(zero[..., None], 0.0, f)
    for _ in range(STEPS):
        e = f[..., 1:] / np.where(border, np.hypot(f[..., 1], f[..., 2]), 1.0)[..., None]
        a = f[..., 0]
        w = np.where(border[..., None], np.concatenate([np.ones_like(e[..., :1]), mu[:, None] * e], -1), at.cones.rays)
        around = np.stack([np.zeros_like(a), -mu * e[..., 1], mu * e[..., 0]], axis=-1)
        f = np.where((border | ray)[..., None], a[..., None] * w, f)
        moves = np.where(inside[..., None, None], np.eye(3), 0.0)
        moves[..., 0] += np.where((border | ray)[..., None], w, 0.0)
        moves[..., 1] += np.where(border[..., None], a[..., None] * around, 0.0)
        step = _step(at, f, moves, around, w, a, border)
        turned = a + step[..., 0]
        angle = np.arctan2(e[..., 1], e[..., 0]) + step[..., 1]
        there = turned[..., None] * np.stack([np.ones_like(a), mu * np.cos(angle), mu * np.sin(angle)], axis=-1)
        f = np.where(inside[..., None], f + step, np.where(border[..., None], there, turned[..., None] * w))
        f = np.where(zero[..., None], 0.0, f)
    return f


def _step(at: Equations, f: Numbers, moves: Numbers, around: Numbers, w: Numbers, a: Numbers, border) -> Numbers:
    """Return the Newton step [b, n, 3] in the coordinates of the faces."""
    count, m, n, _ = at.A.shape
    J = (at.A.transpose(0, 2, 1, 3) @ moves).transpose(0, 2, 1, 3).reshape(count, m, 3 * n)
    r = at.lacking(f)
    p = at.pulled(r)
    H = J.swapaxes(-1, -2) @ J
    k = 3 * np.arange(n)
    mixed = np.where(border, (p * around).sum(axis=-1), 0.0)
    outward = np.where(border, a * (p[..., 1:] * w[..., 1:]).sum(axis=-1), 0.0)
    H[:, k, k + 1] -= mixed
    H[:, k + 1, k] -= mixed
    H[:, k + 1, k + 1] += outward
    g = (J * r[..., None]).sum(axis=1)
    sizes, V = np.linalg.eigh(H)
    kept = np.abs(sizes) > RANK * np.abs(sizes).max(axis=-1, keepdims=True)
    inverse = np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0)
    return (V @ (inverse * (V.swapaxes(-1, -2) @ g[..., None])[..., 0])[..., None])[..., 0].reshape(count, n, 3)


EPS = 1e-7
"""The weight of the proximal term of the method of multipliers, relative to A A^T."""
ROUNDS = 8
"""The number of rounds of the method of multipliers. Each divides the residual by the ratio of A A^T to EPS."""
WEIGHTS = (1e-2, 1e-4, 1e-6)
"""Weights of |f|^2 in the least squares that find the faces, relative to A A^T."""
FACES = (1e-3, 1e-5, 1e-2)
"""Distances from a face that are tried, relative to the largest force."""
FALLS = 0.3
"""The part of the residual before a round below which that after it shows convergence."""
SETTLED = 1e-13
"""The residual, relative to b, that is zero."""
OPTIMAL = 1e-10
"""The largest violation of the conditions of least squares by accepted forces, relative to b."""


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
