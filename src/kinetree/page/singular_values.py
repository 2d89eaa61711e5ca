"""Singular values in the lane language, by rotations of Jacobi: the page's one function of linear algebra.

One-sided rotations make the columns of A orthogonal: A V = U diag(values). They need no more than dot products, and
they find small singular values to as many digits as large ones. Ranks, least squares, damped steps and the eigenvalues
of symmetric matrices follow from them.
"""

from __future__ import annotations

from typing import Any

from ..compiler.lanes.expressions import Block, Builder, Value
from ..compiler.lanes.form import Kernel, Kind

ORTHOGONAL = 1e-15
"""The cosine of the angle between two columns below which they count as orthogonal: rounding of their dot product."""
NOTHING = 1e-16
"""The length of a column, in parts of the norm of A, below which it is rounding error: its direction means nothing, and
rotations would turn it for ever."""
SWEEPS = 60
"""The most rotations of each pair of columns, far more than they take."""


class SingularValues:
    """Memory for a matrix of up to M rows and N columns in an unfinished kernel, and the statements on it.

    `U` has the columns one after another, M entries apart; after `decompose` they are those of U diag(values), the
    longest first. `V` has the directions of the columns, N entries apart. `squares` are the squared singular values.
    """

    def __init__(self, k: Builder, rows: int, columns: int) -> None:
        """Declare the memory."""
        self.k, self.M, self.N = k, rows, columns
        self.U, self.V = k.block("U", rows * columns), k.block("V", columns * columns)
        self.squares, self.sum, self.least = k.block("squares", columns), k.block("sum"), k.block("least")
        self.turned, self.sweeps = k.block("turned", kind=Kind.MASK), k.block("sweeps", kind=Kind.COUNT)

    def decompose(self, m: Value | int, n: Value | int) -> None:
        """Write the decomposition of the first m rows and n columns."""
        k = self.k
        self.least.value = 0.0
        with k.loop(n) as i:
            with k.loop(n) as j:
                self.V[i * self.N + j] = 0.0
            self.V[i * self.N + i] = 1.0
            square = self._product(self.U, i * self.M, i * self.M, m)
            self.least.value = self.least.value + square * NOTHING**2
        self.sweeps.value = 0
        with k.repeat() as sweep:
            self.turned.value = False
            with k.loop(n) as second:
                with k.loop(second) as first:
                    self._rotate(first, second, m, n)
            self.sweeps.value = self.sweeps.value + 1
            sweep.again = k.any(self.turned.value) & (self.sweeps.value < SWEEPS)
        with k.loop(n) as j:
            self.squares[j] = self._product(self.U, j * self.M, j * self.M, m)

    def solve(self, b: Block, m: Value | int, n: Value | int, least: Any, damping: Any, x: Block) -> None:
        """Write the x that minimizes |A x - b|^2 + damping |x|^2, the shortest one, as entries of `x`.

        Directions count whose singular values are above `least` times the largest one.
        """
        k = self.k
        with k.loop(n) as i:
            x[i] = 0.0
        with k.loop(n) as j:
            square = self.squares[j]
            counts = square > self.squares[0] * least * least
            along = self._product(self.U, j * self.M, 0, m, b)
            part = counts.where(along / counts.where(square + damping, 1.0), 0.0)
            with k.loop(n) as i:
                x[i] = x[i] + part * self.V[j * self.N + i]

    def solve_transposed(self, b: Block, m: int, n: int, least: Any, x: Block) -> None:
        """Write the shortest x [m] that minimizes |A^T x - b|, as entries of `x`, in directions as in `solve`.

        Of a wide matrix, the transpose has fewer columns, and fewer pairs of them.
        """
        k = self.k
        with k.loop(m) as i:
            x[i] = 0.0
        with k.loop(n) as j:
            square = self.squares[j]
            counts = square > self.squares[0] * least * least
            along = self._product(self.V, j * self.N, 0, n, b)
            part = counts.where(along / counts.where(square, 1.0), 0.0)
            with k.loop(m) as i:
                x[i] = x[i] + part * self.U[j * self.M + i]

    def _product(self, a: Block, first: Any, second: Any, count: Value | int, other: Block | None = None) -> Value:
        """Return the product of two vectors of `count` entries, at their first places in blocks."""
        b = a if other is None else other
        self.sum.value = 0.0
        with self.k.loop(count) as i:
            self.sum.value = self.sum.value + a[i + first] * b[i + second]
        return self.sum.value

    def _rotate(self, first: Value, second: Value, m: Value | int, n: Value | int) -> None:
        """Write the rotation that makes two columns orthogonal, the longer one first."""
        k, U = self.k, self.U
        x, y = first * self.M, second * self.M
        a, b = self._product(U, x, x, m), self._product(U, y, y, m)
        c = self._product(U, x, y, m)
        least = self.least.value
        oblique = (abs(c) > (a * b).sqrt() * ORTHOGONAL) & (a > least) & (b > least)
        zeta = (b - a) / (oblique.where(c, 1.0) * 2.0)
        slope = (zeta < 0.0).where(k.constant(-1.0, Kind.LANE), 1.0) / (abs(zeta) + (zeta * zeta + 1.0).sqrt())
        t = oblique.where(slope, 0.0)
        shorter = a - t * c < b + t * c
        changes = oblique | shorter
        self.turned.value = self.turned.value | changes
        with k.when(k.any(changes)):
            cosine = k.cast(1.0, Kind.LANE) / (t * t + 1.0).sqrt()
            for block, size, entries in ((U, self.M, m), (self.V, self.N, n)):
                with k.loop(entries) as i:
                    p, q = block[first * size + i], block[second * size + i]
                    rotated, other = cosine * (p - t * q), cosine * (t * p + q)
                    block[first * size + i] = shorter.where(other, rotated)
                    block[second * size + i] = shorter.where(rotated, other)


def singular_values_kernel(rows: int, columns: int) -> Kernel:
    """Return the kernel (A, b, rows, columns, least, damping) -> (values, left, right, x).

    A [m, n] by rows, with m and n up to `rows` and `columns`, is the sum of values[k] left[k] right[k]^T; the vectors
    follow one another. Where a value is zero, left[k] is zero, and right[k] is a direction that A maps to zero. x is
    that of `SingularValues.solve`.
    """
    k = Builder("singular_values", {})
    A, b = k.array("A", rows * columns), k.array("b", rows)
    given = [k.array(name, shared=True) for name in ("rows", "columns", "least", "damping")]
    values, left = k.array("values", columns, output=True), k.array("left", rows * columns, output=True)
    right, x = k.array("right", columns * columns, output=True), k.array("x", columns, output=True)
    made, target, solution = SingularValues(k, rows, columns), k.block("target", rows), k.block("solution", columns)
    m, n = k.whole(given[0][()]), k.whole(given[1][()])
    least, damping = (k.cast(array[()], Kind.LANE) for array in given[2:])
    with k.each_lane():
        with k.loop(m) as i:
            target[i] = b[i]
            with k.loop(n) as j:
                made.U[j * rows + i] = A[i * n + j]
    made.decompose(m, n)
    made.solve(target, m, n, least, damping, solution)
    with k.each_lane():
        with k.loop(n) as j:
            value = made.squares[j].sqrt()
            values[j], x[j] = value, solution[j]
            inverse = (value > 0.0).where(k.cast(1.0, Kind.LANE) / (value > 0.0).where(value, 1.0), 0.0)
            with k.loop(m) as i:
                left[j * m + i] = made.U[j * rows + i] * inverse
            with k.loop(n) as i:
                right[j * n + i] = made.V[j * columns + i]
    return k.kernel()
