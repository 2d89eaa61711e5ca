"""Numerics of the page in the lane language: singular values, and the library's closing of loops.

Which degrees of freedom are held is an input, since the reader of a page picks them.
"""

from __future__ import annotations

from typing import Any

from ..algebra.scalars import Scalar
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..compiler.lanes.expressions import Block, Builder, Value
from ..compiler.lanes.form import Kernel, Kind
from ..compiler.lower.closing_steps import displace
from ..compiler.lower.loop_pattern import RANK
from ..compiler.lower.sweeps import Tree
from ..dynamics import closure
from ..model.mechanism import Mechanism
from ..model.scales import loop_units

# --- Singular values in the lane language, by rotations of Jacobi: the page's one function of linear algebra ---
#
# One-sided rotations make the columns of A orthogonal: A V = U diag(values). They need no more than dot products, and
# they find small singular values to as many digits as large ones. Ranks, least squares, damped steps and the
# eigenvalues of symmetric matrices follow from them.

ORTHOGONAL = 1e-15
"""The cosine of the angle between two columns below which they count as orthogonal: rounding of their dot product."""
NOTHING = 1e-16
"""The length of a column, relative to the norm of A, below which it is rounding error: its direction means nothing, and
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


ROUNDS, HALVINGS = 60, 12
"""The most steps, and the most halvings of a step that does not reduce the residual: those of `loop_pattern.newton`."""
ENOUGH = 1e-15
"""The norm of the residual that is not corrected [rad, characteristic lengths]: rounding."""


def loop_closing_kernel(mechanism: Mechanism) -> Kernel:
    """Return the kernel (q, held[, parameters]) -> (closed, gap): the closed position near q, and the gap that is left.

    Degrees of freedom with held = 1 do not move. The gap is in radians or in characteristic lengths.
    """
    return _Newton(mechanism).kernel()


class _Newton:
    """The writer of the kernel."""

    def __init__(self, mechanism: Mechanism) -> None:
        """Declare the arguments and the memory."""
        m, free = mechanism, len(mechanism.free_parameters)
        self.nq, self.nv, self.count = m.nq, m.nv, len(m.closures)
        k = self.k = Builder("close_loops", {"equations": _equations(m), "move": _move(m)})
        self.q0, self.held = k.array("q", m.nq), k.array("held", m.nv)
        self.parameters = k.array("parameters", free) if free else None
        self.closed, self.gap = k.array("closed", m.nq, output=True), k.array("gap", output=True)
        self.q, self.open = k.block("q", m.nq), k.block("open", m.nv)
        self.at, self.found = k.block("at", m.nq + free), k.block("found", self.count * (1 + m.nv))
        self.step_in, self.trial = k.block("step_in", m.nq + m.nv), k.block("trial", m.nq)
        self.F, self.J = k.block("F", self.count), k.block("J", self.count * m.nv)
        self.wide = self.count < m.nv
        rows, columns = (m.nv, self.count) if self.wide else (self.count, m.nv)
        self.dq, self.svd = k.block("dq", m.nv), SingularValues(k, rows, columns)
        self.left, self.part, self.size = k.block("left"), k.block("part"), k.block("size")
        self.active, self.better = k.block("active", kind=Kind.MASK), k.block("better", kind=Kind.MASK)
        self.rounds, self.tries = k.block("rounds", kind=Kind.COUNT), k.block("tries", kind=Kind.COUNT)

    def kernel(self) -> Kernel:
        """Write the whole loop and return the finished kernel."""
        k = self.k
        self._load()
        self._evaluate(self.q)
        self._keep(None)
        self.left.value = self._square()
        self.active.value = self.left.value > ENOUGH**2
        self.rounds.value = 0
        with k.whilst(lambda: k.any(self.active.value) & (self.rounds.value < ROUNDS)):
            self._step()
            self._shorten()
            self.rounds.value = self.rounds.value + 1
        with k.each_lane():
            with k.loop(self.nq) as j:
                self.closed[j] = self.q[j]
            self.gap[()] = self._largest(self.F, self.count)
        return k.kernel()

    def _load(self) -> None:
        k = self.k
        with k.each_lane():
            with k.loop(self.nq) as j:
                self.q[j] = self.q0[j]
            with k.loop(self.nv) as j:
                self.open[j] = k.cast(1.0, Kind.LANE) - self.held[j]
            if self.parameters:
                with k.loop(int(self.parameters.argument.shape[0])) as j:
                    self.at[j + self.nq] = self.parameters[j]

    def _evaluate(self, q: Block) -> None:
        """Write residual and J at a position into `found`."""
        with self.k.loop(self.nq) as j:
            self.at[j] = q[j]
        self.k.call("equations", self.at, self.found)

    def _keep(self, better: Value | None) -> None:
        """Write residual and J found into those of the next step, in the lanes of a mask."""
        for block, size, first in ((self.F, self.count, 0), (self.J, self.count * self.nv, self.count)):
            with self.k.loop(size) as i:
                new = self.found[i + first]
                block[i] = new if better is None else better.where(new, block[i])

    def _square(self) -> Value:
        """Return the squared norm of the residual found."""
        self.size.value = 0.0
        with self.k.loop(self.count) as i:
            self.size.value = self.size.value + self.found[i] * self.found[i]
        return self.size.value

    def _largest(self, block: Block, count: int) -> Value:
        """Return the largest absolute entry, NaN if one is."""
        self.size.value = 0.0
        with self.k.loop(count) as i:
            size = abs(block[i])
            self.size.value = (size <= self.size.value).where(self.size.value, size)
        return self.size.value

    def _step(self) -> None:
        """Write the shortest step that closes the loops to first order, no entry above one unit."""
        k, svd = self.k, self.svd
        with k.loop(self.nv) as j:
            with k.loop(self.count) as i:
                svd.U[i * self.nv + j if self.wide else j * self.count + i] = self.J[i * self.nv + j] * self.open[j]
        svd.decompose(svd.M, svd.N)
        if self.wide:
            svd.solve_transposed(self.F, svd.M, svd.N, RANK, self.dq)
        else:
            svd.solve(self.F, svd.M, svd.N, RANK, 0.0, self.dq)
        most = self._largest(self.dq, self.nv)
        self.part.value = k.cast(-1.0, Kind.LANE) / (most > 1.0).where(most, 1.0)

    def _shorten(self) -> None:
        """Write the position after the longest half, quarter, ... of the step that reduces the residual, if any."""
        k, better = self.k, self.better
        better.value, self.tries.value = False, 0
        with k.whilst(lambda: k.any(self.active.value & ~better.value) & (self.tries.value < HALVINGS)):
            with k.loop(self.nq) as j:
                self.step_in[j] = self.q[j]
            with k.loop(self.nv) as j:
                self.step_in[j + self.nq] = self.dq[j] * self.part.value
            k.call("move", self.step_in, self.trial)
            self._evaluate(self.trial)
            size = self._square()
            now = (size < self.left.value) & self.active.value & ~better.value
            with k.loop(self.nq) as j:
                self.q[j] = now.where(self.trial[j], self.q[j])
            self._keep(now)
            self.left.value = now.where(size, self.left.value)
            self.part.value = self.part.value * 0.5
            better.value = better.value | now
            self.tries.value = self.tries.value + 1
        self.active.value = self.active.value & better.value & (self.left.value > ENOUGH**2)


def _equations(mechanism: Mechanism) -> Program:
    """Return the Program (q[, parameters]) -> (residual, J), with lengths in characteristic lengths.

    Equations of velocities alone have a zero row: no position depends on them.
    """
    trace, inputs = Trace(), [Array("q", (mechanism.nq,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    units, speeds = (x.tolist() for x in loop_units(mechanism))
    residual: list[Scalar] = []
    J: list[Scalar] = []
    for row, unit, closure_ in zip(closure.rows(Tree(mechanism, given)), units, mechanism.closures, strict=True):
        entries = closure.of_row(row) if closure_.holonomic else {}
        residual.append(row.residual * (1.0 / unit))
        J += [entries.get(k, 0.0) * (u / unit) for k, u in enumerate(speeds)]
    outputs = [Array("residual", (len(residual),)), Array("J", (len(J),))]
    return Program.of_trace("equations", inputs, outputs, trace, [residual, J])


def _move(mechanism: Mechanism) -> Program:
    """Return the Program (q, dq) -> (q): a position displaced by a step in units of the velocities."""
    trace, inputs = Trace(), [Array("q", (mechanism.nq,)), Array("dq", (mechanism.nv,))]
    q, dq = ([trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs))
    _, speeds = loop_units(mechanism)
    there = displace(mechanism, {"q": q}, [x * u for x, u in zip(dq, speeds.tolist(), strict=True)])
    return Program.of_trace("move", inputs, [Array("q", (mechanism.nq,))], trace, [there])
