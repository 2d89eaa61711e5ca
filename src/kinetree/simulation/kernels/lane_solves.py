"""Linear equations of lanes: a matrix per lane is factored once, then solved for several right-hand sides.

The rows are exchanged where a pivot is small in its column, for every lane separately. Exchanges that no lane requires
are skipped. They do not change the numbers of other lanes.
"""

from __future__ import annotations

from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind

PREFERENCE = 10.0
"""An entry becomes a pivot instead of the one on the diagonal if it is larger by this factor. Fewer rows are exchanged
than for the largest entry, and errors grow by no more than a digit."""


class LaneSolver:
    """The memory of a square matrix in an unfinished kernel, row by row, and the statements that solve with it."""

    def __init__(self, k: Builder, size: int) -> None:
        """Declare the memory of the matrix and of its pivots."""
        self.k, self.size = k, size
        self.matrix, self.pivots = k.block("matrix", size * size), k.block("pivots", size)
        self.largest, self.swapped = k.block("largest"), k.block("swapped", kind=Kind.MASK)

    def factor(self, used: Value | None = None) -> None:
        """Write the matrix as a product of triangular ones in place, with the reciprocals of the pivots.

        With `used`, only so many of its first rows and columns are a matrix.
        """
        k, w, n = self.k, self.matrix, self.size
        last = n - 1 if used is None else used - 1
        self.swapped.value = False
        with k.loop(n if used is None else used) as c:
            self._choose(c, last)
            reciprocal = k.cast(1.0, Kind.LANE) / w[c * n + c]
            w[c * n + c] = reciprocal
            with k.loop(last - c) as i:
                row = (c + 1 + i) * n
                factor = w[row + c] * reciprocal
                w[row + c] = factor
                with k.loop(last - c) as j:
                    at = c + 1 + j
                    w[row + at] = w[row + at] - factor * w[c * n + at]

    def _choose(self, c: Value, last: Value | int) -> None:
        """Write the exchange of row c with a later one, up to the last, that has a much larger entry in column c."""
        k, w, n = self.k, self.matrix, self.size
        self.largest.value = abs(w[c * n + c]) * PREFERENCE
        self.pivots[c] = k.number(c)
        with k.loop(last - c) as i:
            row = c + 1 + i
            entry = abs(w[row * n + c])
            larger = entry > self.largest.value
            self.largest.value = larger.where(entry, self.largest.value)
            self.pivots[c] = larger.where(k.number(row), self.pivots[c])
        moved = self.pivots[c] > k.number(c)
        self.swapped.value = self.swapped.value | moved
        with k.when(k.any(moved)), k.loop(last - c) as i:
            row = c + 1 + i
            mine = self.pivots[c].equals(k.number(row))
            with k.when(k.any(mine)), k.loop(last + 1) as j:
                self._exchange(w, mine, c * n + j, row * n + j)

    def _exchange(self, block: Block, mask: Value, i: Value, j: Value) -> None:
        """Write the exchange of two entries of a block in the lanes of a mask."""
        x, y = block[i], block[j]
        block[i], block[j] = mask.where(y, x), mask.where(x, y)

    def solve(self, block: Block, first: Value, used: Value | None = None) -> None:
        """Write the solution over the right-hand side, which begins at the entry `first` of a block."""
        k, w, n = self.k, self.matrix, self.size
        size, last = (n, n - 1) if used is None else (used, used - 1)
        with k.when(k.any(self.swapped.value)), k.loop(size) as c, k.loop(last - c) as i:
            row = c + 1 + i
            self._exchange(block, self.pivots[c].equals(k.number(row)), first + c, first + row)
        with k.loop(size) as c:
            x = block[first + c]
            with k.loop(last - c) as i:
                row = c + 1 + i
                block[first + row] = block[first + row] - w[row * n + c] * x
        with k.loop(size) as i:
            c = last - i
            x = block[first + c] * w[c * n + c]
            block[first + c] = x
            with k.loop(c) as row:
                block[first + row] = block[first + row] - w[row * n + c] * x

    def solve_transposed(self, block: Block) -> None:
        """Write the solution of the transposed equations over the right-hand side, all entries of a block."""
        k, w, n = self.k, self.matrix, self.size
        with k.loop(n) as c:
            x = block[c] * w[c * n + c]
            block[c] = x
            with k.loop(n - 1 - c) as i:
                row = c + 1 + i
                block[row] = block[row] - w[c * n + row] * x
        with k.loop(n) as i:
            c = n - 1 - i
            x = block[c]
            with k.loop(c) as row:
                block[row] = block[row] - w[c * n + row] * x
        with k.when(k.any(self.swapped.value)), k.loop(n) as j:
            c = n - 1 - j
            with k.loop(n - 1 - c) as i:
                row = c + 1 + i
                self._exchange(block, self.pivots[c].equals(k.number(row)), c, row)
