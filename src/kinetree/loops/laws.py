"""Laws of couplings and cams on scalars of any kind: the value of f(u), its slope and its curvature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.scalars import Scalar, atan2, cos, sin, where

# --- Splines ---


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


Values = tuple[Scalar, Scalar, Scalar]


def values(law: Any, u: Scalar) -> Values:
    """Return f, f' and f'' at u."""
    if law.polynomial:
        return _polynomial(law.polynomial, u)
    return _spline(law, u) if law.points else _harmonics(law, u)


def _polynomial(coefficients: Sequence[float], u: Scalar) -> Values:
    f: Scalar = 0.0
    d: Scalar = 0.0
    dd: Scalar = 0.0
    for c in reversed(coefficients):
        f, d, dd = f * u + c, d * u + f, dd * u + 2.0 * d
    return f, d, dd


def _harmonics(law: Any, u: Scalar) -> Values:
    order = max(len(law.cosines) - 1, len(law.sines))
    f: Scalar = law.slope * u + (law.cosines[0] if law.cosines else 0.0)
    d: Scalar = law.slope
    dd: Scalar = 0.0
    c, s = cos(u), sin(u)
    ck, sk = c, s
    for k in range(1, order + 1):
        a = law.cosines[k] if k < len(law.cosines) else 0.0
        b = law.sines[k - 1] if k <= len(law.sines) else 0.0
        f, d, dd = f + (a * ck + b * sk), d + k * (b * ck - a * sk), dd - k * k * (a * ck + b * sk)
        ck, sk = ck * c - sk * s, sk * c + ck * s
    return f, d, dd


def _spline(law: object, u: Scalar) -> Values:
    """Return the values of a spline: the knot below u is found by halving."""
    knots, slope, period = _knots(law)
    x, rest = u, 0.0
    if period:
        middle = knots[0].at + period / 2.0
        turn = 2.0 * math.pi / period
        x = middle + atan2(sin((u - middle) * turn), cos((u - middle) * turn)) / turn
        rest = slope * u
    at, c0, c1, c2, left, right = _found(knots, x)
    v = x - at
    c3 = where(v < 0.0, left, right)
    f = ((c3 * v + c2) * v + c1) * v + c0
    return f + rest, (3.0 * c3 * v + 2.0 * c2) * v + c1 + slope, 6.0 * c3 * v + 2.0 * c2


@lru_cache(maxsize=256)
def _knots(law: Any) -> tuple[tuple[Knot, ...], float, float]:
    """Return the knots of a spline, the mean slope that was subtracted from its values, and its period; 0 if none."""
    u, f = [p[0] for p in law.points], [p[1] for p in law.points]
    if not law.periodic:
        return knots_of(u, [[x] for x in f], closed=False), 0.0, 0.0
    period = u[-1] - u[0]
    slope = (f[-1] - f[0]) / period
    return knots_of(u, [[x - slope * y] for x, y in zip(f, u, strict=True)], closed=True), slope, period


def _found(knots: Sequence[Knot], x: Scalar) -> tuple[Scalar, ...]:
    """Return the numbers of the last knot at or below x, or of the first one."""
    if len(knots) == 1:
        k = knots[0]
        return (k.at, k.value[0], k.slope[0], k.bend[0], k.left[0], k.right[0])
    half = len(knots) // 2
    below = x < knots[half].at
    if isinstance(below, bool):
        return _found(knots[:half] if below else knots[half:], x)
    first, second = _found(knots[:half], x), _found(knots[half:], x)
    return tuple(where(below, a, b) for a, b in zip(first, second, strict=True))
