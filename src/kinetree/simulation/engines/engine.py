"""What an engine is: it takes a problem of motion and returns its states, and what acted on the way.

A new engine is one module with an object of this protocol, and one line in `table.ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...errors import InputError
from ..events import Onward, Watch
from ..motion_problem import Problem
from ..run_states import Run, of_run

Progress = Callable[[float], None]
"""Called with the part of a run that is done, 0 to 1."""

Fields = dict[str, Any]
"""Fields of a Trajectory by name."""


@dataclass(frozen=True)
class Motion:
    """A run, the way on from one of its samples, and what completes it.

    `complete` takes the run, or its part up to an event, and returns its samples at the output times with what acted
    there, as fields of a Trajectory: the torques of control and forces together, accelerations and wrenches. A run
    whose method may be changed (`problem.auto`) ends early where it is found `stiff`.
    """

    run: Run
    onward: Onward
    complete: Callable[[Run], tuple[Run, Fields]]
    stiff: bool = False


class Engine(Protocol):
    """One way to carry out a run."""

    def takes(self, problem: Problem) -> bool:
        """Return whether this engine is made for a problem."""
        ...

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate from the start over the times.

        A run that fails, or that Ctrl-C interrupts, keeps what was computed, with the reason in its status. InputError
        names what the engine cannot do. The `watch` has the events: `watch.stops(run)` is true once nothing more is
        wanted.
        """
        ...


def onward_by(problem: Problem, done: Run, again: Callable[..., Run]) -> Onward:
    """Return how to go on from a sample of a run to a time before the next, by another run of the same kind."""

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if problem.parameters is None else of_run(problem.parameters, index)
        short = again(done.q[(*index, k)], done.qd[(*index, k)], np.array([done.t[k], t]), own)
        return short.q[-1], short.qd[-1]

    return onward


def no_checkpoint(problem: Problem, who: str) -> None:
    """Refuse a checkpoint file."""
    if problem.checkpoint is not None:
        raise InputError(f"{who} keeps no checkpoints; use a native method")
