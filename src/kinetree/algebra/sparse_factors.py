"""I = U D U^T of a sparse symmetric matrix, last row first: entries between different branches of a tree stay zero."""

from __future__ import annotations

from collections.abc import Container, Mapping

from .scalars import Scalar

Column = dict[int, Scalar]
"""The entries of a column that are not structurally zero, by row."""

NONE = -1
"""The parent of a row that starts a tree."""


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
        self._parents = [max(column, default=NONE) for column in self.U]
        self._branches: dict[tuple[int, int], Column] = {}

    def solve(self, b: Column) -> list[Scalar]:
        """Return x with U D U^T x = b."""
        y = dict(b)
        for k in reversed(range(self.n)):
            if k in y:
                for i, u in self.U[k].items():
                    y[i] = y.get(i, 0.0) - u * y[k]
        x: list[Scalar] = []
        for k in range(self.n):
            value, row = (y[k] * self.inverse[k], self.U[k]) if k in y else (0.0, self._row(k, y))
            for i, u in row.items():
                value = value - u * x[i]
            x.append(value)
        return x

    def inverse_matrix(self) -> dict[tuple[int, int], Scalar]:
        """Return the entries of the inverse: U^T X = D^-1 U^-1 below the diagonal, where U^-1 is zero."""
        X: dict[tuple[int, int], Scalar] = {}
        for c in range(self.n):
            moved = {c, *self.U[c]}
            for k in range(c, self.n):
                value, row = (self.inverse[k], self.U[k]) if k == c else (0.0, self._row(k, moved))
                for i, u in row.items():
                    value = value - u * X[i, c]
                X[k, c] = X[c, k] = value
        return X

    def _row(self, k: int, moved: Container[int]) -> Column:
        """Return the row by which x[k] follows from the entries before it, without a right-hand side of its own.

        A branch none of whose entries is in `moved` follows the entries before the whole branch, which are fewer.
        """
        root, parent = k, self._parents[k]
        while parent != NONE and parent not in moved:
            root, parent = parent, self._parents[parent]
        return self._following(k, root) if parent != NONE and self._parents.count(parent) > 1 else self.U[k]

    def _following(self, k: int, root: int) -> Column:
        """Return column k of U without the entries of its branch, which starts with `root`: they follow, too."""
        if k == root:
            return self.U[k]
        if (k, root) not in self._branches:
            row = {i: u for i, u in self.U[k].items() if i < root}
            for m, u in self.U[k].items():
                if m >= root:
                    for i, w in self._following(m, root).items():
                        row[i] = row.get(i, 0.0) - u * w
            self._branches[k, root] = row
        return self._branches[k, root]
