"""Cubic splines through points as polynomials about their knots: natural ones with open ends, and periodic ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Knot:
    """A spline about one knot, for the distance u from it: value + slope u + bend u^2 + (left or right) u^3.

    The polynomial holds from `below` to `above`. Each coefficient has a number per component. At the open ends of a
    natural spline, which is straight there, the polynomial goes on without limit.
    """

    at: float
    value: tuple[float, ...]
    slope: tuple[float, ...]
    bend: tuple[float, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    below: float
    above: float


def knots_of(s: Sequence[float], values: Sequence[Sequence[float]], *, closed: bool) -> tuple[Knot, ...]:
    """Return the spline through values at increasing s.

    A closed one is periodic: the last value, at the end of the period, is that of the first, and has no knot.
    """
    at, y = np.array(s, dtype=float), np.array(values, dtype=float)
    h = np.diff(at)
    bends = (_periodic if closed else _natural)(h, y)
    cubic = np.diff(bends, axis=0) / (6.0 * h[:, None])
    slopes = np.diff(y, axis=0) / h[:, None] - h[:, None] * (2.0 * bends[:-1] + bends[1:]) / 6.0
    out = []
    count, far = len(h), 1e6 * float(at[-1] - at[0])
    none = np.zeros(y.shape[1])
    for k in range(count if closed else count + 1):
        first, last = not closed and k == 0, not closed and k == count
        slope = slopes[k] if k < count else slopes[-1] + h[-1] * (bends[-2] + bends[-1]) / 2.0
        left, right = none if first else cubic[k - 1], none if last else cubic[k % count]
        value, slope, bend, left, right = (tuple(x.tolist()) for x in (y[k], slope, bends[k] / 2.0, left, right))
        below = -far if first else -float(h[k - 1])
        out.append(Knot(float(at[k]), value, slope, bend, left, right, below, far if last else float(h[k % count])))
    return tuple(out)


def _natural(h: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the second derivatives at the knots, zero at both ends."""
    n = len(h) + 1
    A, b = np.eye(n), np.zeros_like(y)
    for k in range(1, n - 1):
        A[k, k - 1 : k + 2] = h[k - 1] / 6.0, (h[k - 1] + h[k]) / 3.0, h[k] / 6.0
        b[k] = (y[k + 1] - y[k]) / h[k] - (y[k] - y[k - 1]) / h[k - 1]
    return np.linalg.solve(A, b)


def _periodic(h: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the second derivatives at the knots, the same at both ends."""
    n = len(h)
    A, b = np.zeros((n, n)), np.zeros((n, y.shape[1]))
    for k in range(n):
        before, after = (k - 1) % n, (k + 1) % n
        A[k, before] += h[before] / 6.0
        A[k, k] += (h[before] + h[k]) / 3.0
        A[k, after] += h[k] / 6.0
        b[k] = (y[k + 1] - y[k]) / h[k] - (y[k] - y[before]) / h[before]
    bends = np.linalg.solve(A, b)
    return np.vstack([bends, bends[:1]])
