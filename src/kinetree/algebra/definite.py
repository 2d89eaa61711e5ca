"""Symmetric systems that may be singular, on any scalar: S = L D L^T with dependent rows left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .scalars import Scalar, is_number, where

STRONG = 1e-2
"""A pivot that is larger, beside its diagonal entry and its usual size, is taken before weaker ones: what b lacks of
being consistent then grows at most tenfold, by one over the root of this, where rows take the place of others."""

STEADY = 1e3
"""A weak row takes the place of a weaker one that was left out only where its pivot is larger by this factor. Rows that
fade together, as at a singular position, are so left out together, whatever their sizes are beside each other."""


class Definite:
    """The factors of a positive semidefinite matrix; entries that are the number 0 cost nothing.

    A row whose pivot falls below its tolerance times its diagonal entry, or times its usual size, depends on the
    others: it is left out, which solves the others and gives it the unknown 0. No row is moved, so that the same work
    is done whatever the numbers are. With `defer`, every row has two places: one among those with strong pivots, and
    one after these. It takes part in one of them at most.
    """

    def __init__(
        self, S: Sequence[Sequence[Scalar]], tolerances: Sequence[float], sizes: Sequence[float], *, defer: bool = False
    ) -> None:
        """Factor S, of which the lower triangle is read."""
        self._S, self._sizes = S, sizes
        self.rows: list[int] = []
        self.L: list[list[Scalar]] = []
        self.pivots: list[Scalar] = []
        self.inverse: list[Scalar] = []
        for k in range(len(S)):
            self._append(k, max(tolerances[k], STRONG) if defer else tolerances[k], sizes[k])
        if defer:
            self._append_weak(tolerances, sizes)

    def _append(self, k: int, tolerance: float, size: float) -> None:
        """Add a row to the factors."""
        scaled: list[Scalar] = []  # L D
        lower: list[Scalar] = []
        for j, other in enumerate(self.rows):
            scaled.append(self._entry(k, other) - _sum(scaled[m] * self.L[j][m] for m in range(j)))
            lower.append(scaled[j] * self.inverse[j])
        diagonal = self._entry(k, k)
        pivot = diagonal - _sum(s * x for s, x in zip(scaled, lower, strict=True))
        self.rows.append(k)
        self.L.append(lower)
        self.pivots.append(pivot)
        self.inverse.append(_inverse(pivot, diagonal, tolerance, tolerance * size))

    def _append_weak(self, tolerances: Sequence[float], sizes: Sequence[float]) -> None:
        """Add the rows again that were not strong, but for those that hardly exceed one left out before."""
        left: Scalar = 0.0  # the largest pivot that was left out, relative to the row's size
        for k, first in enumerate(list(self.inverse)):
            self._append(k, tolerances[k], sizes[k])
            part = self.pivots[-1] * (1.0 / sizes[k])
            steady = where(part > left * STEADY, self.inverse[-1], 0.0)
            self.inverse[-1] = where(first > 0.0, 0.0, steady)
            lost = where(first + steady > 0.0, 0.0, part)
            left = where(lost > left, lost, left)

    def _entry(self, k: int, m: int) -> Scalar:
        return self._S[max(k, m)][min(k, m)]

    @property
    def weakest(self) -> Scalar:
        """The smallest pivot that takes part, relative to its row's usual size, and 1 at most."""
        least: Scalar = 1.0
        for k, pivot, inverse in zip(self.rows, self.pivots, self.inverse, strict=True):
            part = where(inverse > 0.0, pivot * (1.0 / self._sizes[k]), 1.0)
            least = where(part < least, part, least)
        return least

    @property
    def rank(self) -> Scalar:
        """The number of rows that take part."""
        return _sum(where(x > 0.0, 1.0, 0.0) for x in self.inverse)

    def require(self, rank: int) -> None:
        """Make all solutions NaN where fewer than `rank` rows take part."""
        one = where(self.rank < rank - 0.5, math.nan, 1.0)
        self.inverse = [x * one for x in self.inverse]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return x with S x = b, where b is in the range of S."""
        x: list[Scalar] = []
        for k, row in enumerate(self.rows):
            x.append(b[row] - _sum(self.L[k][j] * x[j] for j in range(k)))
        x = [y * d for y, d in zip(x, self.inverse, strict=True)]
        for k in reversed(range(len(x))):
            x[k] = x[k] - _sum(self.L[i][k] * x[i] for i in range(k + 1, len(x)))
        once, again = x[: len(b)], x[len(b) :]
        return [first + second for first, second in zip(once, again, strict=True)] if again else once


def _sum(terms) -> Scalar:
    total: Scalar = 0.0
    for x in terms:
        total = total + x
    return total


def _inverse(pivot: Scalar, diagonal: Scalar, tolerance: float, floor: float) -> Scalar:
    if is_number(pivot):
        return 1.0 / pivot if pivot > max(tolerance * diagonal, floor) else 0.0
    least = where(diagonal * tolerance > floor, diagonal * tolerance, floor)
    good = least < pivot
    return where(good, 1.0, 0.0) / where(good, pivot, 1.0)
