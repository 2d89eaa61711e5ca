"""Implicit Runge-Kutta methods with fixed steps; their stages are found by fixed-point iteration.

A lane iterates until its stages converge to the last bit. After that its stages do not change, so that the iterations
of other lanes have no effect on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.ir.program import Program
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


def implicit_step(states: LaneStates, tableau: Tableau) -> Step:
    """Return the step of an implicit method; the memory has twice its stages."""
    return _Implicit(states, tableau).step


class _Implicit:
    """The writer of one kernel; new stages are in the second half of the block, accepted ones in the first."""

    def __init__(self, runs: LaneStates, tableau: Tableau) -> None:
        self.runs, self.k, self.tableau, self.stages = runs, runs.k, tableau, len(tableau.b)
        self.change, self.former, self.size = (self.k.block(name) for name in ("change", "former", "size"))
        self.found, self.tries = self.k.block("found", kind=Kind.MASK), self.k.block("tries", kind=Kind.COUNT)

    def step(self, begin: Value, h: Value, m: Value) -> None:
        """Write one step: iterate the stages, then advance."""
        runs, k = self.runs, self.k
        wide, number = k.cast(h, Kind.LANE), k.number(m)
        moments = [k.cast(begin + (number + c) * h, Kind.LANE) for c in self.tableau.c]
        # The iteration starts from the rates at the beginning of the step.
        runs.copy(runs.y, runs.inputs, shift=1)
        runs.rates(begin + number * h, 0)
        for s in range(1, self.stages):
            runs.copy(runs.stages, runs.stages, shift=s * runs.n)
        self.former.value, self.found.value, self.tries.value = HUGE[runs.dtype], False, 0
        with k.repeat() as turn:
            turn.again = self.iterate(wide, moments)
        runs.advance(self.tableau.b, wide, runs.y, 0)
        runs.lose(~self.found.value, runs.y)
        runs.normalize(runs.y)
        runs.close_or_lose(runs.y, begin + (number + 1.0) * h)

    def iterate(self, h: Value, moments: list[Value]) -> Value:
        """Write one iteration of all stages; return whether a lane must continue."""
        runs, k = self.runs, self.k
        found = self.found.value
        self.change.value, self.size.value = 0.0, 0.0
        with k.loop(self.stages) as s:
            runs.stage(s, self.tableau.a, h)
            runs.rates(k.choose(s, moments), s + self.stages)
        for s in range(self.stages):
            with k.loop(runs.n) as j:
                self.renew(found, j, s)
        change, former = self.change.value, self.former.value
        close = change <= self.size.value * CLOSE[runs.dtype]
        finished = (close & (change >= former)) | change.equals(0.0)
        now_found = found | finished
        self.found.value = now_found
        self.former.value = found.where(former, change)
        tries = self.tries.value + 1
        self.tries.value = tries
        return k.any(~now_found) & (tries < MOST)

    def renew(self, found: Value, j: Value, s: int) -> None:
        """Write the new value of one entry of a stage, and update the largest change."""
        runs = self.runs
        place = j + s * runs.n
        old = runs.stages[place]
        new = found.where(old, runs.stages[j + (self.stages + s) * runs.n])
        runs.stages[place] = new
        self.enlarge(self.change, new - old)
        self.enlarge(self.size, new)

    def enlarge(self, block: Block, x: Value) -> None:
        """Write the larger of a size and |x|; NaN is kept."""
        known, size = block.value, abs(x)
        block.value = (size <= known).where(known, size)
