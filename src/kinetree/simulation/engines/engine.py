"""The protocol of engines: an engine solves a problem of motion and returns its states and loads.

A new engine is one module with an object of this protocol, and one line in `table.ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...errors import InputError
from ..drives import drives_of
from ..events import Onward, Watch
from ..motion_problem import Problem
from ..run_states import Run, of_run

Progress = Callable[[float], None]
"""A function that is called with the finished part of a run, from 0 to 1."""

Fields = dict[str, Any]
"""Fields of a Trajectory by name."""


@dataclass(frozen=True)
class Motion:
    """The result of an engine: a run, a function for states between its samples, and one that completes it.

    `onward` returns the state at a time between two samples. `complete` takes the run, or its part up to an event, and
    returns its samples at the output times with the loads there as fields of a Trajectory: torques of control and
    forces, accelerations and wrenches. If the method may be changed (`problem.auto`), a stiff run ends early, and
    `instead` is the name of the method that suits it.
    """

    run: Run
    onward: Onward
    complete: Callable[[Run], tuple[Run, Fields]]
    instead: str = ""


class Engine(Protocol):
    """A way to carry out runs."""

    def takes(self, problem: Problem) -> bool:
        """Return whether this engine serves a problem."""
        ...

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate from the start over the times.

        A run that fails, or that Ctrl-C interrupts, keeps the states computed so far, with the reason in its status. An
        InputError names an option that the engine does not support. The `watch` has the events: once
        `watch.stops(run)` is true, the run may end.
        """
        ...


def onward_by(problem: Problem, done: Run, again: Callable[..., Run]) -> Onward:
    """Return the function for states between samples, which repeats the run from the sample before a time."""

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if problem.parameters is None else of_run(problem.parameters, index)
        short = again(done.q[(*index, k)], done.qd[(*index, k)], np.array([done.t[k], t]), own)
        return short.q[-1], short.qd[-1]

    return onward


def no_checkpoint(problem: Problem, who: str) -> None:
    """Raise an InputError if a checkpoint file is given."""
    if problem.checkpoint is not None:
        raise InputError(f"{who} keeps no checkpoints; use a native method")


def refuse_with_contacts(problem: Problem) -> None:
    """Raise an InputError for options that no engine for contacts supports."""
    if problem.checkpoint is not None:
        raise InputError("a run with contacts keeps no checkpoints; leave out checkpoint")
    if problem.outside:
        raise InputError("contacts require a compiled controller, such as kt.PD or kt.TorqueFunction")
    if drives_of(problem.control) is not None:
        raise InputError("contacts and kt.Driven do not go together yet; use a stiff kt.PD instead of kt.Driven")
    if problem.loops is not None and not problem.loops.projects:
        raise InputError("contacts require loops that are closed after each step; use loops=kt.Projection()")
