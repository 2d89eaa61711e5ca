"""Coulomb's cone |t| <= mu n of contact forces (n, t1, t2): nearest points in it, and residuals of the laws of contact.

All that computes contact forces uses this module: runs from event to event, time steps, and forces of the ground in a
given motion. Two projections have to be told apart. The nearest point of the cone itself, in all three directions,
belongs to least squares. Signorini's conditions and Coulomb's law, for rigid contacts, use the disc of the cone at the
present normal force: friction does not open the contact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..algebra.scalars import Numbers, Scalar, absolute, maximum, sqrt, where
from ..algebra.vectors import Vector, to_vector

# --- Residuals: what is left of Signorini's conditions and Coulomb's law at a contact, without units ---
#
# A contact has a force or impulse p = (p_n, p_t), a velocity or acceleration u = (u_n, u_t), and friction mu. The
# conditions hold exactly where p is a fixed point:                                               [AlartCurnier1991]
#
#     p_n = max(0, p_n - r u_n),    p_t = the point of the disc of radius mu p_n nearest to p_t - r u_t
#
# for any r > 0. The difference of the two sides depends on r, and on units. Here r = F / S, with a force F of the
# contact and a velocity S of the problem, and the difference is divided by F:
#
#     F = max(|p|, V / w),    S = V + c max over all contacts of w |p|
#
# V is the largest velocity without forces, and w the mean of the three diagonal entries of W of the contact: V / w
# would stop it if it moved alike in all directions. A residual e thus means that changes of p by e F and of u by e S
# satisfy the conditions. It does not change with the units of length, mass and time.
#
# F is the force itself where it is larger than V / w, as that of a leg on a small mass moment of inertia. There w is
# almost entirely the compliance of rotation about the center of mass, and the force along the leg is larger by the
# condition number of W. The second term of S is the rounding of u = W p + b, which is a small difference of terms of
# the size w |p|.

ROUNDING = {"float64": 1e-3, "float32": 0.1}
"""The number c: the rounding of w |p| relative to it, divided by residuals that are accepted, with some margin."""
DOUBTFUL = {"float64": 1e-9, "float32": 1e-3}
"""The largest residual of a step that is in no doubt. Solutions are looked for until it is a hundredth of this or less:
the difference is left to problems that almost have none, as of wedged bodies."""


@dataclass(frozen=True)
class Probe:
    """The point (push, x, y) = p - r u, the length of (x, y), and the disc of friction.

    `shut` tells whether the contact is closed, and `holds` whether friction may act.
    """

    push: Scalar
    x: Scalar
    y: Scalar
    size: Scalar
    radius: Scalar
    shut: Scalar
    holds: Scalar

    def lacks(self, p: Sequence[Scalar]) -> Vector:
        """Return the differences between p and its equations along the normal and both tangents."""
        part = where(self.radius < self.size, self.radius, 1.0) / where(self.radius < self.size, self.size, 1.0)
        aims = where(self.shut, self.push, 0.0), *(where(self.holds, z * part, 0.0) for z in (self.x, self.y))
        return to_vector(a - aim for a, aim in zip(p, aims, strict=True))


def probe(p: Sequence[Scalar], u: Sequence[Scalar], mu: Scalar, r: Scalar, grip: Scalar = None) -> Probe:
    """Return the point of a contact whose nearest allowed one is compared with p.

    A `grip` is friction by impulses along the normal that are given already and not among p: the radius of the disc is
    mu p_n + grip, also where p_n = 0.
    """
    push, x, y = (a - r * b for a, b in zip(p, u, strict=True))
    shut = push > 0.0
    loaded, more = (p[0] > 0.0, 0.0) if grip is None else ((p[0] > 0.0) & shut, grip)
    holds = shut if grip is None else shut | (grip > 0.0)
    radius = mu * where(loaded, p[0], 0.0)
    return Probe(push, x, y, sqrt(x * x + y * y), radius if grip is None else radius + more, shut, holds)


def length(p: Sequence[Scalar]) -> Scalar:
    """Return |p|."""
    return sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])


def force_unit(size: Scalar, w: Scalar, speed: Scalar) -> Scalar:
    """Return F of a contact with |p| = `size`, for the largest velocity without forces."""
    return maximum(size, speed / w)


def speed_unit(loads: Iterable[Scalar], speed: Scalar, dtype: str = "float64") -> Scalar:
    """Return S for w |p| of all contacts."""
    return speed + ROUNDING[dtype] * maximum(*loads)


def residual(lacks: Iterable[Scalar], unit: Scalar) -> tuple[Scalar, Scalar]:
    """Return the residuals along the normal and the tangents of a contact with the force unit F."""
    normal, *tangents = (absolute(x) / unit for x in lacks)
    return normal, maximum(*tangents)


# --- Nearest points of cones with derivatives, for many states at once ---
#
# The force of a contact lies in the cone if it sticks, on a ray n (1, -mu d) of it if it slips along d, and is zero if
# it is open.

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


def used_friction(f: Numbers, mu: Numbers) -> Numbers:
    """Return the part of friction that forces use, |t| / (mu n) [..., n]; 0 without a force, 1 at the limit."""
    limit = mu * f[..., 0]
    return np.hypot(f[..., 1], f[..., 2]) / np.where(limit > 0, limit, np.inf)


# --- Forces of redundant contacts: among those with the same accelerations, some that lie in their cones ---
#
# The four corners of a box share its weight in many ways. The sum of the squared distances of all forces from their
# cones is convex and smooth, and zero where all are inside. Newton's method with the exact second derivatives
# minimizes it over the forces that change no acceleration.

ROUNDS = 60
"""The largest number of Newton steps."""
INSIDE = 1e-11
"""The distance from a cone, relative to the largest force, that counts as inside."""


def null_space(A: Numbers, rank: float) -> Numbers:
    """Return an orthonormal basis of the forces without effect, as columns."""
    _, sizes, rows = np.linalg.svd(A)
    count = int((sizes > rank * sizes.max(initial=0.0)).sum())
    return rows[count:].T


def within_cones(f: Numbers, free: Numbers, cones: Cones) -> Numbers | None:
    """Return forces f + free z [n, 3] inside of the cones of one state, or None if there are none.

    Forces on rays are so already, and `free` leaves them there: they must only push.
    """
    unit = float(np.abs(f).max(initial=0.0)) or 1.0
    n, size = len(f), free.shape[1]
    f = f / unit
    for _ in range(ROUNDS):
        off, value = _outside(f, cones)
        if np.sqrt(value) <= INSIDE:
            return f * unit
        gradient = free.T @ off.ravel()
        if np.abs(gradient).max(initial=0.0) <= 1e-3 * value or not size:
            return None  # the least sum is not zero
        _, slope = cones.nearest_and_slope(f[None])
        blocks = free.reshape(n, 3, size)
        hessian = np.tensordot(blocks, (np.eye(3) - slope[0]) @ blocks, ((0, 1), (0, 1)))
        step = -np.linalg.lstsq(hessian + 1e-14 * np.eye(size), gradient, rcond=1e-13)[0]
        f = _shortened(f, (free @ step).reshape(n, 3), cones, value)
    return None


def _shortened(f: Numbers, step: Numbers, cones: Cones, value: float) -> Numbers:
    """Return f after the step, or a part of it, that reduces the sum."""
    part = 1.0
    while part > 1e-6 and _outside(f + part * step, cones)[1] >= value:
        part *= 0.5
    return f + part * step


def _outside(f: Numbers, cones: Cones) -> tuple[Numbers, float]:
    """Return forces less the nearest points of their cones [n, 3], and the sum of the squares."""
    off = f - cones.nearest(f[None])[0]
    return off, float((off * off).sum())
