"""Polynomials joined at increasing times, for floats, arrays and traced values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....algebra.arrays import Numbers
from ....errors import InputError
from ..smooth import clip, where
from .motions import Lists, as_time, horner, inside

MAX_KNOTS = 2000
"""The most times of a compiled reference: each adds a comparison and a selection per coefficient to the traced code."""


def piecewise(times: Numbers, coefficients: Numbers, t: Any) -> Lists:
    """Return q, qd, qdd of polynomials between times [n + 1], whose coefficients are [degree + 1, n, coordinates].

    They are in powers of the time since the start of the interval. Before and after all of them, values rest.
    """
    t = as_time(t) - float(times[0])
    T = float(times[-1] - times[0])
    u = clip(t, 0.0, T)
    find = _looked_up if isinstance(u, float | np.ndarray | np.generic) else _chosen
    since, pieces = find(u, times[:-1] - times[0], coefficients)
    q, qd, qdd = [], [], []
    for c in pieces:
        first = [x * float(k) if k > 1 else x for k, x in enumerate(c)][1:]
        second = [x * float(k * (k - 1)) for k, x in enumerate(c)][2:]
        q.append(horner(c, since))
        qd.append(inside(t, T, horner(first, since)))
        qdd.append(inside(t, T, horner(second, since)))
    return q, qd, qdd


def _looked_up(u: Any, starts: NDArray, pieces: NDArray):
    """Return the time since the start of the interval of each u, and its polynomials, by binary search."""
    k = np.clip(np.searchsorted(starts, u, side="right") - 1, 0, len(starts) - 1)
    return u - starts[k], [[pieces[p, k, j] for p in range(len(pieces))] for j in range(pieces.shape[2])]


def _chosen(u: Any, starts: NDArray, pieces: NDArray):
    """Return the same for a traced u, by a binary tree of selections."""
    if len(starts) + 1 > MAX_KNOTS:
        raise InputError(
            f"Table has {len(starts) + 1} times; at most {MAX_KNOTS} can be compiled; "
            "take fewer of them: a cubic spline needs few"
        )

    def pick(values: list[float]) -> Any:
        def part(low: int, high: int) -> Any:
            if high - low == 1:
                return values[low]
            middle = (low + high) // 2
            return where(u < float(starts[middle]), part(low, middle), part(middle, high))

        return part(0, len(values))

    picked = [[pick(pieces[p, :, j].tolist()) for p in range(len(pieces))] for j in range(pieces.shape[2])]
    return u - pick(starts.tolist()), picked
