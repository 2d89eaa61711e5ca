"""Outcomes of some runs of a study: the batch of runs to measure, and how each of them ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..algebra.arrays import Numbers
from ..results.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Outcome:
    """A batch of runs with their rows among all runs of the block, and the status and end [s] of all of them.

    Rows without a run could not start, or did not follow their motion. `failed_at` is NaN for runs that finished.
    `reasons` are those of simulated runs that stopped, by row.
    """

    run: Trajectory | None
    rows: NDArray[np.int_]
    status: NDArray[np.uint8]
    failed_at: Numbers
    reasons: dict[int, str]


class Evaluation(Protocol):
    """A way to evaluate runs of a study."""

    @property
    def times(self) -> Numbers:
        """The times of the samples of all runs [s]."""
        ...

    def outcome(self, values: dict[str, Numbers]) -> Outcome:
        """Return the outcome of runs with some values of the varied quantities, [n] each."""
        ...


def first_lost(run: Trajectory) -> tuple[NDArray[np.bool_], NDArray[np.int_]]:
    """Return whether each run of a batch has samples that are NaN, and the first of these samples."""
    q = run.q
    if q.strides[0] == 0:  # one motion for all runs
        q = q[:1]
    bad = ~np.isfinite(q.sum(axis=-1))
    bad = np.broadcast_to(bad, run.q.shape[:2])
    return np.asarray(bad.any(axis=-1)), np.asarray(np.argmax(bad, axis=-1))
