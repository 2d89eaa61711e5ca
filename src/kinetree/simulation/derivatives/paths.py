"""Paths of runs: all their steps forward, and backward from cotangents."""

from __future__ import annotations

from typing import Any, Protocol

from ...algebra.arrays import Numbers
from ..engines.engine import Progress
from ..run_states import Run

MEMORY = 2**26
"""The most bytes of states that are kept for all steps, or for those of a segment: 64 MiB."""

State = tuple[Numbers, Numbers]
"""Entries of q and qd, or their cotangents."""


class Path(Protocol):
    """A run whose steps can be passed backward; `end` is its last state."""

    end: State

    def forward(self, progress: Progress | None) -> Run:
        """Compute the run, and keep its states, or those from which a segment of steps is computed again."""
        ...

    def backward(self, end: State, samples: State | None, progress: Progress | None) -> Back:
        """Return the cotangents of the start, of parameters and of torques.

        `end` are those of the last state. `samples` [..., nt, .] are those of states at the output times, of which the
        last are not added.
        """
        ...


Back = tuple[State, Numbers | None, Numbers | None]
"""Cotangents of the start, of the parameters [..., np] and of the torques [..., nt - 1, nv]; None without any."""


def bytes_of_state(problem: Any) -> int:
    """Return the memory of one state of all runs of a batch, with a time and a cost."""
    runs = 1
    for n in problem.lead:
        runs *= n
    return 8 * (problem.system.nq + problem.system.nv + 2) * max(1, runs)
