"""Adaptive steps of which every accepted one is kept: the steps from which a run is differentiated backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel
from ..rosenbrock import Rosenbrock
from ..slopes import slopes_of
from ..tableaus import Pair
from .adaptive_steps import OWN, REPORT, SETTINGS, Adaptive, unshortened
from .rosenbrock_stages import RosenbrockStages
from .rosenbrock_steps import RosenbrockRuns
from .runs_of_lanes import RunsOfLanes


def recorded_kernel(
    program: Program, pair: Pair, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str = "float64"
) -> Kernel:
    """Return (q0, qd0[, parameters], times, rtol, atol, first, most, begin) -> (q, qd, ..., report, begins, lengths).

    The arguments are those of `adaptive_kernel`, and a run ends at the last of the times. Their number is that of the
    states which can be kept, so `most` must be smaller. q and qd are the states before each accepted step and the last
    one, `begins` their times [s], and `lengths` those of the steps [s]. A run with fewer steps repeats its last state,
    with steps of length zero.
    """
    stages = len(pair.b) + (0 if isinstance(pair, Rosenbrock) else 1)
    runs = RunsOfLanes(
        f"{pair.name}_recorded", program, stages, quaternions, closing,
        dtype=dtype, shared=SETTINGS, own=OWN, report=REPORT,
    )  # fmt: skip
    if isinstance(pair, Rosenbrock):
        return _RecordedRosenbrock(runs, pair, RosenbrockStages(runs, pair, slopes_of(program))).kernel()
    return _Recorded(runs, pair).kernel()


class _Recorded(Adaptive):
    """The writer of one kernel that keeps accepted steps instead of states at output times."""

    def resume(self) -> None:
        """Declare the further outputs, and write the time of the first state."""
        k = self.k
        self.begins, self.lengths = (k.array(name, "t", output=True) for name in ("begins", "lengths"))
        with k.each_lane():
            self.begins[0] = self.v["time"].value

    def outputs(self, good: Value, now: Value, tried: Value, reached: Value) -> None:
        """Write accepted steps; `now` and `tried` are in memory."""
        k = self.k
        self.v["time"].value = reached  # for the lanes with accepted steps; the caller restores the others
        self.good.value = good
        with k.each_lane(), k.when(self.good.value):
            self._append(self.z, self.v["tried"].value)

    def next_step(self, after: Value, h: Value, tried: Value, good: Value) -> Value:
        """Return the next step; every run ends at an output time, which does not shorten the steps after it."""
        return unshortened(after, h, tried, good)

    def finish(self) -> None:
        """Write the last state of each lane, with steps of length zero, over the rest, and its report."""
        k = self.k
        with k.each_lane():
            with k.whilst(lambda: self.index.value < k.extent()):
                self._append(self.runs.y, 0.0)
            self.lengths[k.extent() - 1] = 0.0
            for i, name in enumerate(REPORT):
                self.runs.report[i] = self.v[name].value

    def _append(self, state: Any, length: Any) -> None:
        """Write a state of one lane, its time, and the length of the step before it."""
        index = self.index.value
        self.runs.write(state, (self.runs.q, self.runs.qd), index)
        self.begins[index] = self.v["time"].value
        self.lengths[index - 1] = length
        self.index.value = index + 1


class _RecordedRosenbrock(_Recorded, RosenbrockRuns):
    """The writer of one kernel of a Rosenbrock method."""
