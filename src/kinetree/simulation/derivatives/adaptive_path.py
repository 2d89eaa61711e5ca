"""The path of an adaptive method: each run of a batch has its own accepted steps, which end at the output times.

Backward, the lengths of the steps are held fixed: the derivative is that of the accepted steps, not of their choice.
Accepted steps are kept as long as they fit into memory. Others are computed again from the state before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ..engines.engine import Progress
from ..engines.pieces import TOO_MANY, Carried
from ..engines.runs import note_failures
from ..motion_problem import Problem
from ..run_states import LOST, Run, blank_run
from .adjoint_parts import Parts
from .paths import Back, State, bytes_of_state
from .programs import given_parameters

FEW, MANY = 16, 1024
"""The least and the most states of a native call; their number is doubled while runs need more."""


@dataclass
class _Segment:
    """The steps of one native call: its arguments, and its states [..., steps + 1, .], None if computed again."""

    given: tuple[Any, ...]
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
            note_failures(run, Carried(k, k + 1, status, reached), LOST)
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
            given = (*self.end, *self.values(k), np.full(self.size, stop), settings.rtol, settings.atol,
                     run.step, most, begin)  # fmt: skip
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

    def record(self, given: tuple[Any, ...]) -> tuple[Numbers, ...]:
        """Call the native function of accepted steps."""
        with np.errstate(all="ignore"):
            return self.parts.forward(*given)

    def kept(self, given: tuple[Any, ...], results: tuple[Numbers, ...], steps: int) -> _Segment:
        """Return the segment of a call, with its states as long as there is memory for them."""
        self.left -= self.row * (steps + 1)
        return _Segment(given, steps, self.states(results, steps) if self.left >= 0 else None)

    def states(self, results: tuple[Numbers, ...], steps: int) -> tuple[Numbers, ...]:
        """Return states, times and lengths of the steps of a call, without its unused rows."""
        q, qd, _, _, _, begins, lengths = results
        rows = slice(steps + 1)
        return tuple(np.ascontiguousarray(x) for x in (q[..., rows, :], qd[..., rows, :], begins[..., rows],
                                                       lengths[..., rows]))  # fmt: skip

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
