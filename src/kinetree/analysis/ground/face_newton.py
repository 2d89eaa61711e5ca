"""Least squares on faces of cones: Newton's method from forces near the least |b - A f|, for many states at once.

Each contact stays on the face on which it is found: inside of its cone, on the border with f = a (1, mu cos, mu sin),
on its ray, or at zero. There the least squares are smooth, and Newton's method with the curvature of the border ends at
rounding. Redundant forces change as little as possible.
"""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers
from .cones import OPEN, SLIP
from .dual_newton import Equations

STEPS = 12
"""The number of Newton steps."""
NEAR = 1e-3
"""The distance from a face, in parts of the largest force, at which forces are taken to be on it."""
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
