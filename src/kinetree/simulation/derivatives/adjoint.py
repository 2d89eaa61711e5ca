"""Backward mode: the gradient of one number of a run, or the product of all samples with cotangents.

Both pass the steps of the run in reverse order, with the steps as they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers
from ...model.mechanism import parameter_arguments
from ..engines.engine import Progress
from ..problem import Problem
from ..run_states import Run
from .adjoint_parts import Cost, Parts, parts_of
from .forward import directions
from .paths import MEMORY, AdaptivePath, FixedPath, Path, State
from .programs import given_parameters


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
        """Return the cotangents of q0, qd0, parameters and torques from those of q and qd [..., nt, .]."""
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
