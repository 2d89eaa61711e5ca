"""The common parts of kernels of runs: the state of a run, its rates, its outputs, and the closing of its loops.

A kernel is a function (q0, qd0[, parameters], times, *settings) -> (q, qd, q_end, qd_end, report). q and qd are the
states at the times, NaN at those that were not reached. q_end and qd_end are the state where the call stopped. Another
call continues from this state, with settings from the report, and gives the same bits as one long call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kernel, Kind

ROUNDS = 10
"""The most steps of Newton's method to close the loops of a state; after a time step, two are usual."""

ASTRAY = {"float64": 1e6, "float32": 1e3}
"""The gap, in parts of the allowed one, above which loops count as open; smaller gaps may remain near singular
positions."""


class RunsOfLanes:
    """An unfinished kernel, with a state `y` per lane.

    `program` has the inputs t, q, qd and perhaps parameters, and the outputs dq and dqd. `closing`, for mechanisms with
    loops, is a Program of the same inputs except for held torques. Its outputs are q after one step of Newton's method,
    qd that keeps the loops closed, and the gap in parts of the allowed one.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        stages: int,
        quaternions: Sequence[int],
        closing: Program | None,
        *,
        dtype: str,
        shared: Sequence[str],
        own: Sequence[str] = (),
        report: Sequence[str],
    ) -> None:
        """Declare the arguments: settings that all runs share, then those of each run."""
        self.quaternions, self.closing, self.dtype = quaternions, closing, dtype
        self.nq, self.nv = program.inputs[1].size, program.inputs[2].size
        n = self.n = self.nq + self.nv
        parameters = next((a.size for a in program.inputs if a.name == "parameters"), 0)
        k = self.k = Builder(name, {"rates": program} | ({"closing": closing} if closing else {}))
        self.q0, self.qd0 = k.array("q0", self.nq), k.array("qd0", self.nv)
        self.parameters = k.array("parameters", parameters) if parameters else None
        self.times = k.array("times", "t", shared=True)
        self.shared = {name: k.array(name, shared=True) for name in shared}
        self.own = {name: k.array(name) for name in own}
        self.q, self.qd = k.array("q", "t", self.nq, output=True), k.array("qd", "t", self.nv, output=True)
        self.q_end, self.qd_end = k.array("q_end", self.nq, output=True), k.array("qd_end", self.nv, output=True)
        self.report = k.array("report", len(report), output=True)
        self.inputs = k.block("in", sum(a.size for a in program.inputs))
        self.y, self.stages = k.block("y", n), k.block("k", n * stages)
        self.closed = k.block("c", n + 1 if closing else 1)
        self.shut, self.rounds = k.block("shut", kind=Kind.MASK), k.block("rounds", kind=Kind.COUNT)
        self._bring()

    def kernel(self) -> Kernel:
        """Write the final state of all lanes, and return the finished kernel."""
        with self.k.each_lane():
            for array, size, first in ((self.q_end, self.nq, 0), (self.qd_end, self.nv, self.nq)):
                with self.k.loop(size) as j:
                    array[j] = self.y[j + first]
        return self.k.kernel()

    def _bring(self) -> None:
        with self.k.each_lane():
            arrays = [(self.q0, self.y, self.nq, 0), (self.qd0, self.y, self.nv, self.nq)]
            if self.parameters:
                arrays.append((self.parameters, self.inputs, int(self.parameters.argument.shape[0]), 1 + self.n))
            for array, block, size, first in arrays:
                with self.k.loop(size) as j:
                    block[j + first] = array[j]

    def keep(self, index: Any) -> None:
        """Write the state of all lanes to the outputs at an index."""
        with self.k.each_lane():
            for array, size, first in self.outputs():
                with self.k.loop(size) as j:
                    array[index, j] = self.y[j + first]

    def blank(self, index: Any) -> None:
        """Write NaN to the outputs at an index, inside `each_lane`."""
        for array, size, _ in self.outputs():
            with self.k.loop(size) as j:
                array[index, j] = math.nan

    def outputs(self) -> tuple:
        """Return the two arrays of states at the times, with their sizes and first indices in the state."""
        return ((self.q, self.nq, 0), (self.qd, self.nv, self.nq))

    def combine(self, weights: Sequence[float], j: Value) -> Value | None:
        """Return the sum of weight k_s[j] over the stages s; None if all weights are zero."""
        total: Value | None = None
        for s, weight in enumerate(weights):
            if weight:
                term = self.stages[j + s * self.n] * weight
                total = term if total is None else total + term
        return total

    def advance(self, weights: Sequence[float], h: Any, target: Block, shift: int) -> None:
        """Write target[shift + j] = y[j] + h sum of weight k_s[j] for all j."""
        with self.k.loop(self.n) as j:
            y, total = self.y[j], self.combine(weights, j)
            target[j + shift] = y if total is None else y + total * h

    def copy(self, source: Block, target: Block, *, shift: int = 0) -> None:
        """Write a state into another block."""
        with self.k.loop(self.n) as j:
            target[j + shift] = source[j]

    def stage(self, s: Value, rows: Sequence[Sequence[float]], h: Any) -> None:
        """Write the state of stage `s` into the inputs: y + h sum of weights k, with the weights of its row.

        Stages are counted at run time, so that the Program of the rates appears once in the code of a kernel. A second
        copy of it would not fit into the instruction cache of a graphics card.
        """
        for i, weights in enumerate(rows):
            with self.k.when(s.equals(i)):
                self.advance(weights, h, self.inputs, 1)

    def rates(self, now: Value, stage: Any) -> None:
        """Write k_stage = rates of the state in the inputs, at the time `now`."""
        self.inputs[0] = now
        self.k.call("rates", self.inputs, self.stages, stage * self.n)

    def close(self, state: Block) -> None:
        """Write Newton's method on a state until its loops are closed, for each lane separately, then its velocities.

        If rounding keeps a gap open, the velocities are those of the last step. The remaining gap is the last entry of
        `closed`.
        """
        if not self.closing:
            return
        k = self.k
        self.shut.value, self.rounds.value = False, 0
        with k.repeat() as turn:
            self.copy(state, self.inputs, shift=1)
            k.call("closing", self.inputs, self.closed)
            before, small = self.shut.value, ~(self.closed[self.n] > 1.0)
            rounds = self.rounds.value + 1
            self.rounds.value = rounds
            after = before | (small | (rounds >= ROUNDS))
            for first, count, change in ((0, self.nq, ~after), (self.nq, self.nv, after & ~before)):
                with k.loop(count) as j:
                    at = j + first
                    state[at] = change.where(self.closed[at], state[at])
            self.shut.value = after
            turn.again = k.any(~after)

    def close_or_lose(self, state: Block) -> None:
        """Write `close`, with NaN for a state whose loops do not close because the step was too long."""
        self.close(state)
        if self.closing:
            self.lose(self.astray(), state)

    def astray(self) -> Value:
        """Return a mask of the lanes whose loops did not close."""
        return ~(self.closed[self.n] <= ASTRAY[self.dtype])

    def lose(self, lost: Value, state: Block) -> None:
        """Write NaN into the state of the lanes of a mask."""
        with self.k.loop(self.n) as j:
            state[j] = lost.where(math.nan, state[j])

    def normalize(self, state: Block) -> None:
        """Write the division of every quaternion of a state by its length."""
        for place in self.quaternions:
            parts = [state[place + i] for i in range(4)]
            total = parts[0] * parts[0]
            for x in parts[1:]:
                total = total + x * x
            length = total.sqrt()
            for i, x in enumerate(parts):
                state[place + i] = x / length
