"""One step in reverse, in the lane language.

The cotangent of a state has an entry per entry of the state. A step is repeated from the state before it. Then its
closing of loops, its scaling of quaternions and its stages are passed in reverse, each by the product of its Jacobian
with a cotangent, which a Program computes.
"""

from __future__ import annotations

from typing import Any

from ...compiler.lanes.expressions import Array, Block, Value
from ...compiler.lanes.form import Kind
from ..tableaus import Pair, Tableau
from .lane_states import ROUNDS, LaneStates, dot


class ReverseStep:
    """The writer of one step in reverse: `cotangent` is that of the state, `total` the sum of those of parameters."""

    def __init__(self, states: LaneStates, tableau: Tableau | Pair | None, parameters: int) -> None:
        """Declare the memory; `parameters` is their number."""
        k, n = states.k, states.n
        self.states, self.k, self.tableau, self.parameters = states, k, tableau, parameters
        self.tail = sum(a.size for a in k.programs["rates"].inputs[3:])
        self.count = 1 if tableau is None else len(tableau.b)
        self.cotangent, self.total = k.block("cotangent", n), k.block("total", max(parameters, 1))
        self.z, self.points = k.block("z", n), k.block("points", n * self.count)
        self.given, self.image = k.block("given", 1 + 2 * n + self.tail), k.block("image", n + parameters)
        self.pulled = k.block("pulled", n * self.count)
        if states.closing:
            self.iterates, self.last = k.block("iterates", n * ROUNDS), k.block("last")

    def write(self, begin: Value, h: Value) -> None:
        """Write the cotangent of the state before a step over that of the state after it."""
        if self.tableau is None:
            self.copy(self.states.y, self.points)
        self.repeat_step(begin, h)
        self.open_loops(begin + h)
        if self.tableau is None:
            self.place(self.points, begin, h)
            self.pull("rates_back", self.cotangent)
            self.add_parameters(None)
            self.copy(self.image, self.cotangent)
        else:
            self.unscale()
            self.reverse_stages(begin, h)

    def write_own(self, begin: Value, h: Value) -> None:
        """Write the same in the lanes whose step is longer than zero, whose bits do not depend on other lanes."""
        k, taken, sizes = self.k, h > 0.0, (self.states.n, self.parameters)
        pairs = [(x, k.block(f"former_{i}", max(size, 1)), size)
                 for i, (x, size) in enumerate(zip((self.cotangent, self.total), sizes, strict=True))]  # fmt: skip
        for x, former, size in pairs:
            with k.loop(size) as j:
                former[j] = x[j]
        self.write(begin, h)
        for x, former, size in pairs:
            with k.loop(size) as j:
                x[j] = taken.where(x[j], former[j])

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the stages of the step and its end `z`, before quaternions are scaled and loops are closed."""
        states, k = self.states, self.k
        if self.tableau is None:
            states.copy(states.y, states.inputs, shift=1)
            states.inputs[1 + states.n + self.tail - 1] = h
            states.rates(begin, 0)
            self.copy(states.stages, self.z)
            return
        wide = k.cast(h, Kind.LANE)
        with k.loop(self.count) as s:
            states.stage(s, self.tableau.a, wide)
            with k.loop(states.n) as j:
                self.points[s * states.n + j] = states.inputs[j + 1]
            states.rates(begin + h * k.choose(s, self.tableau.c), s)
        states.advance(self.tableau.b, wide, self.z, 0)

    def reverse_stages(self, begin: Value, h: Value) -> None:
        """Write the stages in reverse: the cotangent of rates k_s is h (b_s of the end + sum a_js of later points)."""
        k, n, tableau = self.k, self.states.n, self.tableau
        assert tableau is not None, "a Program that is a step has no stages"
        wide = k.cast(h, Kind.LANE)
        with k.loop(self.count) as i:
            s = (self.count - 1) - i
            for stage in range(self.count):
                with k.when(s.equals(stage)), k.loop(n) as j:
                    total = self.cotangent[j] * tableau.b[stage]
                    for later in range(stage + 1, self.count):
                        if tableau.a[later][stage]:
                            total = total + self.pulled[j + later * n] * tableau.a[later][stage]
                    self.z[j] = total * wide
            with k.loop(n) as j:
                self.image[j] = self.points[s * n + j]
            self.pull_stage(s, begin + h * k.choose(s, tableau.c), h)
        self.add_stages()

    def pull_stage(self, s: Value, now: Value, h: Value, sums: Block | None = None) -> None:
        """Write what stage s, whose state is the image, adds to the cotangents of state and parameters.

        Those of parameters are added to `sums`, by default `total`.
        """
        n = self.states.n
        self.place(self.image, now, h)
        self.pull("rates_back", self.z)
        self.add_parameters(None, sums)
        with self.k.loop(n) as j:
            self.pulled[s * n + j] = self.image[j]

    def add_stages(self) -> None:
        """Write the cotangent of the state before the step: that after it, with what all stages add."""
        n = self.states.n
        with self.k.loop(n) as j:
            total = self.cotangent[j]
            for stage in range(self.count):
                total = total + self.pulled[j + stage * n]
            self.cotangent[j] = total

    def unscale(self) -> None:
        """Write the cotangents of quaternions before they were divided by their lengths."""
        for place in self.states.quaternions:
            parts = [self.z[place + i] for i in range(4)]
            length = dot(parts, parts).sqrt()
            unit = [x / length for x in parts]
            given = [self.cotangent[place + i] for i in range(4)]
            share = dot(unit, given)
            for i, (u, c) in enumerate(zip(unit, given, strict=True)):
                self.cotangent[place + i] = (c - u * share) / length

    def open_loops(self, now: Value) -> None:
        """Write the cotangent of the state before its loops were closed."""
        states, k = self.states, self.k
        if not states.closing:
            return
        states.copy(self.z, states.y)
        if self.tableau is not None:
            states.normalize(states.y)
        self.iterate(now)
        n, rounds = states.n, states.rounds.value
        with k.loop(rounds) as i:
            r = rounds - 1 - i
            with k.loop(n) as j:
                states.y[j] = self.iterates[r * n + j]
            number = k.number(r)
            ends, before = self.last.value.equals(number), self.last.value >= number
            self.place(states.y, now, k.constant(0.0, Kind.LANE))
            with k.when(k.any(ends)):  # the last iteration determined the velocities
                self.pull_of(0.0, 1.0)
                self.add_parameters(ends)
                with k.loop(states.nq) as j:
                    self.cotangent[j] = self.cotangent[j] + ends.where(self.image[j], 0.0)
                with k.loop(states.nv) as j:
                    at = j + states.nq
                    self.cotangent[at] = ends.where(self.image[at], self.cotangent[at])
            self.pull_of(1.0, 0.0)
            self.add_parameters(before)
            with k.loop(states.nq) as j:
                self.cotangent[j] = before.where(self.image[j], self.cotangent[j])

    def iterate(self, now: Value) -> None:
        """Write Newton's method on the state y as a time step does, and keep its iterates and the last of each lane."""
        states, k, n = self.states, self.k, self.states.n
        states.shut.value, states.rounds.value = False, 0
        self.last.value = 0.0
        with k.repeat() as turn:
            rounds = states.rounds.value
            with k.loop(n) as j:
                self.iterates[rounds * n + j] = states.y[j]
            states.inputs[0] = now
            states.copy(states.y, states.inputs, shift=1)
            k.call("closing", states.inputs, states.closed)
            before, small = states.shut.value, ~(states.closed[n] > 1.0)
            after = before | (small | (rounds + 1 >= ROUNDS))
            self.last.value = (after & ~before).where(k.number(rounds), self.last.value)
            with k.loop(states.nq) as j:
                states.y[j] = after.where(states.y[j], states.closed[j])
            states.rounds.value, states.shut.value = rounds + 1, after
            turn.again = k.any(~after)

    def place(self, state: Block, now: Any, h: Any) -> None:
        """Write a state, a time and the parameters into the inputs of a product; a Program that is a step reads h."""
        states, k, n = self.states, self.k, self.states.n
        self.given[0] = now
        with k.loop(n) as j:
            self.given[j + 1] = state[j]
        with k.loop(self.tail) as j:
            self.given[j + (1 + n)] = states.inputs[j + (1 + n)]
        if self.tableau is None:
            self.given[n + self.tail] = h

    def pull(self, program: str, cotangent: Block) -> None:
        """Write the product of the Jacobian at the given inputs with a cotangent to `image`."""
        first = 1 + self.states.n + self.tail
        with self.k.loop(self.states.n) as j:
            self.given[j + first] = cotangent[j]
        self.k.call(program, self.given, self.image)

    def pull_of(self, positions: float, velocities: float) -> None:
        """Write the product of the closing with the cotangents of positions alone, or of velocities alone."""
        states, k = self.states, self.k
        first = 1 + states.n + self.tail
        for share, size, begin in ((positions, states.nq, 0), (velocities, states.nv, states.nq)):
            with k.loop(size) as j:
                self.given[j + (first + begin)] = self.cotangent[j + begin] if share else k.constant(0.0, Kind.LANE)
        k.call("closing_back", self.given, self.image)

    def add_parameters(self, mask: Value | None, sums: Block | None = None) -> None:
        """Write the sum of the cotangents of parameters, in the lanes of a mask; by default to `total`."""
        if self.parameters:
            sums = sums or self.total
            with self.k.loop(self.parameters) as j:
                part = self.image[j + self.states.n]
                sums[j] = sums[j] + (part if mask is None else mask.where(part, 0.0))

    def add_to_cotangent(self, arrays: tuple[Array, Array], *at: Any) -> None:
        """Write the sum of the cotangent and arrays of q and qd of a lane, inside `each_lane`."""
        states = self.states
        for array, size, first in zip(arrays, (states.nq, states.nv), (0, states.nq), strict=True):
            with self.k.loop(size) as j:
                self.cotangent[j + first] = self.cotangent[j + first] + array[(*at, j)]

    def copy(self, source: Block, target: Block) -> None:
        """Write a state into another block."""
        with self.k.loop(self.states.n) as j:
            target[j] = source[j]
