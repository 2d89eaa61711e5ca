"""Runs with hard contact by time steps, in batches on the CPU or a GPU: Moreau's scheme, impulses on the exact cone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...compiler.lower.contacts import candidate_names
from ...contact_geometry.cone import DOUBTFUL
from ...errors import Advice, InputError
from ...model.scales import characteristic_length
from ..contact.pairs import many_contacts
from ..contact.rates import contact_programs, widen_rates
from ..contact.records import Doubt, contact_wrenches, doubtful
from ..contact.steps import FEW, MEASURES, PASSING, ManyMoreau, Moreau
from ..contact.touching import motion_of_contacts, refuse_depth
from ..events import Watch
from ..methods.stepper import Stepper, stepper_of
from ..problem import Problem
from ..run_states import Run
from .engine import Fields, Motion, Progress, onward_by, refuse_with_contacts, run
from .gpu import in_blocks, refuse_on_gpu
from .native import acting_on

FAST = 3.0
"""The velocity of impacts that a start may come from, in parts of that of a fall over the size of the mechanism plus
its size per second. A time step leaves a body under a surface by a step at the velocity of its impact, so that a run
can start where another one ended."""

REMEDY = "try a smaller dt, or leave out method and dt, so that the run goes from event to event"
"""What to do about steps whose contact forces are in doubt."""


def run_time_steps(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs with contacts by the method "moreau", piece by piece.

    The impulses of the last step are a part of the state.
    """
    _refuse(problem)
    _refuse_depth(problem)
    p, nv, count = problem, problem.mechanism.nv, len(candidate_names(problem.mechanism))
    if p.device is not None:
        refuse_on_gpu(p, watch)
    place = None if p.device is None else p.device.index
    made = p.kept.part(("moreau", place, p.dtype, p.loops, p.acting_key), lambda: contact_stepper(p))
    extra = 3 * count + len(MEASURES)

    def started(qd: np.ndarray) -> np.ndarray:
        return np.concatenate([qd, np.zeros((*qd.shape[:-1], extra))], axis=-1)

    def again(q, qd, t, more) -> Run:
        return _plain(run(made, q, started(qd), t, p.settings, parameters=more), nv)

    q0, qd0 = p.start
    until = watch.stops if watch else None
    examined = None if until is None else lambda so_far: until(_plain(so_far, nv))
    if p.device is not None:
        whole = in_blocks(p, p.device, made, (q0, started(qd0)), progress).with_end()
    else:
        whole = run(
            made, q0, started(qd0), p.times, p.settings, parameters=p.parameters, threads=p.threads,
            progress=progress, until=examined,
        ).with_end()  # fmt: skip

    def complete(ended: Run) -> tuple[Run, Fields]:
        acted = acting_on(p)
        del acted["accelerations"]  # those without contacts; a run computes them from torques and wrenches
        acted["wrenches"] = contact_wrenches(p, acted["wrenches"])
        ended, doubts = doubtful(ended, doubts_of(p, whole.qd[..., : len(ended.t), nv + 3 * count :]), REMEDY)
        return ended, acted | contact_fields(p, ended, whole) | {"options": doubts}

    done = _plain(whole, nv)
    return Motion(done, onward_by(p, done, again), complete)


def contact_stepper(problem: Problem) -> Stepper:
    """Return the native time steps of a problem with contacts."""
    p = problem
    given = p.mechanism, p.forces, p.control
    method: Moreau | ManyMoreau
    if len(candidate_names(p.mechanism)) <= FEW:
        parts = contact_programs(*given, measures=len(MEASURES), dtype=p.dtype)
        method = Moreau(parts.meeting, parts.pushing, parts.ending)
    else:
        parts = many_contacts(*given, measures=len(MEASURES), dtype=p.dtype)
        method = ManyMoreau(parts)
    made = stepper_of(p.mechanism, parts.moving, method, p.loops, p.dtype, p.device)
    closing = None if made.closing is None else widen_rates(made.closing, method.rows + len(MEASURES))
    return replace(made, closing=closing)


