"""Implicit Runge-Kutta methods with fixed steps; their stages are found by fixed-point iteration.

A lane iterates until its stages converge to the last bit. After that its stages do not change, so that the iterations
of other lanes have no effect on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kernel, Kind
from .fixed_steps import RungeKutta, fixed_runs, steps_between, whole_step
from .lane_states import LaneStates
from .protocol import Step
from .reverse_steps import ReverseStep

MOST = 60
"""The most iterations of a step, twice as many if patient. A step that needs more is too long, and its state is NaN."""

CLOSE = {"float64": 1e-9, "float32": 1e-4}
"""The relative change of the stages below which a change that no longer shrinks is attributed to rounding."""

HUGE = {"float64": 1e300, "float32": 1e37}
"""A number above any change of the stages, by precision."""


@dataclass(frozen=True)
class Implicit(RungeKutta):
    """An implicit Runge-Kutta method, in which a stage depends on all stages."""

    @property
    def memory(self) -> int:
        """The number of new stages and accepted ones."""
        return 2 * len(self.b)

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return the kernel of fixed steps."""
        runs = fixed_runs(self.name, program, self.memory, quaternions, closing, dtype)
        return steps_between(runs, self.step(runs, program))

    def step(self, states: LaneStates, program: Program, *, patient: bool = False) -> Step:
        """Return the code of one step; see FixedPoint for `patient`."""
        stages = ImplicitStages(states, self, patient=patient)

        def advance(begin: Value, h: Value, m: Value) -> None:
            stages.find(begin, h, m)
            states.advance(self.b, states.k.cast(h, Kind.LANE), states.y, 0)
            states.lose(~stages.iteration.found.value, states.y)

        return whole_step(states, self.centering, advance)

    def reverse_step(self, states: LaneStates, parameters: int) -> ReverseStep:
        """Return the writer of one step in reverse."""
        return ReverseImplicit(states, self, parameters)


MIDPOINT = Implicit("midpoint", ((0.5,),), (1.0,), (0.5,))
"""The implicit midpoint rule: symmetric and symplectic."""

_S = math.sqrt(3.0) / 6.0
GAUSS = Implicit("gauss", ((0.25, 0.25 - _S), (0.25 + _S, 0.25)), (0.5, 0.5), (0.5 - _S, 0.5 + _S))
"""The Gauss method with two stages: symmetric and symplectic."""


class FixedPoint:
    """A fixed-point iteration of lanes in an unfinished kernel: the memory of its state, and the test of its end.

    A lane is at its end where the change no longer shrinks: in one iteration, or in two if `patient`. Changes of
    positions and of velocities follow from each other in turn, so that only every second one is certain to be smaller.
    Derivatives of steps require this, because they are exact only for stages that are.
    """

    def __init__(self, k: Builder, dtype: str, *, prefix: str = "", patient: bool = False) -> None:
        """Declare the memory, under names with a prefix."""
        self.dtype, self.earlier = dtype, k.block(f"{prefix}earlier") if patient else None
        self.change, self.former, self.size = (k.block(prefix + name) for name in ("change", "former", "size"))
        self.found, self.tries = k.block(f"{prefix}found", kind=Kind.MASK), k.block(f"{prefix}tries", kind=Kind.COUNT)

    def start(self) -> None:
        """Write the state before the first iteration."""
        self.former.value, self.found.value, self.tries.value = HUGE[self.dtype], False, 0
        if self.earlier:
            self.earlier.value = HUGE[self.dtype]

    def begin(self) -> None:
        """Write the state at the beginning of an iteration."""
        self.change.value, self.size.value = 0.0, 0.0

    def renew(self, block: Block, place: Value, new: Value) -> None:
        """Write a new value over an entry, in the lanes that are not at their end, and update the largest change."""
        old = block[place]
        new = self.found.value.where(old, new)
        block[place] = new
        self.enlarge(self.change, new - old)
        self.enlarge(self.size, new)

    def enlarge(self, block: Block, x: Value) -> None:
        """Write the larger of a size and |x|; NaN is kept."""
        known, size = block.value, abs(x)
        block.value = (size <= known).where(known, size)

    def end(self) -> tuple[Value, Value, Value]:
        """Write the end of an iteration; return the lanes at their end before and after it, and if more are allowed."""
        before, change, former = self.found.value, self.change.value, self.former.value
        close = change <= self.size.value * CLOSE[self.dtype]
        shrinks_no_more = change >= former
        if self.earlier:
            shrinks_no_more = shrinks_no_more & (change >= self.earlier.value)
            self.earlier.value = before.where(self.earlier.value, former)
        finished = (close & shrinks_no_more) | change.equals(0.0)
        after = before | finished
        self.found.value = after
        self.former.value = before.where(former, change)
        tries = self.tries.value + 1
        self.tries.value = tries
        return before, after, tries < (2 * MOST if self.earlier else MOST)


