"""Runs of a native integrator over given times, piece by piece, with progress, checkpoints and interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..run_states import LOST, OPEN, REASONS, Run, Settings, blank_run
from .checkpoints import load_checkpoint, save_checkpoint
from .pieces import Carried, Pace, RunStepper, adaptive_piece, fixed_piece


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
    if checkpoint is not None:
        load_checkpoint(checkpoint, key, result)
    piece, pace = adaptive_piece if stepper.adaptive else fixed_piece, pace or Pace(growing=until is None)
    usual = LOST if stepper.adaptive or not stepper.closing else OPEN
    try:
        while result.reached < len(times) and not result.all_failed:
            note_failures(result, piece(stepper, result, settings, parameters, threads, pace), usual)
            if progress is not None:
                progress((result.now - times[0]) / (times[-1] - times[0]))
            if checkpoint is not None:
                save_checkpoint(checkpoint, key, result)
            if until is not None and until(result):
                break
    except KeyboardInterrupt:
        result.interrupted = True
        result.steps += result.skip
        result.evaluations += result.pending
    return result


def note_failures(result: Run, carried: Carried, usual: str) -> None:
    """Record the runs whose states are not finite in a piece, with the reason and the time of the last good state."""
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
        reason = usual
        if status is not None and (code := int(np.ravel(status)[k])) in REASONS:
            reason, last = REASONS[code], np.ravel(time)[k]
        result.failures[int(k)] = f"{reason}; the last good state is at t = {last:.9g} s"
