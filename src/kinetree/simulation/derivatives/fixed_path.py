"""The path of fixed steps: the same times for all runs of a batch.

The run is computed once. Its states are kept at the beginning of every segment of steps. Those within a segment are
computed again when the segment is passed backward, unless all of them fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ..engines.engine import Progress
from ..engines.pieces import Carried
from ..engines.runs import note_failures
from ..kernels.fixed_steps import ROUNDING
from ..motion_problem import Problem
from ..run_states import LOST, OPEN, Run, blank_run
from .adjoint_parts import Parts
from .paths import Back, State, bytes_of_state

SEGMENT = 2048
"""The most steps of a native call: milliseconds for a single run, so that Ctrl-C is answered."""


def steps_of(times: Numbers, dt: float) -> tuple[Numbers, Numbers, np.ndarray]:
    """Return the times of all steps, their lengths, and the places of the output times; those of `simulate`.

    The last length is zero, since no step begins there.
    """
    spans = np.diff(times)
    counts = np.maximum(np.floor(spans / dt - ROUNDING["float64"]).astype(int) + 1, 1)
    each = spans / counts
    parts = [t + np.arange(n) * h for t, h, n in zip(times[:-1], each, counts, strict=True)]
    lengths = np.append(np.repeat(each, counts), 0.0)
    return np.concatenate([*parts, times[-1:]]), lengths, np.concatenate([[0], np.cumsum(counts)])


class FixedPath:
    """One run of fixed steps; `memory` is the most bytes of states that are kept."""

    def __init__(self, problem: Problem, parts: Parts, torques: Numbers | None, memory: int) -> None:
        """Divide the steps into segments."""
        p = problem
        self.end: State = p.start
        self.p, self.parts, self.values = p, parts, p.parameters
        self.times, self.lengths, self.at = steps_of(p.times, p.settings.dt)
        self.torques = None if torques is None else np.repeat(torques, np.diff(self.at), axis=-2)
        row = bytes_of_state(p)
        self.keeps = row * len(self.times) <= memory
        most = max(16, min(SEGMENT, memory // row))
        starts = range(0, len(self.times) - 1, most)
        self.segments = [slice(k, min(k + most, len(self.times) - 1) + 1) for k in starts]

    def forward(self, progress: Progress | None) -> Run:
        """Return the run; keep the states of all steps, or the first one of each segment."""
        p = self.p
        run, state = blank_run(p.start, p.times), p.start
        if self.parts.costed:
            state = state[0], np.concatenate([state[1], np.zeros((*p.lead, 1))], axis=-1)
        self.recorded = []
        for k, rows in enumerate(self.segments):
            states = self.call(self.parts.forward, state, rows)
            state = states[0][..., -1, :], states[1][..., -1, :]
            mine = np.flatnonzero((self.at >= rows.start) & (self.at < rows.stop))
            run.q[..., mine, :] = states[0][..., self.at[mine] - rows.start, :]
            run.qd[..., mine, :] = states[1][..., self.at[mine] - rows.start, : p.system.nv]
            self.recorded.append(states if self.keeps else tuple(x[..., :1, :].copy() for x in states))
            if progress is not None:
                progress(0.5 * (k + 1) / len(self.segments))
        steps = len(self.times) - 1
        run.reached, run.steps = len(p.times), run.steps + steps
        run.evaluations = run.evaluations + steps * self.parts.stages
        note_failures(run, Carried(0, len(p.times) - 1), OPEN if p.mechanism.closures else LOST)
        self.end = state
        return run

    def backward(self, end: State, samples: State | None, progress: Progress | None) -> Back:
        """Return the cotangents of the start, of parameters and of torques."""
        sums = None if self.values is None else np.zeros((*self.p.lead, self.values.shape[-1]))
        back, by_torque, count = end, [], len(self.segments)
        for k in reversed(range(count)):
            rows, states = self.segments[k], self.recorded[k]
            if not self.keeps:
                states = self.call(self.parts.forward, (states[0][..., 0, :], states[1][..., 0, :]), rows)
            more = () if samples is None else tuple(self.rows_of(x, rows) for x in samples)
            results = self.call(self.parts.backward, (*states, *back), rows, more)
            back = results[:2]
            if sums is not None:
                sums = sums + results[2]
            if self.torques is not None:
                by_torque.append(results[-1][..., :-1, :])
            if progress is not None:
                progress(1.0 - 0.5 * k / count)
        torques = None
        if self.torques is not None:
            torques = np.add.reduceat(np.concatenate(by_torque[::-1], axis=-2), self.at[:-1], axis=-2)
        return back, sums, torques

    def rows_of(self, samples: Numbers, rows: slice) -> Numbers:
        """Return cotangents of output times at the steps of a segment, those of its last state left out."""
        mine = np.flatnonzero((self.at >= rows.start) & (self.at < rows.stop - 1))
        found = np.zeros((*samples.shape[:-2], rows.stop - rows.start, samples.shape[-1]))
        found[..., self.at[mine] - rows.start, :] = samples[..., mine, :]
        return found

    def call(self, function: Callable[..., Any], arrays: tuple[Any, ...], rows: slice, after: tuple = ()) -> Any:
        """Call a native function of the steps of a segment; the torques of the last time are not read."""
        more = () if self.values is None else (self.values,)
        held: tuple[Any, ...] = ()
        if self.torques is not None:
            own = self.torques[..., rows.start : rows.stop - 1, :]
            held = (np.concatenate([own, own[..., -1:, :]], axis=-2),)
        with np.errstate(all="ignore"):
            return function(*arrays, *more, self.times[rows], self.lengths[rows], *held, *after)