class ImplicitStages:
    """The stages of an implicit method: new ones are in the second half of the block, accepted ones in the first."""

    def __init__(self, runs: LaneStates, method: Implicit, *, patient: bool = False) -> None:
        """Declare the memory of the iteration."""
        self.runs, self.k, self.method, self.stages = runs, runs.k, method, len(method.b)
        self.iteration = FixedPoint(runs.k, runs.dtype, patient=patient)

    def find(self, begin: Value, h: Value, m: Value) -> None:
        """Write the stages of a step, which is the m-th one after the time `begin`."""
        runs, k = self.runs, self.k
        wide, number = k.cast(h, Kind.LANE), k.number(m)
        moments = [k.cast(begin + (number + c) * h, Kind.LANE) for c in self.method.c]
        # The iteration starts from the rates at the beginning of the step.
        runs.copy(runs.y, runs.inputs, shift=1)
        runs.rates(begin + number * h, 0)
        for s in range(1, self.stages):
            runs.copy(runs.stages, runs.stages, shift=s * runs.n)
        self.iteration.start()
        with k.repeat() as turn:
            turn.again = self.iterate(wide, moments)

    def iterate(self, h: Value, moments: list[Value]) -> Value:
        """Write one iteration of all stages; return whether a lane must continue."""
        runs, k = self.runs, self.k
        self.iteration.begin()
        with k.loop(self.stages) as s:
            runs.stage(s, self.method.a, h)
            runs.rates(k.choose(s, moments), s + self.stages)
        for s in range(self.stages):
            with k.loop(runs.n) as j:
                self.iteration.renew(runs.stages, j + s * runs.n, runs.stages[j + (self.stages + s) * runs.n])
        _, found, more = self.iteration.end()
        return k.any(~found) & more


# --- One step of an implicit Runge-Kutta method in reverse ---
#
# The cotangents v_s of the stages k_s satisfy v_s = h (b_s c + sum of a_js f_y^T v_j), with the cotangent c of
# the end and the Jacobian f_y at the point of stage j: the transposed linear equations of the stages. They are solved
# by the iteration that finds the stages. It converges at the same rate, because a matrix and its transpose have the
# same eigenvalues.


class ReverseImplicit(ReverseStep):
    """The writer of one step in reverse; the memory of the states has twice the stages of the method."""

    def __init__(self, states: LaneStates, method: Implicit, parameters: int) -> None:
        """Declare the memory."""
        super().__init__(states, len(method.b), parameters, method.centering)
        k = states.k
        self.method, self.stages = method, ImplicitStages(states, method, patient=True)
        self.iteration = FixedPoint(k, states.dtype, prefix="back_", patient=True)
        self.solved, self.added = k.block("solved", states.n * self.count), k.block("added", max(parameters, 1))

    def repeat_step(self, begin: Value, h: Value) -> None:
        """Write the stages of the step and its end `z`, before quaternions are scaled and loops are closed."""
        states, k = self.states, self.k
        wide = k.cast(h, Kind.LANE)
        self.stages.find(begin, h, k.constant(0, Kind.COUNT))
        with k.loop(self.count) as s:
            states.stage(s, self.method.a, wide)
            with k.loop(states.n) as j:
                self.points[s * states.n + j] = states.inputs[j + 1]
        states.advance(self.method.b, wide, self.z, 0)

    def reverse_stages(self, begin: Value, h: Value) -> None:
        """Write the cotangents of the stages, then of the state before the step and of the parameters."""
        k, n = self.k, self.states.n
        wide = k.cast(h, Kind.LANE)
        with k.loop(n * self.count) as j:
            self.pulled[j] = 0.0
        self.start(wide)
        self.iteration.start()
        with k.repeat() as turn:
            turn.again = self.iterate_stages(begin, h, wide)
        lost = ~self.iteration.found.value
        with k.loop(self.parameters) as j:
            self.total[j] = self.total[j] + lost.where(math.nan, self.added[j])
        self.add_stages()
        self.states.lose(lost, self.cotangent)

    def start(self, h: Value) -> None:
        """Write the first cotangents of the stages: those by the end of the step alone."""
        for s in range(self.count):
            with self.k.loop(self.states.n) as j:
                self.solved[j + s * self.states.n] = self.wanted(s, j, h)

    def wanted(self, s: int, j: Value, h: Value) -> Value:
        """Return the cotangent of entry j of stage s by the end of the step and by what all stages add to points."""
        total = self.cotangent[j] * self.method.b[s]
        for other in range(self.count):
            if self.method.a[other][s]:
                total = total + self.pulled[j + other * self.states.n] * self.method.a[other][s]
        return total * h

    def iterate_stages(self, begin: Value, h: Value, wide: Value) -> Value:
        """Write one iteration of all stages; return whether a lane must continue.

        The last one begins when all lanes are at their end, so that it changes no stage: the bits of a lane, with those
        of its parameters, do not depend on other lanes.
        """
        k, n = self.k, self.states.n
        self.iteration.begin()
        with k.loop(self.parameters) as j:
            self.added[j] = 0.0
        with k.loop(self.count) as s:
            with k.loop(n) as j:
                self.image[j] = self.points[s * n + j]
            with k.loop(n) as j:
                self.z[j] = self.solved[s * n + j]
            self.pull_stage(s, begin + h * k.choose(s, self.method.c), h, self.added)
        for s in range(self.count):
            with k.loop(n) as j:
                self.iteration.renew(self.solved, j + s * n, self.wanted(s, j, wide))
        before, _, more = self.iteration.end()
        return k.any(~before) & more
