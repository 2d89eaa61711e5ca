"""Pieces of a run: short native calls, between which Ctrl-C, progress and events are handled.

A call stops after a budget of steps, also between two output times. The next call continues with the same bits as one
long call.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...model.mechanism import parameter_arguments
from ...runtime.threads import in_parts
from ..methods.adaptive_steps import TOO_MANY
from ..methods.protocol import Integrator
from ..run_states import Run, Settings, Stop

if TYPE_CHECKING:
    pass

PIECE = 64
"""The number of intervals between output times after which an adaptive method ends a step exactly at an output time.
It is fixed, since the bits of a run depend on it."""

LOOK = 0.04
"""The intended time of a native call [s]: short for Ctrl-C, long beside the overhead of a call (20 microseconds)."""


class RunStepper(Protocol):
    """The native integrator of a run: `Stepper`, or the one of states with their derivatives."""

    @property
    def method(self) -> Integrator:
        """The method of integration."""
        ...

    @property
    def closing(self) -> Any:
        """The Program that closes loops after each step; None if none does."""
        ...

    @property
    def closer(self) -> Any:
        """The closing of loops for states between steps, with the method `close`; None without loops."""
        ...

    @property
    def gufunc(self) -> Any:
        """The compiled function of the arguments of the kernel."""
        ...


class Check(Protocol):
    """A check of a single run after numbers of attempts at steps: `Stiffness`."""

    def left(self, steps: float) -> float:
        """Return the attempts until the next check."""
        ...

    def look(self, run: Run, *, failed: bool) -> bool:
        """Return whether a run is to stop at the state in `run.stop`, where it may have failed."""
        ...


@dataclass
class Pace:
    """The most steps of the next native call, from the time that the last one took.

    With `growing` False, for runs that are examined every PIECE intervals, no call covers more than these. `look` is
    the intended time of a call [s]. A `tight` call covers no interval that its budget does not reach. A single adaptive
    run stops where a `check` finds it to be stiff.
    """

    growing: bool = True
    budget: float = 64.0
    look: float = LOOK
    tight: bool = False
    check: Check | None = None

    def intervals(self, each: float) -> int:
        """Return the number of intervals of fixed steps that a call covers, with `each` steps per interval."""
        fitting = math.ceil(self.budget / max(each, 1.0))
        if self.growing:
            return max(PIECE, fitting)
        return min(PIECE, fitting) if self.tight else PIECE

    def learn(self, steps: float, seconds: float) -> None:
        """Set the budget for a call of the intended time, at most eight times the last budget."""
        fitting = self.look / max(seconds / max(steps, 1.0), 1e-12)
        self.budget = float(math.floor(min(max(fitting, 1.0), 8.0 * max(self.budget, 1.0))))


@dataclass(frozen=True)
class Carried:
    """The result of a piece: samples `start` to `stop` are new; adaptive runs have a status and a time [s] each."""

    start: int
    stop: int
    status: Any = None
    time: Any = None


def fixed_piece(stepper: RunStepper, run: Run, settings: Settings, parameters, threads: int, pace: Pace) -> Carried:
    """Continue a run of fixed steps by one native call."""
    start = run.reached - 1
    times = run.t[start : start + pace.intervals((run.t[start + 1] - run.t[start]) / settings.dt) + 1]
    before = run.stop or Stop(float(times[0]), run.q[..., start, :], run.qd[..., start, :])
    state, shared = (before.q, before.qd), (times, settings.dt, float(before.steps), pace.budget)
    q, qd, q_end, qd_end, report = _call(
        stepper, state, parameters, shared, (), threads, pace, lambda r: r[..., 0].max()
    )
    steps, reached, skip, needed = report.reshape(-1, report.shape[-1])[0]
    new, whole = int(reached), steps + before.steps - skip  # the steps of an interval count once it is finished
    each = stepper.method.evaluations
    run.steps += whole
    run.evaluations += whole * each
    run.q[..., start + 1 : start + new, :], run.qd[..., start + 1 : start + new, :] = (
        q[..., 1:new, :],
        qd[..., 1:new, :],
    )
    run.reached, run.stop = start + new, None
    if skip:
        begin, end = run.t[run.reached - 1], run.t[run.reached]
        run.stop = Stop(float(begin + skip * ((end - begin) / needed)), q_end, qd_end, int(skip), int(skip) * each)
    return Carried(start, run.reached - 1)


def adaptive_piece(stepper: RunStepper, run: Run, settings: Settings, parameters, threads: int, pace: Pace) -> Carried:
    """Continue a run of an adaptive method over PIECE intervals, by as many native calls as necessary.

    `run.reached` includes the piece once it is finished. After Ctrl-C between two calls, and where a check stops it, a
    single run keeps the samples that it reached in the piece.
    """
    start, stop = run.reached - 1, min(run.reached - 1 + PIECE, len(run.t) - 1)
    times, state = run.t[start : stop + 1], (run.q[..., start, :], run.qd[..., start, :])
    begin, status = np.full(run.step.shape, times[0]), np.zeros(run.step.shape)
    under_way, first = np.full(run.step.shape, True), True
    try:
        while under_way.any():
            left = settings.most - run.steps
            most = pace.budget if pace.check is None else min(pace.budget, pace.check.left(float(run.steps)))
            given = (run.step, np.minimum(left, most), begin)
            q, qd, *end, report = _call(
                stepper,
                state,
                parameters,
                (times, settings.rtol, settings.atol),
                given,
                threads,
                pace,
                lambda r: (r[..., 1] + r[..., 2]).max(),
            )
            evaluations, accepted, rejected, code, reached, step = (report[..., k] for k in range(report.shape[-1]))
            if first and not code.any():  # the usual case: all runs have reached the end of the piece
                _store(stepper, run, (q, qd), slice(start + 1, stop + 1), parameters)
                run.evaluations += evaluations
                run.steps += accepted + rejected
                run.step, run.reached = step, stop + 1
                return Carried(start, stop, code, reached)
            _take(stepper, run, (q, qd), start, times, under_way, (begin, reached), parameters)
            run.evaluations += np.where(under_way, evaluations - (0 if first else 1), 0)
            run.steps += np.where(under_way, accepted + rejected, 0)
            run.step, status = np.where(under_way, step, run.step), np.where(under_way, code, status)
            begin = np.where(under_way, reached, begin)
            q, qd = (np.where(under_way[..., None], new, old) for new, old in zip(end, state, strict=True))
            state = q, qd
            under_way = under_way & (code == TOO_MANY) & (reached < times[-1]) & (run.steps < settings.most)
            first = False
            if pace.check is not None:
                run.stop = Stop(float(begin), *state)
                if pace.check.look(run, failed=int(code) not in (0, TOO_MANY)):
                    break
                run.stop = None
    except KeyboardInterrupt:
        if begin.ndim == 0:
            _stop_between(run, start, times, begin, state)
        raise
    if under_way.any():
        _stop_between(run, start, times, begin, state)
        return Carried(start, run.reached - 1)
    run.reached = stop + 1
    return Carried(start, stop, status, begin)


def _stop_between(run: Run, start: int, times: np.ndarray, begin: np.ndarray, state) -> None:
    """Set the samples that a single run has reached in a piece, and its state if that is after the last of them."""
    run.reached, run.stop = start + int(np.searchsorted(times, float(begin), side="right")), None
    if float(begin) > run.t[run.reached - 1]:
        run.stop = Stop(float(begin), *state)


def _store(stepper: RunStepper, run: Run, states, samples: slice, parameters) -> None:
    """Store the samples of runs that have all reached the end of a piece, with their loops closed."""
    states = _closed(stepper, states, parameters, run.t[samples.start - 1 : samples.stop])
    run.q[..., samples, :], run.qd[..., samples, :] = (x[..., 1:, :] for x in states)


def _closed(stepper: RunStepper, states, parameters, times: np.ndarray):
    """Return samples with their loops closed: those between steps are interpolated, which opens loops slightly."""
    if not stepper.closer:
        return states
    more = None if parameters is None else parameters[..., None, :]
    return stepper.closer.close(states[0], states[1], more, times[:, None])


def _take(stepper: RunStepper, run: Run, states, start: int, times, under_way, span, parameters) -> None:
    """Store the samples that the unfinished runs have reached in a call, with their loops closed.

    `span` has the times at which the call began and ended, for each run.
    """
    begin, reached = span
    low = int(np.searchsorted(times, begin[under_way].min(), side="right"))
    high = int(np.searchsorted(times, reached[under_way].max(), side="right"))
    if low >= high:
        return
    some, samples = slice(low, high), slice(start + low, start + high)
    new = under_way[..., None] & (times[some] > begin[..., None])
    states = _closed(stepper, tuple(x[..., some, :] for x in states), parameters, times[some])
    for kept, given in zip((run.q, run.qd), states, strict=True):
        kept[..., samples, :] = np.where(new[..., None], given, kept[..., samples, :])


def _call(stepper: RunStepper, state, parameters, shared: tuple, own: tuple, threads: int, pace: Pace, made) -> tuple:
    """Call the native function; with several threads, split along the first leading axis.

    `made` returns the number of steps from a report.
    """
    more = parameter_arguments(parameters)
    arguments = (*state, *more, *shared, *own)
    parts = min(threads, len(state[0]) // 8) if state[0].ndim > 1 else 1
    began = time.perf_counter()
    if parts <= 1:
        results = _quietly(stepper.gufunc, arguments)
    else:
        each = [True, True, *(p.ndim == state[0].ndim for p in more)]
        results = _in_parts(stepper.gufunc, arguments, [*each, *[False] * len(shared), *[True] * len(own)], parts)
    pace.learn(float(made(results[-1])), time.perf_counter() - began)
    return results


def _in_parts(gufunc, arguments: tuple, cut: list[bool], parts: int) -> tuple:
    """Call the native function in several threads; the arguments that are `cut` have the leading axis of the runs."""

    def part(rows: slice) -> tuple:
        return _quietly(gufunc, tuple(a[rows] if mine else a for a, mine in zip(arguments, cut, strict=True)))

    return tuple(np.concatenate(x) for x in zip(*in_parts(len(arguments[0]), parts, part), strict=True))


def _quietly(gufunc, arguments: tuple) -> tuple:
    """Call a gufunc without warnings of NumPy: states that are not finite are reported in the status."""
    with np.errstate(all="ignore"):
        return gufunc(*arguments)
