"""The states of a run so far, how it ended, the settings of its method, and the quantities at its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import plain, real_array
from ..compiler.ir.program import Program
from ..compiler.ir.trace import Op
from ..errors import InputError
from ..runtime.native import native
from .outcomes import Ending, Endings, Outcome


@dataclass(frozen=True)
class Stop:
    """The time [s] and the state between two output times at which a run stopped.

    It is after `steps` fixed steps of the interval, with their `evaluations`. Both are counted once the interval is
    finished, since a resumed run repeats them, or once the run is interrupted.
    """

    t: float
    q: np.ndarray
    qd: np.ndarray
    steps: int = 0
    evaluations: int = 0


@dataclass
class Run:
    """States at the output times, [..., nt, nq] and [..., nt, nv]; `reached` is the number of finished times.

    `evaluations` and `steps` are counts per run; `step` is the next step of each run [s]. If the last call stopped
    between two output times, `stop` is where. A `note` is added to the status of an interrupted run. Runs with `doubts`
    have steps whose results are in doubt, with the reason. The arrays are filled while an engine works on a run; it
    hands on a finished one.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    evaluations: np.ndarray
    steps: np.ndarray
    step: np.ndarray
    reached: int = 1
    interrupted: bool = False
    failures: dict[int, Ending] = field(default_factory=dict)
    stop: Stop | None = None
    note: str = ""
    doubts: dict[int, str] = field(default_factory=dict)

    def with_end(self) -> Run:
        """Return the run; an interrupted single run gets the state where it stopped as its last sample."""
        if not (self.interrupted and self.stop is not None and self.q.ndim == 2):
            return self
        rows, stop = slice(self.reached), self.stop
        q, qd = (np.vstack([x[rows], y]) for x, y in ((self.q, stop.q), (self.qd, stop.qd)))
        return replace(self, t=np.append(self.t[rows], stop.t), q=q, qd=qd, reached=self.reached + 1, stop=None)

    def open_causes(self, parameters: np.ndarray | None, explain: Callable[[np.ndarray, int, Any], str]) -> Run:
        """Return the run with the causes why loops are open, before the reasons of unexplained failures.

        `explain` takes the coordinates of a failed run [nt, nq], the index of its last finite ones or 0 without any,
        and its parameters [np] or None. It returns the cause, "" for none.
        """
        q = self.q.reshape(-1, *self.q.shape[-2:])
        own = None if parameters is None else np.broadcast_to(parameters, (*self.q.shape[:-2], parameters.shape[-1]))
        causes = {}
        for k, ending in self.unexplained.items():
            good = np.flatnonzero(np.isfinite(q[k]).all(axis=-1))
            mine = None if own is None else own.reshape(-1, own.shape[-1])[k]
            if cause := explain(q[k], int(good[-1]) if len(good) else 0, mine):
                before = f"{cause}: {ending.cause}" if ending.cause else cause
                causes[k] = replace(ending, outcome=Outcome.OPEN, details=ending.told, cause=before)
        return replace(self, failures=self.failures | causes)

    @property
    def unexplained(self) -> dict[int, Ending]:
        """The failures besides events and errors of controllers, which name their cause themselves."""
        return {k: e for k, e in self.failures.items() if e.outcome not in (Outcome.EVENT, Outcome.CONTROL)}

    @property
    def all_failed(self) -> bool:
        """Whether all runs of the batch have failed."""
        return len(self.failures) == self.evaluations.size

    @property
    def now(self) -> float:
        """The time reached so far [s]."""
        return float(self.t[self.reached - 1]) if self.stop is None else self.stop.t

    @property
    def endings(self) -> Endings:
        """How the runs ended."""
        known = {k: Ending(Outcome.DOUBTFUL, doubt=doubt) for k, doubt in self.doubts.items()}
        known |= {k: replace(ending, doubt=self.doubts.get(k, "")) for k, ending in self.failures.items()}
        if not self.interrupted:
            return Endings(known)
        note = f"; {self.note}" if self.note else ""
        at = f"{Outcome.INTERRUPTED.sentence} at t = {self.t[self.reached - 1]:.9g} s{note}"
        return Endings(known, Ending(Outcome.INTERRUPTED, at))

    @property
    def status(self) -> str:
        """How the runs ended, as text."""
        return self.endings.status(batch=self.q.ndim > 2)


def blank_run(start: tuple[np.ndarray, np.ndarray], times: np.ndarray, *, first: float = 0.0) -> Run:
    """Return a run that contains only the start, with NaN at later times; `first` is the first step [s]."""
    lead = start[0].shape[:-1]
    q, qd = (np.full((*lead, len(times), x.shape[-1]), np.nan) for x in start)
    q[..., 0, :], qd[..., 0, :] = start
    return Run(times, q, qd, np.zeros(lead), np.zeros(lead), np.full(lead, first))


@dataclass(frozen=True)
class Settings:
    """Settings of a method: dt [s] of fixed steps; tolerances, first step [s] and most attempts of adaptive ones."""

    dt: float = 0.0
    rtol: float = 1e-8
    atol: float = 1e-10
    first: float = 1e-4
    most: int = 1_000_000


