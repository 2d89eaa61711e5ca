"""Forward mode: states at the output times with their derivatives, by one native integrator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...algebra.arrays import Numbers
from ...model.axes import quaternion_places
from ..engines.engine import Progress
from ..engines.runs import run
from ..kernels.tangent_states import Varied
from ..motion_problem import Problem
from ..run_states import Run, blank_run
from .columns import Columns
from .programs import closing_of, differentiated, free_count, given_parameters, rates_of, refuse
from .tangent_space import directions, of_entries
from .tangent_stepper import TangentCloser, TangentStepper, joined, split


def forward(
    problem: Problem, columns: Columns, torques: Numbers | None = None, progress: Progress | None = None
) -> tuple[Run, Numbers, Numbers]:
    """Return the run of a problem, with the derivatives of q and qd [..., nt, nv, columns] at the output times.

    Those of q are directions of the tangent space at q. `torques` [..., nt - 1, nv] are added in each output interval.
    """
    refuse(problem)
    if torques is not None:
        return _by_intervals(problem, columns, torques, progress, anew=False)
    made, values = _made(problem, columns, torques=False), given_parameters(problem, torques="tau" in columns.groups)
    start = _start(problem, made, columns, values)
    return _resolved(problem, _run(problem, made, start, values, progress))


def of_intervals(
    problem: Problem, columns: Columns, torques: Numbers | None = None, progress: Progress | None = None
) -> tuple[Run, Numbers, Numbers]:
    """Return the same run, with derivatives that begin anew at each output time, [..., nt - 1, nv, columns]."""
    refuse(problem)
    whole, dq, dqd = _by_intervals(problem, columns, torques, progress, anew=True)
    return whole, dq[..., 1:, :, :], dqd[..., 1:, :, :]


def _by_intervals(
    problem: Problem, columns: Columns, torques: Numbers | None, progress: Progress | None, *, anew: bool
) -> tuple[Run, Numbers, Numbers]:
    """Return a run and its derivatives, interval by interval; `anew` is whether derivatives begin anew in each."""
    p, made = problem, _made(problem, columns, torques=torques is not None)
    whole, count = blank_run(p.start, p.times), len(p.times) - 1
    found = tuple(np.full((*p.lead, count + 1, p.system.nv, len(columns)), np.nan) for _ in range(2))
    state, values = None, given_parameters(p, torques="tau" in columns.groups)
    for k in range(count):
        span, first = p.times[k : k + 2], float(p.times[k + 1] - p.times[k])
        near = replace(p.settings, first=min(p.settings.first, first))
        short = replace(p, start=(whole.q[..., k, :], whole.qd[..., k, :]), times=span, settings=near)
        if torques is not None:
            values = given_parameters(p, torques=True, added=torques[..., k, :])
        if state is None or anew:
            state = _start(short, made, columns, values)
        piece = _run(short, made, state, values, None)
        state = piece.q[..., -1, :], piece.qd[..., -1, :]
        alone, *both = _resolved(short, piece)
        _append(whole, alone, k)
        for kept, new in zip(found, both, strict=True):
            kept[..., k + (k > 0) : k + 2, :, :] = new[..., 1 if k else 0 :, :, :]
        if progress is not None:
            progress((k + 1) / count)
        if whole.interrupted or whole.all_failed:
            break
    return whole, found[0], found[1]


def _append(whole: Run, piece: Run, k: int) -> None:
    """Copy the last sample of interval k into the whole run."""
    whole.q[..., k + 1, :], whole.qd[..., k + 1, :] = piece.q[..., 1, :], piece.qd[..., 1, :]
    whole.evaluations += piece.evaluations
    whole.steps += piece.steps
    whole.reached, whole.interrupted = k + piece.reached, piece.interrupted
    for number, reason in piece.failures.items():
        whole.failures.setdefault(number, reason)


def _made(problem: Problem, columns: Columns, *, torques: bool) -> TangentStepper:
    """Return the compiled integrator, which the System keeps."""
    p, held = problem, torques or "tau" in columns.groups
    key = ("derivatives", p.method.name, p.loops, p.acting_key, columns, held)
    return p.kept.part(key, lambda: stepper_of(p, columns, torques=held))


def _run(
    problem: Problem,
    made: TangentStepper,
    start: tuple[Numbers, Numbers],
    values: Numbers | None,
    progress: Progress | None,
) -> Run:
    """Return a run of states with their derivatives."""
    p = problem
    return run(made, *start, p.times, p.settings, parameters=values, threads=p.threads, progress=progress)


def _resolved(problem: Problem, done: Run) -> tuple[Run, Numbers, Numbers]:
    """Return the run of the states alone, and the derivatives of q and qd."""
    system = problem.system
    (q, dq), (qd, dqd) = split(done.q, system.nq), split(done.qd, system.nv)
    found = of_entries(system, _finite(q), dq), np.swapaxes(dqd, -1, -2)
    return replace(done, q=np.ascontiguousarray(q), qd=np.ascontiguousarray(qd)), *found


def stepper_of(problem: Problem, columns: Columns, *, torques: bool) -> TangentStepper:
    """Return the integrator of a problem with derivatives along columns."""
    p = problem
    assert p.method.scheme is not None
    program = rates_of(p, torques=torques)
    closing, chosen = closing_of(p, program), columns.parameters(free_count(p.mechanism))
    varied = Varied(
        differentiated(program, chosen), None if closing is None else differentiated(closing, chosen),
        len(columns), chosen,
    )  # fmt: skip
    return TangentStepper(program, closing, varied, p.method.scheme(), tuple(quaternion_places(p.mechanism)))


def _start(problem: Problem, made: TangentStepper, columns: Columns, values: Numbers | None) -> tuple[Numbers, Numbers]:
    """Return the start with its derivatives: unit columns, projected onto the motions that the loops allow."""
    p, system = problem, problem.system
    (q, qd), count = p.start, len(columns)
    dq, dqd = np.zeros((*p.lead, count, system.nq)), np.zeros((*p.lead, count, system.nv))
    E = directions(system, q)
    at = columns.slice_of("q0")
    if at.stop > at.start:
        dq[..., at, :] = np.eye(system.nv) if E is None else np.swapaxes(E, -1, -2)
    at = columns.slice_of("qd0")
    dqd[..., at, :] = np.eye(system.nv)[: at.stop - at.start]
    closing = closing_of(p, made.program, start=True)
    if closing is not None:
        closer = p.kept.part(("start derivatives", closing.hash, columns), lambda: TangentCloser(closing, made.varied))
        dq, dqd = closer.columns(p.times[:1], q, qd, values, dq, dqd)
    return joined(q, dq), joined(qd, dqd)


def _finite(q: Numbers) -> Numbers:
    """Return coordinates with those of failed runs replaced by ones, whose derivatives are NaN in any case."""
    return np.where(np.isfinite(q), q, 1.0)
