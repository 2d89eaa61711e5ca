"""Symmetric systems that may be singular, on any scalar: S = L D L^T with dependent rows left out."""

from __future__ import annotations

from collections.abc import Sequence

from .scalars import Scalar, is_number, where


class Definite:
    """The factors of a positive semidefinite matrix; entries that are the number 0 cost nothing.

    A row whose pivot falls below `tolerance` times its diagonal entry, or below its `floor`, depends on those before
    it: it is left out, which solves the others and gives it the unknown 0. No row is moved, so that the same work is
    done whatever the numbers are.
    """

    def __init__(self, S: Sequence[Sequence[Scalar]], tolerance: float, floor: Sequence[float]) -> None:
        """Factor S, of which the lower triangle is read."""
        self.L: list[list[Scalar]] = []
        self.pivots: list[Scalar] = []
        self.inverse: list[Scalar] = []
        for k, row in enumerate(S):
            scaled: list[Scalar] = []  # L D
            lower: list[Scalar] = []
            for j in range(k):
                scaled.append(row[j] - _sum(scaled[m] * self.L[j][m] for m in range(j)))
                lower.append(scaled[j] * self.inverse[j])
            pivot = row[k] - _sum(scaled[j] * lower[j] for j in range(k))
            self.L.append(lower)
            self.pivots.append(pivot)
            self.inverse.append(_inverse(pivot, row[k], tolerance, floor[k]))

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return x with S x = b, where b is in the range of S."""
        n = len(self.L)
        x: list[Scalar] = []
        for k in range(n):
            x.append(b[k] - _sum(self.L[k][j] * x[j] for j in range(k)))
        x = [y * d for y, d in zip(x, self.inverse, strict=True)]
        for k in reversed(range(n)):
            x[k] = x[k] - _sum(self.L[i][k] * x[i] for i in range(k + 1, n))
        return x


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
