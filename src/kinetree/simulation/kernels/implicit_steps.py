"""Implicit Runge-Kutta methods with fixed steps; their stages are found by fixed-point iteration.

A lane iterates until its stages converge to the last bit. After that its stages do not change, so that the iterations
of other lanes have no effect on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.ir.program import Program
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kernel, Kind
from ..tableaus import Tableau
from .fixed_steps import Step, fixed_runs, steps_between
from .lane_states import LaneStates

MOST = 60
"""The most iterations of a step. A step that needs more is too long for the method, and its state becomes NaN."""

CLOSE = {"float64": 1e-9, "float32": 1e-4}
"""The relative change of the stages below which a change that no longer shrinks is attributed to rounding."""

HUGE = {"float64": 1e300, "float32": 1e37}
"""A number above any change of the stages, by precision."""


def implicit_kernel(
    program: Program, tableau: Tableau, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str
) -> Kernel:
    """Return (q0, qd0[, parameters], times, dt, skip, budget) -> (q, qd, q_end, qd_end, report)."""
    stages = len(tableau.b)
    runs = fixed_runs(tableau.name, program, 2 * stages, quaternions, closing, dtype)
    return steps_between(runs, implicit_step(runs, tableau))


def implicit_step(states: LaneStates, tableau: Tableau, *, patient: bool = False) -> Step:
    """Return the step of an implicit method; the memory has twice its stages. See FixedPoint for `patient`."""
    stages = ImplicitStages(states, tableau, patient=patient)

    def step(begin: Value, h: Value, m: Value) -> None:
        k, number = states.k, states.k.number(m)
        stages.find(begin, h, m)
        states.advance(tableau.b, k.cast(h, Kind.LANE), states.y, 0)
        states.lose(~stages.iteration.found.value, states.y)
        states.normalize(states.y)
        states.close_or_lose(states.y, begin + (number + 1.0) * h)

    return step


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
        return before, after, tries < MOST


class ImplicitStages:
    """The stages of an implicit method: new ones are in the second half of the block, accepted ones in the first."""

    def __init__(self, runs: LaneStates, tableau: Tableau, *, patient: bool = False) -> None:
        """Declare the memory of the iteration."""
        self.runs, self.k, self.tableau, self.stages = runs, runs.k, tableau, len(tableau.b)
        self.iteration = FixedPoint(runs.k, runs.dtype, patient=patient)

    def find(self, begin: Value, h: Value, m: Value) -> None:
        """Write the stages of a step, which is the m-th one after the time `begin`."""
        runs, k = self.runs, self.k
        wide, number = k.cast(h, Kind.LANE), k.number(m)
        moments = [k.cast(begin + (number + c) * h, Kind.LANE) for c in self.tableau.c]
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
            runs.stage(s, self.tableau.a, h)
            runs.rates(k.choose(s, moments), s + self.stages)
        for s in range(self.stages):
            with k.loop(runs.n) as j:
                self.iteration.renew(runs.stages, j + s * runs.n, runs.stages[j + (self.stages + s) * runs.n])
        _, found, more = self.iteration.end()
        return k.any(~found) & more
