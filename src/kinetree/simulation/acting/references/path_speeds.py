"""The fastest motion along a given path, in the plane of the path's parameter s and the square x of its rate.

Along q(s), all velocities and accelerations follow from x = (ds/dt)^2 and u = d2s/dt2, since dx/ds = 2 u:

    qd = q' sqrt(x),    qdd = q' u + q'' x.

Limits of accelerations, and those of torques M q' u + (M q'' + C) x + g, are linear in u and x. [Pham2018] (6)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....algebra.arrays import Numbers
from ....errors import InputError

ROUNDING = 1e-12
"""By how much bounds may cross, relative to their size."""


@dataclass(frozen=True)
class Bounds:
    """Limits least <= a u + b x + c <= most at the points of a grid, each [points, rows], and x <= top [points].

    At a point where the motion must rest, `top` is zero. A velocity v of a coordinate gives top = (v / q')^2.
    """

    a: Numbers
    b: Numbers
    c: Numbers
    least: Numbers
    most: Numbers
    top: Numbers


def path_speeds(s: Numbers, bounds: Bounds, *, first: float = 0.0, last: float = 0.0) -> Numbers:
    """Return the largest squares x of the rates along a grid s [points], from `first` to `last`, within bounds.

    u is constant between two points, so that x is linear in s. Backward, the interval of x at each point from which the
    end can be reached is found; forward, the largest u that stays in these intervals is taken. [Pham2018] algorithm 1.
    Limits hold at both ends of every interval. InputError names the point of the path at which they contradict.
    """
    steps = np.diff(s)
    low, high = np.zeros_like(s), np.zeros_like(s)
    low[-1] = high[-1] = last
    for k in reversed(range(len(steps))):
        low[k], high[k] = _interval(*_rows(bounds, k, steps[k], low[k + 1], high[k + 1]), bounds.top[k])
        if low[k] > high[k]:
            raise InputError(
                f"no motion along the path is within the limits near s = {s[k]:.6g}: they contradict there"
            )
    if not low[0] * (1.0 - 1e-9) <= first <= high[0] * (1.0 + 1e-9):
        raise InputError(
            f"the motion cannot begin with ds/dt = {np.sqrt(first):.6g}: from {np.sqrt(low[0]):.6g} to "
            f"{np.sqrt(high[0]):.6g} is possible there"
        )
    x = np.empty_like(s)
    x[0] = first
    for k, h in enumerate(steps):
        alpha, beta, gamma = _rows(bounds, k, h, low[k + 1], high[k + 1])
        up = alpha > 0.0
        u = float(((gamma - beta * x[k])[up] / alpha[up]).min())
        x[k + 1] = min(max(x[k] + 2.0 * h * u, low[k + 1]), high[k + 1])
    return x


def _rows(bounds: Bounds, k: int, h: float, low: float, high: float) -> tuple[Numbers, Numbers, Numbers]:
    """Return the rows alpha u + beta x <= gamma of a step from point k, at both of its ends.

    At the end of the step x is x + 2 h u.
    """
    b = bounds
    alpha, beta, most, least = (
        np.concatenate(pair)
        for pair in (
            (b.a[k], b.a[k + 1] + 2.0 * h * b.b[k + 1]),
            (b.b[k], b.b[k + 1]),
            (b.most[k] - b.c[k], b.most[k + 1] - b.c[k + 1]),
            (b.least[k] - b.c[k], b.least[k + 1] - b.c[k + 1]),
        )
    )
    reach = 2.0 * h
    return (
        np.concatenate([alpha, -alpha, [reach, -reach]]),
        np.concatenate([beta, -beta, [1.0, -1.0]]),
        np.concatenate([most, -least, [high, -low]]),
    )


def _interval(alpha: Numbers, beta: Numbers, gamma: Numbers, top: float) -> tuple[float, float]:
    """Return the least and the largest x from 0 to `top` for which a u exists.

    Rows with alpha > 0 bound u from above, those with alpha < 0 from below; each pair of them bounds x.
    """
    up, down, flat = alpha > 0.0, alpha < 0.0, alpha == 0.0
    slope = np.add.outer(beta[up] / alpha[up], -beta[down] / alpha[down]).ravel()
    reach = np.add.outer(gamma[up] / alpha[up], -gamma[down] / alpha[down]).ravel()
    slope, reach = np.concatenate([slope, beta[flat]]), np.concatenate([reach, gamma[flat]])
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = reach / slope
    high = min(ends[slope > 0.0].min(initial=np.inf), top)
    low = max(ends[slope < 0.0].max(initial=0.0), 0.0)
    if (reach[slope == 0.0] < 0.0).any():
        return 1.0, 0.0
    return (high, high) if high < low <= high + ROUNDING * max(abs(high), 1.0) else (low, high)
