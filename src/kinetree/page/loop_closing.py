"""The closing of loops in the page: the library's Newton method (compiler/lower/loop_pattern.py) in the lane language.

Which degrees of freedom are held is an input, since the reader of a page picks them.
"""

from __future__ import annotations

from typing import Any

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
from .singular_values import SingularValues

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
    residual: list[Any] = []
    J: list[Any] = []
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
