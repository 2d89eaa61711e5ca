"""I = U D U^T of a sparse symmetric matrix, last row first: entries between different branches of a tree stay zero."""

from __future__ import annotations

from collections.abc import Mapping

from .scalars import Scalar

Column = dict[int, Scalar]
"""The entries of a column that are not structurally zero, by row."""


class SparseFactors:
    """U and 1/D of a positive definite matrix, given by its entries (row, column); missing entries are zero."""

    def __init__(self, entries: Mapping[tuple[int, int], Scalar], n: int) -> None:
        """Eliminate the rows from the last to the first.                                  [Saha2013] (28)-(31)"""
        rest = {(i, k): x for (i, k), x in entries.items() if i <= k}
        self.n = n
        self.inverse: list[Scalar] = [0.0] * n
        self.U: list[Column] = [{} for _ in range(n)]  # column k, above its diagonal
        for k in reversed(range(n)):
            self.inverse[k] = 1.0 / rest[k, k]
            above = {i: rest[i, k] for i in range(k) if (i, k) in rest}
            self.U[k] = {i: x * self.inverse[k] for i, x in above.items()}
            for i, u in self.U[k].items():
                for j, x in above.items():
                    if i <= j:
                        rest[i, j] = rest.get((i, j), 0.0) - u * x

    def solve(self, b: Column) -> list[Scalar]:
        """Return x with U D U^T x = b."""
        y = dict(b)
        for k in reversed(range(self.n)):
            if k in y:
                for i, u in self.U[k].items():
                    y[i] = y.get(i, 0.0) - u * y[k]
        x: list[Scalar] = []
        for k in range(self.n):
            value = y[k] * self.inverse[k] if k in y else 0.0
            for i, u in self.U[k].items():
                value = value - u * x[i]
            x.append(value)
        return x

    def inverse_matrix(self) -> dict[tuple[int, int], Scalar]:
        """Return the entries of the inverse: U^T X = D^-1 U^-1 below the diagonal, where U^-1 is zero."""
        X: dict[tuple[int, int], Scalar] = {}
        for c in range(self.n):
            for k in range(c, self.n):
                value = self.inverse[k] if k == c else 0.0
                for i, u in self.U[k].items():
                    value = value - u * X[i, c]
                X[k, c] = X[c, k] = value
        return X
