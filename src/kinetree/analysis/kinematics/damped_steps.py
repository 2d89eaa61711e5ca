"""Damped least-squares steps of lanes: the dq that minimizes |A dq - F|^2 + damping |dq|^2, as loops over memory.

The smaller of the two normal matrices, A A^T and A^T A, is factored by Cholesky.
"""

from __future__ import annotations

from typing import Any

from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind


class DampedSteps:
    """The memory of A [n, nv] and of its factors in an unfinished kernel, and the statements of a solution."""

    def __init__(self, k: Builder, equations: int, unknowns: int) -> None:
        """Declare the memory."""
        self.k, self.n, self.nv = k, equations, unknowns
        self.dual = equations <= unknowns
        self.size = min(equations, unknowns)
        self.A, self.open = k.block("A", equations * unknowns), k.block("open", unknowns)
        self.S, self.x = k.block("S", self.size * self.size), k.block("x", self.size)
        self.inverse, self.sum = k.block("inverse", self.size), k.block("sum")

    def solve(self, F: Block, damping: Value, dq: Block) -> None:
        """Write the step into dq [nv]; columns of A are scaled by `open`, 1 or 0."""
        self._matrix(damping)
        self._right_side(F)
        self._factor(damping)
        self._substitute()
        k = self.k
        with k.loop(self.nv) as j:
            if self.dual:
                total = self.total(self.n, lambda i: self.A[i * self.nv + j] * self.x[i])
                dq[j] = total * self.open[j]
            else:
                dq[j] = self.x[j] * self.open[j]

    def total(self, count: Any, term: Any) -> Value:
        """Write a sum of terms and return it."""
        self.sum.value = 0.0
        with self.k.loop(count) as i:
            self.sum.value = self.sum.value + term(i)
        return self.sum.value

    def _matrix(self, damping: Value) -> None:
        """Write the lower triangle of the normal matrix, with the damping on its diagonal."""
        k, A, nv = self.k, self.A, self.nv
        with k.loop(self.size) as i:
            with k.loop(i + 1) as j:
                if self.dual:
                    entry = self.total(nv, lambda m, i=i, j=j: A[i * nv + m] * A[j * nv + m] * self.open[m])
                else:
                    both = self.open[i] * self.open[j]
                    entry = self.total(self.n, lambda m, i=i, j=j: A[m * nv + i] * A[m * nv + j]) * both
                self.S[i * self.size + j] = entry
            self.S[i * self.size + i] = self.S[i * self.size + i] + damping

    def _right_side(self, F: Block) -> None:
        with self.k.loop(self.size) as i:
            if self.dual:
                self.x[i] = F[i]
            else:
                self.x[i] = self.total(self.n, lambda m, i=i: self.A[m * self.nv + i] * F[m]) * self.open[i]

    def _factor(self, damping: Value) -> None:
        """Write the Cholesky factor over the matrix; pivots are at least the damping, as in exact arithmetic."""
        k, S, size = self.k, self.S, self.size
        with k.loop(size) as i:
            with k.loop(i) as j:
                inner = self.total(j, lambda m, i=i, j=j: S[i * size + m] * S[j * size + m])
                S[i * size + j] = (S[i * size + j] - inner) * self.inverse[j]
            square = self.total(i, lambda m, i=i: S[i * size + m] * S[i * size + m])
            pivot = S[i * size + i] - square
            root = (pivot > damping).where(pivot, damping).sqrt()
            self.inverse[i] = k.cast(1.0, Kind.LANE) / root

    def _substitute(self) -> None:
        """Write the solution over the right-hand side."""
        k, S, x, size = self.k, self.S, self.x, self.size
        with k.loop(size) as i:
            inner = self.total(i, lambda m, i=i: S[i * size + m] * x[m])
            x[i] = (x[i] - inner) * self.inverse[i]
        with k.loop(size) as back:
            i = size - 1 - back
            inner = self.total(back, lambda m, i=i: S[(i + 1 + m) * size + i] * x[i + 1 + m])
            x[i] = (x[i] - inner) * self.inverse[i]
