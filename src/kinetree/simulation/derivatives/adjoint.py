"""Backward mode: the gradient of one number of a run, by its steps in reverse order.

The run is computed once. Its states are kept at the beginning of every segment of steps. Those within a segment are
computed again when the segment is passed backward, unless all of them fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ..engines.engine import Progress
from ..engines.pieces import Carried
from ..engines.runs import note_failures
from ..kernels.fixed_steps import ROUNDING
from ..motion_problem import Problem
from ..run_states import LOST, OPEN, Run, blank_run
from .adjoint_parts import Cost, Parts, parts_of
from .programs import given_parameters
from .tangent_space import directions

SEGMENT = 2048
"""The most steps of a native call: milliseconds for a single run, so that Ctrl-C is answered."""

MEMORY = 2**26
"""The most bytes of states that are kept for all steps, or for those of a segment: 64 MiB."""


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
    return _Sweep(problem, parts_of(problem, terminal, running, torques=torques is not None), torques).found(progress)


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


class _Sweep:
    """One gradient: the run forward, then its steps backward."""

    def __init__(self, problem: Problem, parts: Parts, torques: Numbers | None) -> None:
        p = problem
        self.p, self.parts, self.values = p, parts, p.parameters
        self.times, self.lengths, self.at = steps_of(p.times, p.settings.dt)
        self.torques = None if torques is None else np.repeat(torques, np.diff(self.at), axis=-2)
        row = 8 * (p.system.nq + p.system.nv + 1) * max(1, int(np.prod(p.lead, dtype=int)))
        self.keeps = row * len(self.times) <= MEMORY
        most = max(16, min(SEGMENT, MEMORY // row))
        starts = range(0, len(self.times) - 1, most)
        self.segments = [slice(k, min(k + most, len(self.times) - 1) + 1) for k in starts]

    def found(self, progress: Progress | None) -> Found:
        """Return the gradient."""
        nv, count = self.p.system.nv, len(self.segments)
        run, recorded, end = self.forward(progress)
        value, back, sums = self.end(*end)
        by_torque = []
        for k in reversed(range(count)):
            states = recorded[k]
            if not self.keeps:
                states = self.call(self.parts.forward, (states[0][..., 0, :], states[1][..., 0, :]), self.segments[k])
            results = self.call(self.parts.backward, (*states, *back), self.segments[k])
            back = results[:2]
            if sums is not None:
                sums = sums + results[2]
            if self.torques is not None:
                by_torque.append(results[-1][..., :-1, :])
            if progress is not None:
                progress(1.0 - 0.5 * k / count)
        q0, qd0, sums = self.start(back[0], back[1][..., :nv], sums)
        torques = None
        if self.torques is not None:
            torques = np.add.reduceat(np.concatenate(by_torque[::-1], axis=-2), self.at[:-1], axis=-2)
        return Found(run, value, q0, qd0, sums, torques)

    def call(self, function: Callable[..., Any], arrays: tuple[Any, ...], rows: slice) -> Any:
        """Call a native function of the steps of a segment; the torques of the last time are not read."""
        more = () if self.values is None else (self.values,)
        held: tuple[Any, ...] = ()
        if self.torques is not None:
            own = self.torques[..., rows.start : rows.stop - 1, :]
            held = (np.concatenate([own, own[..., -1:, :]], axis=-2),)
        with np.errstate(all="ignore"):
            return function(*arrays, *more, self.times[rows], self.lengths[rows], *held)

    def forward(self, progress: Progress | None) -> tuple[Run, list[Any], tuple[Numbers, Numbers]]:
        """Return the run, the states of the steps of each segment or its first ones, and the state at the end."""
        p = self.p
        run, state = blank_run(p.start, p.times), (p.start[0], np.concatenate([p.start[1], _zero(p.lead)], axis=-1))
        recorded = []
        for k, rows in enumerate(self.segments):
            states = self.call(self.parts.forward, state, rows)
            state = states[0][..., -1, :], states[1][..., -1, :]
            mine = np.flatnonzero((self.at >= rows.start) & (self.at < rows.stop))
            run.q[..., mine, :] = states[0][..., self.at[mine] - rows.start, :]
            run.qd[..., mine, :] = states[1][..., self.at[mine] - rows.start, :-1]
            recorded.append(states if self.keeps else tuple(x[..., :1, :].copy() for x in states))
            if progress is not None:
                progress(0.5 * (k + 1) / len(self.segments))
        steps = len(self.times) - 1
        run.reached, run.steps = len(p.times), run.steps + steps
        run.evaluations = run.evaluations + steps * self.parts.stages
        note_failures(run, Carried(0, len(p.times) - 1), OPEN if p.mechanism.closures else LOST)
        return run, recorded, state

    def end(self, q: Numbers, qd: Numbers) -> tuple[Numbers, tuple[Numbers, Numbers], Numbers | None]:
        """Return the value, the cotangents of the state at the end, and the gradient of parameters there."""
        p, sums = self.p, None if self.values is None else np.zeros((*self.p.lead, self.values.shape[-1]))
        by_q, by_qd, value = np.zeros_like(q), np.zeros_like(qd), qd[..., -1].copy()
        by_qd[..., -1] = 1.0
        if self.parts.terminal is not None:
            cost, product = self.parts.terminal
            more = () if self.values is None else (self.values,)
            given = (p.times[-1:], q, np.ascontiguousarray(qd[..., :-1]), *more)
            with np.errstate(all="ignore"):
                value = value + cost(*given)[..., 0]
                results = product(*given, np.ones(1))
            by_q, by_qd[..., :-1] = results[0], results[1]
            sums = None if sums is None else sums + results[2]
        return value, (by_q, by_qd), sums

    def start(self, by_q: Numbers, by_qd: Numbers, sums: Numbers | None) -> tuple[Numbers, Numbers, Numbers | None]:
        """Return the gradients of the start in the tangent space, of a start whose loops are closed."""
        p = self.p
        if self.parts.opened is not None:
            values = given_parameters(p, torques=self.torques is not None)
            given = (p.times[:1], *p.start, *(() if values is None else (values,)))
            more, by_qd, *first = self.parts.opened(*given, np.zeros_like(by_q), by_qd)
            by_q, _, *second = self.parts.opened(*given, by_q + more, np.zeros_like(by_qd))
            if sums is not None:
                sums = sums + (first[0] + second[0])[..., : sums.shape[-1]]
        E = directions(p.system, p.start[0])
        return by_q if E is None else np.einsum("...ij,...i->...j", E, by_q), by_qd, sums


def _zero(lead: tuple[int, ...]) -> Numbers:
    return np.zeros((*lead, 1))
