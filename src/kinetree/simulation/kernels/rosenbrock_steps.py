"""Rosenbrock methods with step control and dense output; every lane has its own time and step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..rosenbrock import Rosenbrock
from ..slopes import slopes_of
from .adaptive_steps import OWN, REPORT, SETTINGS, Adaptive, unshortened
from .rosenbrock_stages import RosenbrockStages
from .runs_of_lanes import RunsOfLanes


def rosenbrock_kernel(
    program: Program, method: Rosenbrock, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str
) -> Kernel:
    """Return the kernel of an adaptive method, with the arguments and the report of `adaptive_kernel`.

    The rates at the beginning of a step, which come with their Jacobian, count as an evaluation.
    """
    runs = RunsOfLanes(
        method.name, program, len(method.b), quaternions, closing,
        dtype=dtype, shared=SETTINGS, own=OWN, report=REPORT,
    )  # fmt: skip
    return RosenbrockRuns(runs, method, RosenbrockStages(runs, method, slopes_of(program))).kernel()


class Stages(Protocol):
    """The writer of the stages of a step: `RosenbrockStages`, or that of states with their derivatives."""

    def linearize(self, now: Value) -> None:
        """Write the Jacobian at the beginning of a step."""
        ...

    def write(self, now: Value, tried: Value, reached: Value) -> None:
        """Write all stages of a step; `reached` is the time at its end."""
        ...


class RosenbrockRuns(Adaptive):
    """The writer of one kernel; `stages` writes those of a step."""

    def __init__(self, runs: RunsOfLanes, method: Rosenbrock, stages: Stages) -> None:
        """Declare the variables."""
        super().__init__(runs, method)
        self.method, self.stages = method, stages
        self.fresh = runs.k.block("fresh", kind=Kind.MASK)

    def begin(self) -> None:
        """Write that the Jacobian is required."""
        self.fresh.value = True

    def advance(self, now: Value, tried: Value, reached: Value) -> None:
        """Write the stages of a step and its end `z`.

        A Jacobian is computed if a lane has taken a step. In a lane whose step was rejected it has the same bits again.
        """
        runs, k = self.runs, self.k
        with k.when(k.any(self.fresh.value)):
            self.stages.linearize(now)
        self.stages.write(now, tried, reached)
        runs.advance(self.method.b, tried, self.z, 0)
        runs.normalize(self.z)
        runs.close(self.z, reached)

    def count(self, active: Value, good: Value, bad: Value) -> None:
        """Write the counts of evaluations, accepted and rejected steps; a rejected step takes no new Jacobian."""
        super().count(active, good, bad)
        v = self.v["evaluations"]
        v.value = v.value - bad.where(self.k.constant(1.0, Kind.LANE), 0.0)
        self.fresh.value = good

    def next_step(self, after: Value, h: Value, tried: Value, good: Value) -> Value:
        """Return the next step; one that was shortened to end at an output time does not shorten the next."""
        return unshortened(after, h, tried, good)

    def take(self, good: Value, j: Value) -> None:
        """Write accepted steps into the state."""
        self.runs.y[j] = good.where(self.z[j], self.runs.y[j])
