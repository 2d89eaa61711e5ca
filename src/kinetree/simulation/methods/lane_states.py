"""States of lanes: the memory of a step, its rates, its stages, and the closing of its loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Array, Block, Builder, Value
from ...compiler.lanes.form import Kernel, Kind
from ...compiler.lower.closing_steps import ASTRAY, NEAR_ROUNDS

if TYPE_CHECKING:
    from ...compiler.lanes.expressions import Index


class LaneStates:
    """A state `y` per lane in an unfinished kernel, with the statements of which time steps consist.

    `program` has the inputs t, q, qd and perhaps parameters, and the outputs dq and dqd. `closing`, for mechanisms with
    loops, is a Program of the same inputs except for held torques. Its outputs are q after one step of Newton's method,
    qd that keeps the loops closed, and the gap relative to the allowed one.
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

    def read(self, arrays: tuple[Array, Array], target: Block, *at: Index) -> None:
        """Write q and qd of a lane into a block, inside `each_lane`; `at` are the indices before their last axis."""
        for array, size, first in zip(arrays, (self.nq, self.nv), (0, self.nq), strict=True):
            with self.k.loop(size) as j:
                target[j + first] = array[(*at, j)]

    def write(self, source: Block, arrays: tuple[Array, Array], *at: Index) -> None:
        """Write a block of a lane into arrays of q and qd, the reverse of `read`."""
        for array, size, first in zip(arrays, (self.nq, self.nv), (0, self.nq), strict=True):
            with self.k.loop(size) as j:
                array[(*at, j)] = source[j + first]

    def give(self, array: Array | None, *at: Index, shift: int = 0) -> None:
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

    def advance(self, weights: Sequence[float], h: Value | float, target: Block, shift: int) -> None:
        """Write target[shift + j] = y[j] + h sum of weight k_s[j] for all j."""
        with self.k.loop(self.n) as j:
            y, total = self.y[j], self.combine(weights, j)
            target[j + shift] = y if total is None else y + total * h

    def copy(self, source: Block, target: Block, *, shift: int = 0) -> None:
        """Write a state into another block."""
        with self.k.loop(self.n) as j:
            target[j + shift] = source[j]

    def stage(self, s: Value, rows: Sequence[Sequence[float]], h: Value | float) -> None:
        """Write the state of stage `s` into the inputs: y + h sum of weights k, with the weights of its row.

        Stages are counted at run time, so that the Program of the rates appears once in the code of a kernel. A second
        copy of it would not fit into the instruction cache of a graphics card.
        """
        for i, weights in enumerate(rows):
            with self.k.when(s.equals(i)):
                self.advance(weights, h, self.inputs, 1)

    def rates(self, now: Value, stage: Index) -> None:
        """Write k_stage = rates of the state in the inputs, at the time `now`."""
        self.inputs[0] = now
        self.k.call("rates", self.inputs, self.stages, stage * self.n)

    def convert(self, program: Program, state: Block, now: Value) -> None:
        """Write the result of a Program of t, q and qd, such as those of a Centering, over a state."""
        self.k.programs[program.name] = program
        self.inputs[0] = now
        self.copy(state, self.inputs, shift=1)
        self.k.call(program.name, self.inputs, state)

    def close(self, state: Block, now: Value) -> None:
        """Write Newton's method on a state until its loops are closed, for each lane separately, then its velocities.

        Driven coordinates take their values of the time `now`.
        If rounding keeps a gap open, the last step gives the velocities. The remaining gap is the last entry of
        `closed`.
        """
        if not self.closing:
            return
        k = self.k

        def step() -> Value:
            self.place_state(state, now)
            k.call("closing", self.inputs, self.closed)
            return self.closed[self.n]

        def move(before: Value, after: Value) -> None:
            for first, count, change in ((0, self.nq, ~after), (self.nq, self.nv, after & ~before)):
                with k.loop(count) as j:
                    at = j + first
                    state[at] = change.where(self.closed[at], state[at])

        self.repeat_closing(step, move)

    def place_state(self, state: Block, now: object) -> None:
        """Write a state and its time into the inputs."""
        self.inputs[0] = now
        self.copy(state, self.inputs, shift=1)

    def repeat_closing(self, step: Callable[[], Value], move: Callable[[Value, Value], None]) -> None:
        """Write Newton's method: `step` writes a step and returns the gap before it, until that is 1 in every lane.

        `move` writes what changes with a step: coordinates until a lane ends (`~after`), and velocities by the step
        with which it does (`after & ~before`), which is number `self.rounds`.
        """
        k = self.k
        self.shut.value, self.rounds.value = False, 0
        with k.repeat() as turn:
            gap = step()
            before, rounds = self.shut.value, self.rounds.value + 1
            after = before | (~(gap > 1.0) | (rounds >= NEAR_ROUNDS))
            move(before, after)
            self.rounds.value, self.shut.value = rounds, after
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


