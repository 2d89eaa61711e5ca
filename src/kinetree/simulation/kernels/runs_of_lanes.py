"""The common parts of kernels of runs: their arguments and their outputs.

A kernel is a function (q0, qd0[, parameters], times, *settings) -> (q, qd, q_end, qd_end, report). q and qd are the
states at the times, NaN at those that were not reached. q_end and qd_end are the state where the call stopped. Another
call continues from this state, with settings from the report, and gives the same bits as one long call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from .lane_states import LaneStates, builder_of


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
        """Declare the arguments: settings that all runs share, then those of each run."""
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

    def keep(self, index: Any) -> None:
        """Write the state of all lanes to the outputs at an index."""
        with self.k.each_lane():
            self.write(self.y, (self.q, self.qd), index)

    def blank(self, index: Any) -> None:
        """Write NaN to the outputs at an index, inside `each_lane`."""
        for array, size, _ in self.outputs():
            with self.k.loop(size) as j:
                array[index, j] = math.nan

    def outputs(self) -> tuple:
        """Return the two arrays of states at the times, with their sizes and first indices in the state."""
        return ((self.q, self.nq, 0), (self.qd, self.nv, self.nq))
