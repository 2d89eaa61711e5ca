"""Backward mode: the gradient of one number of a run, or the product of all samples with cotangents.

Both pass the steps of the run in reverse order, with the steps as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...algebra.scalars import Numbers
from ...model.mechanism import parameter_arguments
from ..engines.engine import Progress, note_failures
from ..engines.pieces import Carried
from ..methods.adaptive_steps import TOO_MANY
from ..methods.fixed_steps import ROUNDING
from ..outcomes import CLOSING_LOST, Ending, Outcome
from ..problem import Problem
from ..run_states import Run, blank_run
from .forward import directions
from .programs import Cost, Parts, given_parameters, parts_of

# --- Paths of runs: all their steps forward, and backward from cotangents ---


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


def bytes_of_state(problem: Problem) -> int:
    """Return the memory of one state of all runs of a batch, with a time and a cost."""
    runs = 1
    for n in problem.lead:
        runs *= n
    return 8 * (problem.system.nq + problem.system.nv + 2) * max(1, runs)


# --- The path of fixed steps: the same times for all runs of a batch ---
#
# The run is computed once. Its states are kept at the beginning of every segment of steps. Those within a segment are
# computed again when the segment is passed backward, unless all of them fit into memory.

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
        note_failures(run, Carried(0, len(p.times) - 1), CLOSING_LOST if p.mechanism.closures else Ending(Outcome.LOST))
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
        """Return cotangents of output times at the steps of a segment, without its last state."""
        mine = np.flatnonzero((self.at >= rows.start) & (self.at < rows.stop - 1))
        found = np.zeros((*samples.shape[:-2], rows.stop - rows.start, samples.shape[-1]))
        found[..., self.at[mine] - rows.start, :] = samples[..., mine, :]
        return found

    def call(self, function: Callable[..., Any], arrays: tuple[Numbers, ...], rows: slice, after: tuple = ()) -> Any:
        """Call a native function of the steps of a segment; the torques of the last time are not read."""
        more = parameter_arguments(self.values)
        held: tuple[Numbers, ...] = ()
        if self.torques is not None:
            own = self.torques[..., rows.start : rows.stop - 1, :]
            held = (np.concatenate([own, own[..., -1:, :]], axis=-2),)
        with np.errstate(all="ignore"):
            return function(*arrays, *more, self.times[rows], self.lengths[rows], *held, *after)


# --- The path of an adaptive method: each run of a batch has its own accepted steps, which end at the output times.
#
# Backward, the lengths of the steps are held fixed: the derivative is that of the accepted steps, not of their choice.
# Accepted steps are kept as long as they fit into memory. Others are computed again from the state before them.

FEW, MANY = 16, 1024
"""The least and the most states of a native call; their number is doubled while runs need more."""


@dataclass
class _Segment:
    """The steps of one native call: its arguments, and its states [..., steps + 1, .], None if computed again."""

    given: tuple[Numbers | float, ...]
    steps: int
    known: tuple[Numbers, ...] | None


class AdaptivePath:
    """One run of an adaptive method; `memory` is the most bytes of states that are kept."""

    def __init__(self, problem: Problem, parts: Parts, torques: Numbers | None, memory: int) -> None:
        """Store the parts."""
        self.end: State = problem.start
        self.p, self.parts, self.torques = problem, parts, torques
        self.row, self.memory = bytes_of_state(problem), memory
        self.free = 0 if problem.parameters is None else problem.parameters.shape[-1]

    def forward(self, progress: Progress | None) -> Run:
        """Return the run, output interval by output interval; keep its accepted steps."""
        p, count = self.p, len(self.p.times) - 1
        run = blank_run(p.start, p.times, first=p.settings.first)
        self.end, self.spans, self.left, self.size = p.start, [], self.memory, FEW
        if self.parts.costed:
            self.end = p.start[0], np.concatenate([p.start[1], np.zeros((*p.lead, 1))], axis=-1)
        for k in range(count):
            status, reached = self.interval(run, k)
            run.q[..., k + 1, :], run.qd[..., k + 1, :] = self.end[0], self.end[1][..., : p.system.nv]
            run.reached = k + 2
            note_failures(run, Carried(k, k + 1, status, reached), Ending(Outcome.LOST))
            if progress is not None:
                progress(0.5 * (k + 1) / count)
        return run

    def interval(self, run: Run, k: int) -> tuple[Numbers, Numbers]:
        """Continue all runs to the next output time; return the status of each, and the time that it reached.

        A run that fails has a state of NaN from there on, and is passed over.
        """
        settings, (start, stop) = self.p.settings, self.p.times[k : k + 2]
        lost = ~(np.isfinite(self.end[0]).all(axis=-1) & np.isfinite(self.end[1]).all(axis=-1))
        begin = np.where(lost, stop, start)
        status, segments, under_way = np.zeros(run.step.shape), [], ~lost
        while under_way.any():
            most = np.minimum(settings.most - run.steps, self.size - 1)
            given = (
                *self.end,
                *self.values(k),
                np.full(self.size, stop),
                settings.rtol,
                settings.atol,
                run.step,
                most,
                begin,
            )
            results = self.record(given)
            evaluations, accepted, rejected, code, reached, step = np.moveaxis(results[4], -1, 0)
            segments.append(self.kept(given, results, int(accepted.max())))
            run.evaluations += np.where(under_way, evaluations - (1 if len(segments) > 1 else 0), 0)
            run.steps += np.where(under_way, accepted + rejected, 0)
            run.step, status = step, np.where(under_way, code, status)
            begin = np.where(under_way, reached, begin)
            self.end = results[2], results[3]
            under_way = under_way & (code == TOO_MANY) & (run.steps < settings.most)
            if under_way.any():
                self.size = max(FEW, min(2 * self.size, MANY, self.memory // self.row))
        self.spans.append(segments)
        failed = (status != 0.0)[..., None]
        if failed.any():
            self.end = np.where(failed, np.nan, self.end[0]), np.where(failed, np.nan, self.end[1])
        return status, begin

    def values(self, k: int) -> tuple[Numbers, ...]:
        """Return the parameters during an output interval, with the added torques."""
        added = None if self.torques is None else self.torques[..., k, :]
        found = given_parameters(self.p, torques=added is not None, added=added)
        return () if found is None else (found,)

    def record(self, given: tuple[Numbers | float, ...]) -> tuple[Numbers, ...]:
        """Call the native function of accepted steps."""
        with np.errstate(all="ignore"):
            return self.parts.forward(*given)

    def kept(self, given: tuple[Numbers | float, ...], results: tuple[Numbers, ...], steps: int) -> _Segment:
        """Return the segment of a call, with its states as long as there is memory for them."""
        self.left -= self.row * (steps + 1)
        return _Segment(given, steps, self.states(results, steps) if self.left >= 0 else None)

    def states(self, results: tuple[Numbers, ...], steps: int) -> tuple[Numbers, ...]:
        """Return states, times and lengths of the steps of a call, without its unused rows."""
        q, qd, _, _, _, begins, lengths = results
        rows = slice(steps + 1)
        return tuple(
            np.ascontiguousarray(x) for x in (q[..., rows, :], qd[..., rows, :], begins[..., rows], lengths[..., rows])
        )

    def backward(self, end: State, samples: State | None, progress: Progress | None) -> Back:
        """Return the cotangents of the start, of parameters and of torques."""
        p, nv, count = self.p, self.p.system.nv, len(self.spans)
        back, sums = end, np.zeros((*p.lead, self.free))
        torques = None if self.torques is None else np.zeros((*p.lead, count, nv))
        for k in reversed(range(count)):
            for segment in reversed(self.spans[k]):
                known = segment.known or self.states(self.record(segment.given), segment.steps)
                with np.errstate(all="ignore"):
                    found = self.parts.backward(*known[:2], *back, *self.values(k), *known[2:])
                back = found[:2]
                if len(found) > 2:
                    sums = sums + found[2][..., : self.free]
                if torques is not None:
                    torques[..., k, :] += found[2][..., self.free :]
            if samples is not None:
                by_qd = back[1].copy()
                by_qd[..., :nv] += samples[1][..., k, :]
                back = back[0] + samples[0][..., k, :], by_qd
            if progress is not None:
                progress(1.0 - 0.5 * k / count)
        lost = ~np.isfinite(self.end[0]).all(axis=-1, keepdims=True)
        back = np.where(lost, np.nan, back[0]), np.where(lost, np.nan, back[1])
        return back, sums if self.free else None, torques


@dataclass(frozen=True, eq=False)
class Found:
    """The value of an objective, and its gradients: of q0 and qd0 [..., nv], of parameters, of torques."""

    run: Run
    value: Numbers
    q0: Numbers
    qd0: Numbers
    parameters: Numbers | None
    torques: Numbers | None


def gradient(
    problem: Problem,
    terminal: Cost | None,
    running: Cost | None,
    torques: Numbers | None,
    progress: Progress | None = None,
) -> Found:
    """Return the gradient of a cost at the end plus the integral of a running cost.

    `torques` [..., nt - 1, nv] are added during each output interval.
    """
    p = problem
    parts = parts_of(p, terminal, running, torques=torques is not None)
    path = _path(p, parts, torques)
    run = path.forward(progress)
    value, end, sums = _end(p, parts, path.end)
    (by_q, by_qd), more, by_torques = path.backward(end, None, progress)
    sums = None if sums is None or more is None else sums + more
    by_q, by_qd, sums = _opened(p, parts, (by_q, by_qd[..., : p.system.nv]), sums, torques is not None)
    E = directions(p.system, p.start[0])
    by_q = by_q if E is None else np.einsum("...ij,...i->...j", E, by_q)
    return Found(run, value, by_q, by_qd, sums, by_torques)


class Samples:
    """A run of which the states at the output times are differentiated, entry by entry."""

    def __init__(self, problem: Problem, torques: Numbers | None) -> None:
        """Compute the run; `torques` [..., nt - 1, nv] are added during each output interval."""
        self.p, self.held = problem, torques is not None
        self.parts = parts_of(problem, None, None, torques=self.held)
        self._path = _path(problem, self.parts, torques)
        self.run = self._path.forward(None)

    def pull(self, by_q: Numbers, by_qd: Numbers) -> tuple[Numbers, Numbers, Numbers | None, Numbers | None]:
        """Return the cotangents of q0, qd0, parameters and torques from cotangents of q and qd [..., nt, .]."""
        end = by_q[..., -1, :], by_qd[..., -1, :]
        start, sums, torques = self._path.backward(end, (by_q, by_qd), None)
        return *_opened(self.p, self.parts, start, sums, self.held), torques


def _path(problem: Problem, parts: Parts, torques: Numbers | None) -> Path:
    made = AdaptivePath if problem.method.adaptive else FixedPath
    return made(problem, parts, torques, MEMORY)


def _end(p: Problem, parts: Parts, end: State) -> tuple[Numbers, State, Numbers | None]:
    """Return the value, the cotangents of the state at the end, and the gradient of parameters there."""
    values = p.parameters
    sums = None if values is None else np.zeros((*p.lead, values.shape[-1]))
    q, qd = end
    by_q, by_qd, value = np.zeros_like(q), np.zeros_like(qd), np.zeros(p.lead)
    if parts.costed:
        value = qd[..., -1].copy()
        by_qd[..., -1] = 1.0
    if parts.terminal is not None:
        cost, product = parts.terminal
        nv, more = p.system.nv, parameter_arguments(values)
        given = (p.times[-1:], q, np.ascontiguousarray(qd[..., :nv]), *more)
        with np.errstate(all="ignore"):
            value = value + cost(*given)[..., 0]
            results = product(*given, np.ones(1))
        by_q, by_qd[..., :nv] = results[0], results[1]
        sums = None if sums is None else sums + results[2]
    return value, (by_q, by_qd), sums


def _opened(
    p: Problem, parts: Parts, start: State, sums: Numbers | None, held: bool
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Return the cotangents of the entries of a start before its loops were closed, and of parameters."""
    by_q, by_qd = start
    if parts.opened is None:
        return by_q, by_qd, sums
    values = given_parameters(p, torques=held)
    given = (p.times[:1], *p.start, *parameter_arguments(values))
    more, by_qd, *first = parts.opened(*given, np.zeros_like(by_q), by_qd)
    by_q, _, *second = parts.opened(*given, by_q + more, np.zeros_like(by_qd))
    if sums is not None:
        sums = sums + (first[0] + second[0])[..., : sums.shape[-1]]
    return by_q, by_qd, sums
