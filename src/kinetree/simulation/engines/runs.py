"""Runs: a stepper over given times, piece by piece, so that it can be watched, stopped and taken up again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.runtime.threads import in_parts
from ...errors import InputError
from .checkpoints import load_checkpoint, save_checkpoint
from .steppers import Stepper

PIECE = 64
"""Intervals between two output times that one native call covers; fixed, so that pieces never change the bits."""

LOST = "the state left the finite numbers"
OPEN = "the loops did not close, or the state left the finite numbers; try a smaller dt"
REASONS = {1: "the step became shorter than rounding", 2: "the steps were used up; try a larger max_steps"}


@dataclass
class Run:
    """States at the output times, [..., nt, nq] and [..., nt, nv]; `reached` counts the times that are done.

    `saved` is when the last checkpoint was written, on the clock of `time.monotonic`.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    evaluations: np.ndarray
    steps: np.ndarray
    step: np.ndarray
    reached: int = 1
    interrupted: bool = False
    failures: dict[int, str] = field(default_factory=dict)
    saved: float = -math.inf

    @property
    def all_failed(self) -> bool:
        """Whether no run of the batch goes on."""
        return len(self.failures) == self.evaluations.size

    @property
    def status(self) -> str:
        """How it ended, in words."""
        if self.interrupted:
            return f"stopped: interrupted at t = {self.t[self.reached - 1]:.9g} s"
        if self.failures:
            first = min(self.failures)
            more = f" (run {first}; {len(self.failures)} runs in all)" if self.q.ndim > 2 else ""
            return f"stopped: {self.failures[first]}{more}"
        return "finished"


def blank_run(start: tuple[np.ndarray, np.ndarray], times: np.ndarray, *, first: float = 0.0) -> Run:
    """Return a run of which nothing but the start is done; `first` is the step to begin with [s]."""
    lead = start[0].shape[:-1]
    q, qd = (np.full((*lead, len(times), x.shape[-1]), np.nan) for x in start)
    q[..., 0, :], qd[..., 0, :] = start
    return Run(times, q, qd, np.zeros(lead), np.zeros(lead), np.full(lead, first))


@dataclass(frozen=True)
class Settings:
    """Numbers of a method: dt of fixed steps, or tolerances, first step and most steps of adaptive ones."""

    dt: float = 0.0
    rtol: float = 1e-8
    atol: float = 1e-10
    first: float = 1e-4
    most: int = 1_000_000


def run(
    stepper: Stepper,
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
) -> Run:
    """Integrate from states [..., nq], [..., nv] over the times, at least two.

    With a `checkpoint` file, what is done is kept there now and then, and an earlier call's part of the same run
    (`key`) is taken up again, to the same bits. Ctrl-C ends the run with what was computed, and so does `until`, which
    is asked after each piece.
    """
    result = blank_run((q0, qd0), times, first=settings.first)
    if checkpoint is not None:
        load_checkpoint(checkpoint, key, result)
    try:
        while result.reached < len(times) and not result.all_failed:
            _piece(stepper, result, settings, parameters, threads)
            if progress is not None:
                progress((times[result.reached - 1] - times[0]) / (times[-1] - times[0]))
            if checkpoint is not None:
                save_checkpoint(checkpoint, key, result)
            if until is not None and until(result):
                break
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _piece(stepper: Stepper, result: Run, settings: Settings, parameters, threads: int) -> None:
    start, stop = result.reached - 1, min(result.reached - 1 + PIECE, len(result.t) - 1)
    times = result.t[start : stop + 1]
    more = () if parameters is None else (parameters,)
    q0, qd0 = result.q[..., start, :], result.qd[..., start, :]
    # What each run has its own of, by place: the states, perhaps the parameters, and its step and steps left.
    own = [True, True, *(p.ndim == q0.ndim and p.ndim > 1 for p in more), False]
    if stepper.adaptive:
        own += [False, False, True, True, False]
        given = (settings.rtol, settings.atol, result.step, settings.most - result.steps, times[0])
        q, qd, _, _, report = _threaded(stepper.gufunc, (q0, qd0, *more, times, *given), own, threads)
        evaluations, accepted, rejected, status, time, step = np.moveaxis(report, -1, 0)
        result.evaluations += evaluations
        result.steps += accepted + rejected
        result.step = step
    else:
        own += [False, False, False]
        given = (settings.dt, 0, math.inf)
        q, qd, *_ = _threaded(stepper.gufunc, (q0, qd0, *more, times, *given), own, threads)
        counts = np.maximum(np.floor(np.diff(times) / settings.dt - 1e-9) + 1, 1).sum()
        result.steps += counts
        result.evaluations += counts * (len(stepper.method.b) if stepper.method else 1)
        status = time = None
    if stepper.adaptive and stepper.closer:  # between steps, states are interpolated
        q[..., 1:, :], qd[..., 1:, :] = stepper.closer.close(
            q[..., 1:, :], qd[..., 1:, :], None if parameters is None else parameters[..., None, :]
        )
    result.q[..., start + 1 : stop + 1, :], result.qd[..., start + 1 : stop + 1, :] = q[..., 1:, :], qd[..., 1:, :]
    result.reached = stop + 1
    _note_failures(result, start, stop, status, time, LOST if stepper.adaptive or not stepper.closing else OPEN)


def _threaded(gufunc, arguments: tuple, own: list[bool], threads: int):
    """Run a gufunc, in parts of the first leading axis where there are several threads; `own` arguments are cut."""
    count = len(arguments[0]) if arguments[0].ndim > 1 else 0
    parts = min(threads, count // 8)
    if parts <= 1:
        return _quietly(gufunc, arguments)

    def part(rows: slice):
        return _quietly(gufunc, tuple(a[rows] if cut else a for a, cut in zip(arguments, own, strict=True)))

    results = in_parts(count, parts, part)
    return tuple(np.concatenate(pieces) for pieces in zip(*results, strict=True))


def _quietly(gufunc, arguments: tuple):
    """Run a gufunc without NumPy's warnings: a run that leaves the finite numbers is named in the status."""
    with np.errstate(all="ignore"):
        return gufunc(*arguments)


def _note_failures(result: Run, start: int, stop: int, status, time, usual: str) -> None:
    """Name the runs whose states are not finite in a piece, with the reason and the last time they were good."""
    flat = result.q[..., start : stop + 1, :].reshape(-1, stop - start + 1, result.q.shape[-1])
    speeds = result.qd[..., start : stop + 1, :].reshape(len(flat), stop - start + 1, -1)
    good: Any = np.isfinite(flat).all(axis=-1) & np.isfinite(speeds).all(axis=-1)
    for k in np.flatnonzero(~good.all(axis=1)):
        if k in result.failures:
            continue
        last = result.t[start + int(np.argmin(good[k])) - 1] if good[k, 0] else result.t[start]
        reason = usual
        if status is not None and (code := int(np.ravel(status)[k])) in REASONS:
            reason, last = REASONS[code], np.ravel(time)[k]
        result.failures[int(k)] = f"{reason}; the last good state is at t = {last:.9g} s"


def check_times(times: np.ndarray) -> np.ndarray:
    """Return output times, at least two, finite and increasing, or say what is wrong."""
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or not (np.diff(times) > 0).all():
        raise InputError("times must be at least two finite numbers, each larger than the one before")
    return times
