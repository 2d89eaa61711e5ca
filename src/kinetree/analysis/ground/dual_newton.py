"""Forces in cones by their multipliers: Newton's method on a convex function with one unknown per equation.

The smallest f in cones K with A f = b has multipliers y with f = P(A^T y), where P is the projection on K. They are the
minimum of |P(A^T y)|^2 / 2 - b . y. With eps |y - y_0|^2 / 2 added, which is small, a minimum always exists: it is that
of the augmented Lagrangian, or, with y_0 = 0, of the least squares |b - A f|^2 + eps |f|^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers
from .cones import Cones

NEWTON = 60
"""The largest number of Newton steps."""
HALVINGS = 20
"""The largest number of halvings of a step."""
ROUNDING = 4e-16
"""The gradient, in parts of the sizes of its terms, at which Newton's method ends."""


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
