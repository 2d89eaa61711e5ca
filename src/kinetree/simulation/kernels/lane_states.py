"""States of lanes: the memory of a step, its rates, its stages, and the closing of its loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Array, Block, Value
from ...compiler.lanes.form import Kind

ROUNDS = 10
"""The most steps of Newton's method to close the loops of a state; after a time step, two are usual."""

ASTRAY = {"float64": 1e6, "float32": 1e3}
"""The gap, in parts of the allowed one, above which loops count as open; smaller gaps may remain near singular
positions."""


class LaneStates:
    """A state `y` per lane in an unfinished kernel, with the statements of which time steps consist.

    `program` has the inputs t, q, qd and perhaps parameters, and the outputs dq and dqd. `closing`, for mechanisms with
    loops, is a Program of the same inputs except for held torques. Its outputs are q after one step of Newton's method,
    qd that keeps the loops closed, and the gap in parts of the allowed one.
    """

    def __init__(
        self, k: Builder, program: Program, stages: int, quaternions: Sequence[int], closing: Program | None, dtype: str
    ) -> None:
        """Declare the memory; the kernel calls the Programs "rates" and, with loops, "closing"."""
        self.k, self.quaternions, self.closing, self.dtype = k, quaternions, closing, dtype
        self.nq, self.nv = program.inputs[1].size, program.inputs[2].size
        n = self.n = self.nq + self.nv
        self.inputs = k.block("in", sum(a.size for a in program.inputs))
        self.y, self.stages = k.block("y", n), k.block("k", n * stages)
        self.closed = k.block("c", n + 1 if closing else 1)
        self.shut, self.rounds = k.block("shut", kind=Kind.MASK), k.block("rounds", kind=Kind.COUNT)

    def read(self, arrays: tuple[Array, Array], target: Block, *at: Any) -> None:
        """Write q and qd of a lane into a block, inside `each_lane`; `at` are the indices before their last axis."""
        for array, size, first in zip(arrays, (self.nq, self.nv), (0, self.nq), strict=True):
            with self.k.loop(size) as j:
                target[j + first] = array[(*at, j)]

    def write(self, source: Block, arrays: tuple[Array, Array], *at: Any) -> None:
        """Write a block of a lane into arrays of q and qd, the reverse of `read`."""
        for array, size, first in zip(arrays, (self.nq, self.nv), (0, self.nq), strict=True):
            with self.k.loop(size) as j:
                array[(*at, j)] = source[j + first]

    def give(self, array: Array | None, *at: Any, shift: int = 0) -> None:
        """Write an array of a lane into the inputs behind the state, inside `each_lane`; nothing for None."""
        if array:
            with self.k.loop(array.argument.shape[-1]) as j:
                self.inputs[j + (1 + self.n + shift)] = array[(*at, j)]

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

    def close(self, state: Block, now: Value) -> None:
        """Write Newton's method on a state until its loops are closed, for each lane separately, then its velocities.

        Driven coordinates become those of the time `now`.
        If rounding keeps a gap open, the velocities are those of the last step. The remaining gap is the last entry of
        `closed`.
        """
        if not self.closing:
            return
        k = self.k
        self.inputs[0] = now
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

    def close_or_lose(self, state: Block, now: Value) -> None:
        """Write `close`, with NaN for a state whose loops do not close because the step was too long."""
        self.close(state, now)
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
            length = dot(parts, parts).sqrt()
            for i, x in enumerate(parts):
                state[place + i] = x / length


def dot(a: Sequence[Value], b: Sequence[Value]) -> Value:
    """Return the sum of products of two lists of values, from the first to the last."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def builder_of(name: str, program: Program, closing: Program | None) -> Builder:
    """Return an empty kernel that calls the rates and, with loops, their closing."""
    return Builder(name, {"rates": program} | ({"closing": closing} if closing else {}))