def of_run(parameters: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """Return the parameters of one run of a batch: its own [..., np], or those that all runs share [np]."""
    return parameters[index] if parameters.ndim > 1 else parameters


def check_times(times: np.ndarray) -> np.ndarray:
    """Return output times; refuse fewer than two, and times that are not finite or do not increase."""
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or not (np.diff(times) > 0).all():
        raise InputError("times must be at least two finite numbers, each larger than the one before")
    return times


OUTPUTS = 1001
"""The default number of output times: one sample per pixel in a picture that is a thousand pixels wide."""


def output_times(duration: float | None, times: ArrayLike | None) -> np.ndarray:
    """Return the output times: those given, or evenly spaced ones over a duration [s]."""
    if (duration is None) == (times is None):
        raise InputError("duration and times: give one of them, either a duration or output times")
    if times is not None:
        return check_times(real_array(times, "times"))
    end = plain(duration)
    if end is None or not 0.0 < end < np.inf:
        raise InputError(f"duration is {duration!r}; expected a positive number of seconds")
    return np.linspace(0.0, end, OUTPUTS)


# --- Torques, accelerations, wrenches and control at the samples of a run, each computed when it is first read ---


FIELDS = {"torque": "tau", "accelerations": "qdd", "wrenches": "wrenches", "control": "control"}
"""Fields of a run, and the outputs of the Programs that compute them."""

BLOCK = 65_536
"""Samples per native call: enough to make its overhead negligible, and about 50 MB for the largest robots."""


@dataclass(frozen=True)
class LoadPrograms:
    """The torques, accelerations, wrenches and control of a run as functions of its states.

    `loads` is a Program with the outputs tau, qdd and wrenches. `drives` has the output control; None means that no
    control acts. With `held` torques, the control of a run is given: `loads` takes it after the free parameters.
    """

    loads: Program
    drives: Program | None = None
    held: bool = False

    def fields(self) -> dict[str, LoadPrograms]:
        """Return this object for every field that it computes."""
        return dict.fromkeys(("torque", "accelerations", "wrenches") if self.held else FIELDS, self)

    def __call__(self, field: str, run: Any) -> np.ndarray:
        """Return the array of a field at the samples of a run, [..., nt, .]."""
        program = self.drives if field == "control" else self.loads
        if program is None:
            return zeros(run.qd.shape)
        place = [output.name for output in program.outputs].index(FIELDS[field])
        shape = (*run.q.shape[:-1], *program.outputs[place].shape)
        if _is_zero(program, place):
            return zeros(shape)
        out = np.empty((prod(run.shape), len(run.t), *program.outputs[place].shape))
        for rows, times, arguments in self._blocks(run):
            with np.errstate(all="ignore"):  # runs that failed have NaN from then on
                results = self._compiled[program.name](*arguments)
            out[rows, times] = results[place] if len(program.outputs) > 1 else results
        return out.reshape(shape)

    @cached_property
    def _compiled(self) -> Compiled:
        return Compiled({program.name: program for program in (self.loads, self.drives) if program is not None})

    def _blocks(self, run: Any) -> Iterator[tuple[slice, slice, tuple[np.ndarray, ...]]]:
        """Yield blocks of runs and samples as slices, with the arguments of the Programs for them."""
        count = prod(run.shape)
        q, qd = (x.reshape(count, *x.shape[len(run.shape) :]) for x in (run.q, run.qd))
        control = run.control.reshape(qd.shape) if self.held else None
        values = run.constant_parameters
        if values is not None and values.ndim > 1:
            values = values.reshape(count, -1)
        span = min(len(run.t), BLOCK)
        step = max(1, BLOCK // span)
        for first in range(0, count, step):
            rows = slice(first, first + step)
            more = [] if values is None else [values[rows, None, :] if values.ndim > 1 else values]
            for start in range(0, len(run.t), span):
                times = slice(start, start + span)
                if control is not None:
                    more = [_joined(values, rows, control[rows, times])]
                yield rows, times, (run.t[times, None], q[rows, times], qd[rows, times], *more)


class Compiled:
    """Programs by name, compiled when they are first called; pickles contain only the Programs."""

    def __init__(self, programs: dict[str, Program]) -> None:
        """Store the Programs."""
        self._programs = programs
        self._functions: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            self._functions[name] = native(self._programs[name])
        return self._functions[name]

    def __reduce__(self):
        return (Compiled, (self._programs,))


def zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Return a read-only array of zeros of any shape that takes no memory."""
    return np.broadcast_to(np.float64(0.0), shape)


def _is_zero(program: Program, place: int) -> bool:
    """Return whether an output is zero for all inputs."""
    return all(program.ops[k][0] is Op.CONST and program.ops[k][1] == 0.0 for k in program.results[place])


def _joined(values: np.ndarray | None, rows: slice, control: np.ndarray) -> np.ndarray:
    """Return [free parameters, held torques] for some runs and samples."""
    if values is None:
        return control
    own = values[rows, None, :] if values.ndim > 1 else values
    return np.concatenate([np.broadcast_to(own, (*control.shape[:-1], own.shape[-1])), control], axis=-1)
