"""A kernel that closes the loops of states, for samples that are interpolated between steps."""

from __future__ import annotations

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel, Kind
from .runs_of_lanes import RunsOfLanes


def closing_kernel(closing: Program, *, dtype: str) -> Kernel:
    """Return (q0, qd0[, parameters], times) -> (q, qd, q_end, qd_end, report); the closed states are q_end and qd_end.

    The arguments are those of the other kernels. The times may be none, and the other outputs are not written.
    """
    runs = RunsOfLanes("closing_states", closing, 1, (), closing, dtype=dtype, shared=(), report=())
    runs.close_or_lose(runs.y, runs.k.constant(0.0, Kind.LANE))
    return runs.kernel()
