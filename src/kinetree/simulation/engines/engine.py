"""What engines have in common, and their table: each solves a problem of motion and returns its states and loads.

A new engine is a function of the type `Engine` in a module of its own, and one line in `ENGINES`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..._support.atomic import replacing
from ...errors import InputError
from ..events import Onward, Watch
from ..outcomes import CLOSING_LOST, OF_KERNEL, Ending, Outcome
from ..problem import Problem
from ..run_states import Run, Settings, blank_run, of_run
from .pieces import Carried, Pace, RunStepper, adaptive_piece, fixed_piece

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


Engine = Callable[[Problem, Watch | None, Progress | None], Motion]
"""A function that carries out a problem: it integrates from the start over the times.

A run that fails, or that Ctrl-C interrupts, keeps the states computed so far, with the reason in its status. An
InputError names an option that the engine does not support. With a Watch of events, the run may end once
`watch.stops(run)` is true.
"""


def onward_by(problem: Problem, done: Run, again: Callable[..., Run]) -> Onward:
    """Return the function for states between samples, which repeats the run from the sample before a time."""

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if problem.parameters is None else of_run(problem.parameters, index)
        short = again(done.q[(*index, k)], done.qd[(*index, k)], np.array([done.t[k], t]), own)
        if short.interrupted:
            raise KeyboardInterrupt
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
    if problem.drives is not None:
        raise InputError("contacts and kt.Driven do not go together yet; use a stiff kt.PD instead of kt.Driven")
    if problem.loops is not None and not problem.loops.projects:
        raise InputError("contacts require loops that are closed after each step; use loops=kt.Projection()")


# --- Checkpoints: the states of an unfinished run in a file, replaced as a whole so that it is never incomplete.

EVERY = 2.0
"""The least time between two checkpoints [s]."""

ARRAYS = ("q", "qd", "evaluations", "steps", "step")


def save_checkpoint(path: str | Path, key: str, run: Run) -> None:
    """Write the states of a run."""
    path = Path(path)
    arrays = {name: getattr(run, name) for name in ARRAYS}
    with replacing(path) as written, open(written, "wb") as file:
        failures = json.dumps({k: ending.plain() for k, ending in run.failures.items()})
        np.savez(file, key=key, t=run.t, reached=run.reached, failures=failures, **arrays)


def load_checkpoint(path: str | Path, key: str, run: Run) -> None:
    """Read the states that an earlier call of the same run computed; refuse the file of another run."""
    path = Path(path)
    if not path.exists():
        return
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            data = {name: file[name] for name in (*ARRAYS, "key", "t", "reached", "failures")}
    except Exception as error:  # NumPy and zipfile have errors of their own for altered files
        raise InputError(
            f"{path} is not a checkpoint ({type(error).__name__}: {error}); delete it or give another file"
        ) from None
    same = str(data["key"]) == key and np.array_equal(data["t"], run.t)
    if not same or any(data[name].shape != np.shape(getattr(run, name)) for name in ARRAYS):
        raise InputError(f"{path} is a checkpoint of another run; delete it or give another file")
    for name in ARRAYS:
        setattr(run, name, data[name].copy())
    run.reached = int(data["reached"])
    run.failures = {int(k): Ending.read(stored) for k, stored in json.loads(str(data["failures"])).items()}


# --- Runs of a native integrator over given times, piece by piece, with progress, checkpoints and interruption.


def run(
    stepper: RunStepper,
    q0: np.ndarray,
    qd0: np.ndarray,
    times: np.ndarray,
    settings: Settings,
    *,
    parameters: np.ndarray | None = None,
    threads: int = 1,
    progress: Callable[[float], None] | None = None,
    checkpoint: str | Path | None = None,
    key: str = "",
    until: Callable[[Run], bool] | None = None,
    pace: Pace | None = None,
    result: Run | None = None,
) -> Run:
    """Integrate from states [..., nq], [..., nv] over at least two times [s].

    With a `checkpoint` file, the states are written there at intervals. A later call of the same run (`key`) continues
    from the file, with the same bits. Ctrl-C ends the run and keeps the states computed so far. `until` is called after
    each piece and ends the run if it returns True. `pace` has the time of a native call, and
    `result` is a run that contains only the start.
    """
    result = result or blank_run((q0, qd0), times, first=settings.first)
    saved = -math.inf  # the time of the last checkpoint on the clock of `time.monotonic`
    if checkpoint is not None:
        load_checkpoint(checkpoint, key, result)
    adaptive = stepper.method.adaptive
    piece, pace = adaptive_piece if adaptive else fixed_piece, pace or Pace(growing=until is None)
    usual = Ending(Outcome.LOST) if adaptive or not stepper.closing else CLOSING_LOST
    try:
        while result.reached < len(times) and not result.all_failed:
            note_failures(result, piece(stepper, result, settings, parameters, threads, pace), usual)
            if progress is not None:
                progress((result.now - times[0]) / (times[-1] - times[0]))
            now = time.monotonic()
            if checkpoint is not None and (result.reached == len(times) or now - saved >= EVERY):
                saved = now
                save_checkpoint(checkpoint, key, result)
            if until is not None and until(result):
                break
    except KeyboardInterrupt:
        result.interrupted = True
        if result.stop is not None:
            result.steps += result.stop.steps
            result.evaluations += result.stop.evaluations
    return result


def note_failures(result: Run, carried: Carried, usual: Ending) -> None:
    """Record the runs whose states are not finite in a piece, with the time of the last good state."""
    start, stop, status, time = carried.start, carried.stop, carried.status, carried.time
    if all(np.isfinite(x[..., start : stop + 1, :]).all() for x in (result.q, result.qd)):
        return
    flat = result.q[..., start : stop + 1, :].reshape(-1, stop - start + 1, result.q.shape[-1])
    speeds = result.qd[..., start : stop + 1, :].reshape(len(flat), stop - start + 1, -1)
    good: Any = np.isfinite(flat).all(axis=-1) & np.isfinite(speeds).all(axis=-1)
    for k in np.flatnonzero(~good.all(axis=1)):
        if k in result.failures:
            continue
        last = result.t[start + int(np.argmin(good[k])) - 1] if good[k, 0] else result.t[start]
        ending = usual
        if status is not None and (code := int(np.ravel(status)[k])) in OF_KERNEL:
            ending, last = Ending(OF_KERNEL[code]), np.ravel(time)[k]
        result.failures[int(k)] = replace(ending, last=float(last))


# --- The table of engines, one per line; the first that takes a problem carries it out ---
#
# Engines are imported when they are used. Those of methods of their own are named in the table of methods.


@dataclass(frozen=True)
class EngineEntry:
    """An engine: its place, as MODULE:NAME in this package, and whether it takes a problem."""

    found: str
    takes: Callable[[Problem], bool]


def _named(name: str) -> Callable[[Problem], bool]:
    """Return the condition that a method names an engine as its own."""
    return lambda p: p.method.engine == name


ENGINES = (
    EngineEntry("time_stepping:run_time_steps", _named("time_stepping")),
    EngineEntry("event_driven:run_from_event_to_event", lambda p: bool(p.mechanism.contacts)),
    EngineEntry("gpu:run_on_gpu", lambda p: p.device is not None),
    EngineEntry("marching:run_marching", lambda p: p.is_long or p.method.engine == "marching"),
    EngineEntry("solvers:run_python_stages", lambda p: p.outside and p.control.rate is None),
    EngineEntry("held_torques:run_held_torques", lambda p: p.outside),
    EngineEntry("solvers:run_sundials", _named("sundials")),
    EngineEntry("solvers:run_scipy", _named("scipy")),
    EngineEntry("native:run_native", _named("native")),
)


def engine_of(problem: Problem) -> Engine:
    """Return the first engine that takes a problem."""
    for entry in ENGINES:
        if entry.takes(problem):
            module, name = entry.found.split(":")
            return getattr(import_module(f".{module}", __package__), name)
    raise InputError(f"no engine takes {problem.method.name} for {problem.mechanism.name!r}; use another method")