def contact_fields(problem: Problem, ended: Run, whole: Run) -> Fields:
    """Return forces, gaps and residuals of the contacts at the samples of a run.

    Forces are the impulses of the last step before a sample, divided by its length; at the start they are zero. At an
    event that ends a run they are those of the step before the next output time.
    """
    p, count, nv = problem, len(candidate_names(problem.mechanism)), problem.mechanism.nv
    nt = len(ended.t)
    spans = np.diff(whole.t[:nt], prepend=whole.t[0])
    steps = np.maximum(np.ceil(spans / p.settings.dt - 1e-9), 1.0)
    lengths = np.where(spans > 0, spans / steps, 1.0)
    more = tuple(x[..., : len(p.mechanism.free_parameters)] for x in p.more)
    state = whole.qd[..., :nt, nv:]
    impulses, residuals = state[..., : 3 * count], state[..., 3 * count :]
    with np.errstate(invalid="ignore"):
        gaps = motion_of_contacts(p).gaps(ended.q, ended.qd, *more)[0]
    forces = impulses.reshape(*impulses.shape[:-1], count, 3) / lengths[:, None, None]
    normal, tangent = residuals[..., 0], residuals[..., 1]
    return {
        "contact_forces": forces,
        "contact_gaps": gaps,
        "contact_residuals": np.stack([normal, tangent, tangent], axis=-1),
    }


def doubts_of(problem: Problem, measures: np.ndarray) -> dict[int, Doubt]:
    """Return the steps of each run in doubt, from the MEASURES at its samples [..., nt, m]."""
    out, bound = {}, DOUBTFUL[problem.dtype]
    for k, rows in enumerate(measures.reshape(-1, *measures.shape[-2:])):
        good = np.flatnonzero(np.isfinite(rows[:, PASSING:]).all(axis=-1))
        steps, worst, when = rows[good[-1] if len(good) else 0, PASSING:]
        if steps > 0:
            out[k] = Doubt(int(steps), float(worst), float(when), bound)
    return out


def _plain(done: Run, nv: int) -> Run:
    """Return a run with velocities alone."""
    end = None if done.end is None else (done.end[0], done.end[1], done.end[2][..., :nv])
    return replace(done, qd=done.qd[..., :nv], end=end)


def _refuse_depth(problem: Problem) -> None:
    """Raise an InputError for a start that is deeper under a surface than time steps leave a body."""
    p = problem
    more = () if p.parameters is None else (p.parameters[..., : len(p.mechanism.free_parameters)],)
    with np.errstate(all="ignore"):
        gaps, velocities = motion_of_contacts(p).gaps(*p.start, *more)
    size, pull = characteristic_length(p.mechanism), float(np.linalg.norm(p.mechanism.gravity))
    fast = np.abs(velocities).max(axis=(-2, -1), initial=0.0) + FAST * (size + np.sqrt(pull * size))
    allowed = np.asarray(p.settings.dt * fast)
    for k in map(tuple, np.argwhere((gaps < -allowed[..., None]).any(axis=-1))[:1]):
        left = f"steps of {p.settings.dt:g} s leave a body at most {allowed[k]:.2g} m under it"
        start = f"q0[{', '.join(map(str, k))}]" if k else "q0"
        remedy = f"{left}, so start with gaps of zero or above"
        refuse_depth(candidate_names(p.mechanism), gaps[k], float(allowed[k]), remedy, start)


def _refuse(problem: Problem) -> None:
    """Raise an InputError for options that time steps with contacts do not support."""
    refuse_with_contacts(problem)
    if not problem.mechanism.contacts:
        fact = '"moreau" is the method of mechanisms with contacts'
        raise InputError(
            Advice(f"{fact}; give contacts=[kt.Contact(...)]", f"{fact}; give the model tables [[contact]]")
        )
