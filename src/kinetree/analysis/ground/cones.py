"""Cones of contact forces, and the nearest points in them with derivatives, for many states at once.

The force (n, t1, t2) of a contact lies in Coulomb's cone |t| <= mu n if it sticks, on a ray n (1, -mu d) of the cone if
it slips along d, and is zero if it is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers

OPEN, STICK, SLIP = range(3)
"""The modes of contacts."""


@dataclass(frozen=True)
class Cones:
    """The modes of the contacts [b, n], their friction [n], and the directions of their rays [b, n, 3]."""

    modes: np.ndarray
    mu: Numbers
    rays: Numbers

    @classmethod
    def of(cls, modes: np.ndarray, mu: Numbers, slip: Numbers) -> Cones:
        """Return the cones of contacts that slip along unit vectors [b, n, 2]."""
        return cls(modes, mu, np.concatenate([np.ones_like(slip[..., :1]), -mu[:, None] * slip], axis=-1))

    def some(self, which: np.ndarray) -> Cones:
        """Return the cones of some of the states."""
        return Cones(self.modes[which], self.mu, self.rays[which])

    def nearest(self, x: Numbers) -> Numbers:
        """Return the points of the cones that are nearest to x [b, n, 3]."""
        return self._projected(x)[0]

    def nearest_and_slope(self, x: Numbers) -> tuple[Numbers, Numbers]:
        """Return the nearest points [b, n, 3] and their derivatives [b, n, 3, 3], which are symmetric.

        On the border of the cone the point is a w, with w = (1, mu e) and e the direction of x_t: its derivative has
        the part w w^T / |w|^2 along the border, and mu a / |x_t| around it.
        """
        p, a, w, size, border, inside = self._projected(x)
        slope = np.where(inside[..., None, None], np.eye(3), 0.0)
        along = np.where(border, 1.0 / (w * w).sum(axis=-1), 0.0)
        slope = slope + along[..., None, None] * w[..., :, None] * w[..., None, :]
        around = np.where(border & (self.modes == STICK), self.mu * a / np.where(size > 0, size, 1.0), 0.0)
        e = np.concatenate([-x[..., 2:], x[..., 1:2]], axis=-1) / np.where(size > 0, size, 1.0)[..., None]
        slope[..., 1:, 1:] += around[..., None, None] * e[..., :, None] * e[..., None, :]
        return p, slope

    def _projected(self, x: Numbers) -> tuple[Numbers, ...]:
        sticks = self.modes == STICK
        normal, size = x[..., 0], np.hypot(x[..., 1], x[..., 2])
        inside = sticks & (size <= self.mu * normal)
        e = x[..., 1:] / np.where(size > 0, size, 1.0)[..., None]
        own = np.concatenate([np.ones_like(e[..., :1]), self.mu[:, None] * e], axis=-1)
        w = np.where(sticks[..., None], own, self.rays)
        a = np.maximum((w * x).sum(axis=-1) / (w * w).sum(axis=-1), 0.0)
        border = ~inside & (self.modes != OPEN) & (a > 0)
        p = np.where(inside[..., None], x, np.where(border, a, 0.0)[..., None] * w)
        return p, a, w, size, border, inside


def used(f: Numbers, mu: Numbers) -> Numbers:
    """Return the part of friction that forces use, |t| / (mu n) [..., n]; 0 without a force, 1 at the limit."""
    limit = mu * f[..., 0]
    return np.hypot(f[..., 1], f[..., 2]) / np.where(limit > 0, limit, np.inf)
