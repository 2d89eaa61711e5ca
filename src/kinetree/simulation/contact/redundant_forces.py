"""Forces of redundant contacts: among those with the same accelerations, some that lie in their cones.

The four corners of a box share its weight in many ways. The sum of the squared distances of all forces from their cones
is convex and smooth, and zero where all are inside. Newton's method with the exact second derivatives minimizes it over
the forces that change no acceleration.
"""

from __future__ import annotations

import numpy as np

ROUNDS = 60
"""The largest number of Newton steps."""
INSIDE = 1e-11
"""The distance from a cone, in parts of the largest force, that counts as inside."""


def null_space(A: np.ndarray, rank: float) -> np.ndarray:
    """Return an orthonormal basis of the forces without effect, as columns."""
    _, sizes, rows = np.linalg.svd(A)
    count = int((sizes > rank * sizes.max(initial=0.0)).sum())
    return rows[count:].T


def within_cones(f: np.ndarray, free: np.ndarray, mu: np.ndarray, along: np.ndarray) -> np.ndarray | None:
    """Return forces f + free z [n, 3] inside of their cones, or None if there are none.

    `along` [n] is true for forces that keep their direction, as friction of sliding contacts: they must only push.
    """
    unit = float(np.abs(f).max(initial=0.0)) or 1.0
    size = free.shape[1]
    f = f / unit
    for _ in range(ROUNDS):
        off, slope = _outside(f, mu, along)
        value = float((off * off).sum())
        if np.sqrt(value) <= INSIDE:
            return f * unit
        gradient = free.T @ off.ravel()
        if np.abs(gradient).max(initial=0.0) <= 1e-3 * value or not size:
            return None  # the least sum is not zero
        hessian = free.T @ slope @ free
        step = -np.linalg.lstsq(hessian + 1e-14 * np.eye(size), gradient, rcond=1e-13)[0]
        f = _shortened(f, (free @ step).reshape(-1, 3), mu, along, value)
    return None


def _shortened(f: np.ndarray, step: np.ndarray, mu: np.ndarray, along: np.ndarray, value: float) -> np.ndarray:
    """Return f after the step, or a part of it, that reduces the sum."""
    part = 1.0
    while part > 1e-6:
        off, _ = _outside(f + part * step, mu, along)
        if (off * off).sum() < value:
            break
        part *= 0.5
    return f + part * step


def _outside(f: np.ndarray, mu: np.ndarray, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f minus its projection on the cones [n, 3], and its derivative [3 n, 3 n]."""
    off = np.zeros_like(f)
    slope = np.zeros((f.size, f.size))
    for k, (normal, x, y) in enumerate(f):
        own = slice(3 * k, 3 * k + 3)
        size = np.hypot(x, y)
        if along[k]:
            if normal < 0:
                off[k, 0] = normal
                slope[3 * k, 3 * k] = 1.0
        elif size <= mu[k] * normal:
            continue
        elif mu[k] * size <= -normal:  # the tip of the cone is nearest
            off[k] = f[k]
            slope[own, own] = np.eye(3)
        else:
            c = 1.0 / (1.0 + mu[k] ** 2)
            e = np.array([0.0, x / size, y / size])
            out = np.array([-mu[k], e[1], e[2]])
            depth = (size - mu[k] * normal) * c
            off[k] = depth * out
            across = np.diag([0.0, 1.0, 1.0]) - np.outer(e, e)
            slope[own, own] = c * np.outer(out, out) + (depth / size) * across
    return off, slope
