"""Forward mode: states at the output times with their derivatives, by one native integrator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.axes import quaternion_places
from ..engines.engine import Progress
from ..engines.runs import run
from ..kernels.tangent_states import Varied
from ..motion_problem import Problem
from ..rosenbrock import Rosenbrock
from ..run_states import Run, blank_run
from .columns import Columns
from .programs import closing_of, differentiated, free_count, rates_of
from .tangent_space import directions, of_entries
from .tangent_stepper import TangentCloser, TangentStepper, joined, split


def refuse(problem: Problem) -> None:
    """Raise an InputError for a problem whose run has no derivatives."""
    p, name = problem, problem.method.name
    if p.device is not None:
        raise InputError("runs on a GPU have no derivatives; give the System itself, not system.on('cuda')")
    if p.outside:
        who = type(p.control).__name__
        raise InputError(f"{who} is evaluated in Python, and a run with it has no derivatives; use compiled control")
    if p.is_long:
        raise InputError(
            f"{p.mechanism.name!r} has {len(p.mechanism.bodies)} bodies; runs of at most 64 bodies have derivatives"
        )
    if p.method.scheme is None or isinstance(p.method.scheme(), Rosenbrock):
        raise InputError(
            f"runs by {name} have no derivatives; use rk4, euler, midpoint or gauss with dt, or dopri5 or dop853"
        )


def forward(problem: Problem, columns: Columns, progress: Progress | None = None) -> tuple[Run, Numbers, Numbers]:
    """Return the run of a problem, with the derivatives of q and qd [..., nt, nv, columns] at the output times.

    Those of q are directions of the tangent space at q.
    """
    refuse(problem)
    return _run(problem, _made(problem, columns), columns, progress)


def of_intervals(problem: Problem, columns: Columns, progress: Progress | None = None) -> tuple[Run, Numbers, Numbers]:
    """Return the same run, with derivatives that begin anew at each output time, [..., nt - 1, nv, columns]."""
    refuse(problem)
    p, made, whole = problem, _made(problem, columns), blank_run(problem.start, problem.times)
    shape = (*p.lead, len(p.times) - 1, p.system.nv, len(columns))
    found = np.full(shape, np.nan), np.full(shape, np.nan)
    for k in range(len(p.times) - 1):
        start, span = (whole.q[..., k, :], whole.qd[..., k, :]), p.times[k : k + 2]
        first = float(span[1] - span[0])
        short = replace(p, start=start, times=span, settings=replace(p.settings, first=min(p.settings.first, first)))
        piece, *both = _run(short, made, columns, None)
        whole.q[..., k + 1, :], whole.qd[..., k + 1, :] = piece.q[..., 1, :], piece.qd[..., 1, :]
        whole.evaluations += piece.evaluations
        whole.steps += piece.steps
        whole.reached, whole.interrupted = k + piece.reached, piece.interrupted
        for run_, reason in piece.failures.items():
            whole.failures.setdefault(run_, reason)
        for kept, new in zip(found, both, strict=True):
            kept[..., k, :, :] = new[..., 1, :, :]
        if progress is not None:
            progress((k + 1) / (len(p.times) - 1))
        if whole.interrupted or whole.all_failed:
            break
    return whole, *found


def _made(problem: Problem, columns: Columns) -> TangentStepper:
    """Return the compiled integrator, which the System keeps."""
    p = problem
    return p.kept.part(("derivatives", p.method.name, p.loops, p.acting_key, columns), lambda: stepper_of(p, columns))


def _run(
    problem: Problem, made: TangentStepper, columns: Columns, progress: Progress | None
) -> tuple[Run, Numbers, Numbers]:
    p, system = problem, problem.system
    values = given_parameters(p, torques="tau" in columns.groups)
    start = _start(p, made, columns, values)
    done = run(made, *start, p.times, p.settings, parameters=values, threads=p.threads, progress=progress)
    (q, dq), (qd, dqd) = split(done.q, system.nq), split(done.qd, system.nv)
    found = of_entries(system, _finite(q), dq), np.swapaxes(dqd, -1, -2)
    return replace(done, q=np.ascontiguousarray(q), qd=np.ascontiguousarray(qd)), *found


def stepper_of(problem: Problem, columns: Columns) -> TangentStepper:
    """Return the integrator of a problem with derivatives along columns."""
    p = problem
    assert p.method.scheme is not None
    program = rates_of(p, torques="tau" in columns.groups)
    closing, chosen = closing_of(p, program), columns.parameters(free_count(p.mechanism))
    varied = Varied(
        differentiated(program, chosen), None if closing is None else differentiated(closing, chosen),
        len(columns), chosen,
    )  # fmt: skip
    return TangentStepper(program, closing, varied, p.method.scheme(), tuple(quaternion_places(p.mechanism)))


def given_parameters(problem: Problem, *, torques: bool) -> Numbers | None:
    """Return the parameters of compiled rates: free ones, and torques of zero after them."""
    own = problem.parameters
    if not torques:
        return own
    own = np.zeros(0) if own is None else own
    return np.concatenate([own, np.zeros((*own.shape[:-1], problem.system.nv))], axis=-1)


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