# --- Linear equations of lanes: a matrix per lane is factored once, then solved for several right-hand sides ---
#
# The rows are exchanged where a pivot is small in its column, for every lane separately. Exchanges that no lane
# requires are skipped. They do not change the numbers of other lanes.

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

        With `used`, the matrix has only so many rows and columns, one row after the other.
        """
        k, w, n = self.k, self.matrix, self.size if used is None else used
        last = n - 1
        self.swapped.value = False
        with k.loop(n) as c:
            self._choose(c, n)
            reciprocal = k.cast(1.0, Kind.LANE) / w[c * n + c]
            w[c * n + c] = reciprocal
            with k.loop(last - c) as i:
                row = (c + 1 + i) * n
                factor = w[row + c] * reciprocal
                w[row + c] = factor
                with k.loop(last - c) as j:
                    at = c + 1 + j
                    w[row + at] = w[row + at] - factor * w[c * n + at]

    def _choose(self, c: Value, n: Value | int) -> None:
        """Write the exchange of row c of n with a later one that has a much larger entry in column c."""
        k, w, last = self.k, self.matrix, n - 1
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
        k, w, n = self.k, self.matrix, self.size if used is None else used
        last = n - 1
        with k.when(k.any(self.swapped.value)), k.loop(n) as c, k.loop(last - c) as i:
            row = c + 1 + i
            self._exchange(block, self.pivots[c].equals(k.number(row)), first + c, first + row)
        with k.loop(n) as c:
            x = block[first + c]
            with k.loop(last - c) as i:
                row = c + 1 + i
                block[first + row] = block[first + row] - w[row * n + c] * x
        with k.loop(n) as i:
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


# --- The common parts of kernels of runs: their arguments and their outputs ---
#
# A kernel is a function (q0, qd0[, parameters], times, *settings) -> (q, qd, q_end, qd_end, report). q and qd are the
# states at the times, NaN at those that were not reached. q_end and qd_end are the state where the call stopped.
# Another call continues from this state, with settings from the report, and gives the same bits as one long call.


class RunsOfLanes(LaneStates):
    """An unfinished kernel of runs."""

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
        """Declare the arguments: settings that all runs share, then settings of each run."""
        nq, nv = program.inputs[1].size, program.inputs[2].size
        parameters = next((a.size for a in program.inputs if a.name == "parameters"), 0)
        k = builder_of(name, program, closing)
        self.q0, self.qd0 = k.array("q0", nq), k.array("qd0", nv)
        self.parameters = k.array("parameters", parameters) if parameters else None
        self.times = k.array("times", "t", shared=True)
        self.shared = {name: k.array(name, shared=True) for name in shared}
        self.own = {name: k.array(name) for name in own}
        self.q, self.qd = k.array("q", "t", nq, output=True), k.array("qd", "t", nv, output=True)
        self.q_end, self.qd_end = k.array("q_end", nq, output=True), k.array("qd_end", nv, output=True)
        self.report = k.array("report", len(report), output=True)
        super().__init__(k, program, stages, quaternions, closing, dtype)
        with k.each_lane():
            self.read((self.q0, self.qd0), self.y)
            self.give(self.parameters)

    def kernel(self) -> Kernel:
        """Write the final state of all lanes, and return the finished kernel."""
        with self.k.each_lane():
            self.write(self.y, (self.q_end, self.qd_end))
        return self.k.kernel()

    def keep(self, index: Index) -> None:
        """Write the state of all lanes to the outputs at an index."""
        with self.k.each_lane():
            self.write(self.y, (self.q, self.qd), index)

    def blank(self, index: object) -> None:
        """Write NaN to the outputs at an index, inside `each_lane`."""
        for array, size, _ in self.outputs():
            with self.k.loop(size) as j:
                array[index, j] = math.nan

    def outputs(self) -> tuple:
        """Return the two arrays of states at the times, with their sizes and first indices in the state."""
        return ((self.q, self.nq, 0), (self.qd, self.nv, self.nq))


# --- A kernel that closes the loops of states: starts of runs, and samples that are interpolated between steps ---


def closed_states_kernel(closing: Program, *, dtype: str = "float64") -> Kernel:
    """Return (t, q0, qd0[, parameters]) -> (q_end, qd_end): states with their loops closed, or NaN if they are open."""
    k = Builder("closing_states", {"closing": closing})
    names = {"q": "q0", "qd": "qd0"}
    t, q0, qd0, *more = (k.array(names.get(a.name, a.name), a.size) for a in closing.inputs)
    q_end, qd_end = (k.array(f"{a.name}_end", a.size, output=True) for a in closing.outputs[:2])
    states, now = LaneStates(k, closing, 1, (), closing, dtype), k.block("now")
    with k.each_lane():
        now.value = t[0]
        states.read((q0, qd0), states.y)
        for array in more:
            states.give(array)
    states.close_or_lose(states.y, now.value)
    with k.each_lane():
        states.write(states.y, (q_end, qd_end))
    return k.kernel()
