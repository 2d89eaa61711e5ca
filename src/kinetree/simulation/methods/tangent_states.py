"""States of lanes with their derivatives: the same steps, differentiated along with the state.

A state has the coordinates q followed by their derivatives along every column, then the velocities qd followed by
theirs. Runge-Kutta methods of this larger state differentiate the steps of the state exactly. Quaternions are scaled
and loops are closed by statements of their own, which are differentiated here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...compiler.ir.program import Array, Program
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kind
from .lane_states import RunsOfLanes, dot

if TYPE_CHECKING:
    from ...compiler.lanes.expressions import Index


@dataclass(frozen=True)
class Differentiated:
    """A Program (t, q, qd[, parameters][, h]) -> (x, y[, gap]) with the derivatives of x and y along columns.

    Either `program` returns the Jacobian after the values, in rows of q, qd and the parameters of the last columns, or
    `along` is its derivative along one tangent of q, qd and all parameters. If row i of x is `moves[i]` times that of
    qd_i, the Jacobian has the rows of y only.
    """

    program: Program
    along: Program | None
    moves: tuple[float, ...] | None
    values: int


@dataclass(frozen=True)
class Varied:
    """The rates and the closing of loops with their derivatives, and the number of columns.

    The last columns are those of `parameters`, entries of the input of this name. `conversions` are the Programs of a
    Centering by name.
    """

    rates: Differentiated
    closing: Differentiated | None
    columns: int
    parameters: tuple[int, ...]
    conversions: Mapping[str, Differentiated] = field(default_factory=dict)

    @property
    def frame(self) -> Program:
        """A Program without operations that has the inputs of the rates of the larger state."""
        t, q, qd, *more = self.rates.program.inputs
        many = 1 + self.columns
        return Program("frame", (t, Array("q", (q.size * many,)), Array("qd", (qd.size * many,)), *more), (), (), ())


class TangentRuns(RunsOfLanes):
    """An unfinished kernel of runs with the derivatives of their states."""

    def __init__(
        self,
        name: str,
        varied: Varied,
        stages: int,
        quaternions: Sequence[int],
        *,
        dtype: str,
        shared: Sequence[str],
        own: Sequence[str] = (),
        report: Sequence[str],
    ) -> None:
        """Declare the arguments of a run with a larger state, and the memory."""
        closes = varied.closing.program if varied.closing else None
        super().__init__(
            f"{name}_derivatives",
            varied.frame,
            stages,
            quaternions,
            closes,
            dtype=dtype,
            shared=shared,
            own=own,
            report=report,
        )
        inputs = varied.rates.program.inputs
        self.nq0, self.nv0, self.columns = inputs[1].size, inputs[2].size, varied.columns
        self.tail = sum(a.size for a in inputs[3:])
        self.k.programs.clear()
        at = self.k.block("point", 1 + 2 * (self.nq0 + self.nv0) + self.tail + sum(_sizes(inputs, "parameters")))
        self.at = at
        self.moving = _LaneTangent(self, "rates", varied.rates, varied)
        self.closings = _LaneTangent(self, "closing", varied.closing, varied) if varied.closing else None
        self.conversions = {name: _LaneTangent(self, name, x, varied) for name, x in varied.conversions.items()}

    def place(self, source: Block, now: Value | None = None, *, shift: int = 0) -> None:
        """Write the state alone, without its derivatives, and the other inputs into the block of inputs `at`."""
        k, at, n0 = self.k, self.at, self.nq0 + self.nv0
        if now is not None:
            at[0] = now
        with k.loop(self.nq0) as j:
            at[j + 1] = source[j + shift]
        with k.loop(self.nv0) as j:
            at[j + (1 + self.nq0)] = source[j + (shift + self.nq)]
        with k.loop(self.tail) as j:
            at[j + (1 + n0)] = self.inputs[j + (1 + self.n)]

    def rates(self, now: Value, stage: Index) -> None:
        """Write k_stage = rates of the state in the inputs and their derivatives, at the time `now`."""
        k, moving, first = self.k, self.moving, stage * self.n
        self.place(self.inputs, now, shift=1)
        moving.evaluate()
        with k.loop(self.nq0) as j:
            self.stages[first + j] = moving.found[j]
        with k.loop(self.nv0) as j:
            self.stages[first + (j + self.nq)] = moving.found[j + self.nq0]
        with k.loop(self.columns) as c:
            moving.along(self.inputs, c, shift=1)
            with k.loop(self.nq0) as j:
                self.stages[first + self.of_q(c, j)] = moving.image[j]
            with k.loop(self.nv0) as j:
                self.stages[first + self.of_qd(c, j)] = moving.image[j + self.nq0]

    def of_q(self, c: Index, j: Index) -> Index:
        """Return the index in a state of the derivative of q_j along column c."""
        return (c + 1) * self.nq0 + j

    def of_qd(self, c: Index, j: Index) -> Index:
        """Return the index in a state of the derivative of qd_j along column c."""
        return (c + 1) * self.nv0 + j + self.nq

    def convert(self, program: Program, state: Block, now: Value) -> None:
        """Write the result of a Program of t, q and qd over a state, with its derivatives."""
        k, converting = self.k, self.conversions[program.name]
        self.place(state, now)
        converting.evaluate()
        with k.loop(self.columns) as c:
            converting.along(state, c)
            with k.loop(self.nq0) as j:
                state[self.of_q(c, j)] = converting.image[j]
            with k.loop(self.nv0) as j:
                state[self.of_qd(c, j)] = converting.image[j + self.nq0]
        with k.loop(self.nq0) as j:
            state[j] = converting.found[j]
        with k.loop(self.nv0) as j:
            state[j + self.nq] = converting.found[j + self.nq0]

    def close(self, state: Block, now: Value) -> None:
        """Write Newton's method on a state until its loops are closed, with the derivatives of every iteration.

        The last iteration finds closed loops and determines the velocities. It projects the derivatives onto the
        motions that the loops allow.
        """
        closing = self.closings
        if closing is None:
            return
        k = self.k

        def step() -> Value:
            self.place(state, now)
            closing.evaluate()
            return closing.found[self.nq0 + self.nv0]

        def move(before: Value, after: Value) -> None:
            moved, ends = ~after, after & ~before
            with k.loop(self.columns) as c:
                closing.along(state, c)
                with k.loop(self.nq0) as j:
                    at = self.of_q(c, j)
                    state[at] = before.where(state[at], closing.image[j])
            with k.when(k.any(ends)), k.loop(self.columns) as c:
                closing.along(state, c)
                with k.loop(self.nv0) as j:
                    at = self.of_qd(c, j)
                    state[at] = ends.where(closing.image[j + self.nq0], state[at])
            with k.loop(self.nq0) as j:
                state[j] = moved.where(closing.found[j], state[j])
            with k.loop(self.nv0) as j:
                state[j + self.nq] = ends.where(closing.found[j + self.nq0], state[j + self.nq])
            self.closed[self.n] = before.where(self.closed[self.n], closing.found[self.nq0 + self.nv0])

        self.repeat_closing(step, move)

    def normalize(self, state: Block) -> None:
        """Write the division of every quaternion by its length, and the derivatives of this division."""
        k = self.k
        for place in self.quaternions:
            whole = [state[place + i] for i in range(4)]
            length = dot(whole, whole).sqrt()
            unit = [x / length for x in whole]
            with k.loop(self.columns) as c:
                entries = [self.of_q(c, place + i) for i in range(4)]
                parts = [state[at] for at in entries]
                share = dot(unit, parts)
                for at, x, u in zip(entries, parts, unit, strict=True):
                    state[at] = (x - u * share) / length
        super().normalize(state)


class _LaneTangent:
    """A Program of a kernel with its derivatives along columns: `found` has its values, `image` those of one."""

    def __init__(self, runs: TangentRuns, name: str, varied: Differentiated, columns: Varied) -> None:
        k: Builder = runs.k
        self.runs, self.k, self.name, self.varied, self.all = runs, k, name, varied, columns
        self.found = k.block(f"{name}_found", sum(a.size for a in varied.program.outputs))
        self.image = k.block(f"{name}_image", runs.nq0 + runs.nv0)
        k.programs[name] = varied.program
        if varied.along is not None:
            k.programs[f"{name}_along"] = varied.along

    def evaluate(self) -> None:
        """Write the values, and the Jacobian if there is one, at the inputs in `runs.at`."""
        self.k.call(self.name, self.runs.at, self.found)

    def along(self, state: Block, c: Value, *, shift: int = 0) -> None:
        """Write the derivatives along column c, whose tangent is in a state."""
        runs, k = self.runs, self.k
        first, n0 = 1 + runs.nq0 + runs.nv0 + runs.tail, runs.nq0 + runs.nv0
        with k.loop(runs.nq0) as j:
            runs.at[j + first] = state[runs.of_q(c, j) + shift]
        with k.loop(runs.nv0) as j:
            runs.at[j + (first + runs.nq0)] = state[runs.of_qd(c, j) + shift]
        own = runs.columns - len(self.all.parameters)
        if self.varied.along is not None:
            self.units(runs.at, first + n0, c)
            k.call(f"{self.name}_along", runs.at, self.image)
            return
        self._product(c, first, own)

    def units(self, block: Block, first: int, c: Value) -> None:
        """Write the tangents of all parameters in column c."""
        k, own = self.k, self.runs.columns - len(self.all.parameters)
        count = sum(_sizes(self.varied.program.inputs, "parameters"))
        if count:
            chosen = k.choose(c, [-1.0] * own + [float(p) for p in self.all.parameters])
            with k.loop(count) as j:
                block[j + first] = k.number(j).equals(chosen).where(k.constant(1.0, Kind.LANE), 0.0)

    def _product(self, c: Value, first: int, own: int) -> None:
        """Write the product of the Jacobian with a tangent; own columns come before parameters."""
        runs, k, moves = self.runs, self.k, self.varied.moves
        n0, width = runs.nq0 + runs.nv0, runs.nq0 + runs.nv0 + len(self.all.parameters)
        skipped = 0 if moves is None else runs.nq0
        if moves is not None:
            with k.loop(runs.nq0) as j:
                self.image[j] = runs.at[j + (first + runs.nq0)] * k.choose(j, moves)
        with k.loop(n0 - skipped) as i:
            row = i * width + self.varied.values
            self.image[i + skipped] = dot(
                [self.found[row + j] for j in range(n0)], [runs.at[first + j] for j in range(n0)]
            )
        if self.all.parameters:
            with k.when(c >= own), k.loop(n0 - skipped) as i:
                entry = self.found[i * width + (self.varied.values + n0) + (c - own)]
                self.image[i + skipped] = self.image[i + skipped] + entry


def _sizes(inputs: Sequence[Array], name: str) -> list[int]:
    return [a.size for a in inputs if a.name == name]
