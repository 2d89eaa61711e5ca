"""Runs in native code: integrator, mechanism, forces and controller are one compiled function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers
from ...model.mechanism import parameter_arguments
from ...runtime.cache import digest
from ...runtime.native import native
from ..acting.rates import LONGEST, loads_and_drives
from ..acting.rates import rates as rates_program
from ..events import Watch
from ..methods.stepper import Stepper, stepper
from ..problem import Problem
from ..run_states import LoadPrograms, Run
from .engine import Fields, Motion, Progress, onward_by, run
from .pieces import Pace

# --- Detection of stiff runs: stability, instead of the required accuracy, bounds the steps of an explicit method.
#
# An explicit method is stable up to a step h for which h |lambda| reaches a bound that depends on the method; lambda is
# the largest eigenvalue of the rates. If the steps stay near this bound and are very many, an implicit method is
# faster.

NEAR = 0.4
"""The part of the bound above which the mean step indicates a stiff run, rejected steps included. Stiff runs were
measured at 0.5, and runs whose steps are bounded by accuracy below 0.1."""

EVERY = 2000
"""The attempts at steps between two checks: some 10 ms. Checks between output times depend on these times no more than
the steps do."""

MANY = 200_000
"""The projected evaluations of a whole run below which it is not checked: a second for a robot, about the time that
an implicit method needs to be set up."""

ROUNDS = 30
"""Iterations of the power method; the largest eigenvalue is needed only to within 10 %."""

SAMPLES, HINTS = 32, 16
"""The most samples of a run that are examined for hints, and the most runs of a batch that get some."""

Rates = Callable[..., Any]
"""Compiled rates (t, q, qd[, parameters]) -> (dq, dqd)."""


@dataclass
class Stiffness:
    """A check of a single run after every so many attempts at steps; `found` is True once the run is stiff."""

    problem: Problem
    found: bool = False
    _before: tuple[float, float] = field(default=(0.0, 0.0))

    def left(self, steps: float) -> float:
        """Return the attempts until the next check."""
        return EVERY - steps % EVERY

    def look(self, run: Run, *, failed: bool) -> bool:
        """Return whether a run is stiff at the state where its last call stopped, `run.stop`.

        Nothing is done between two checks, so that it does not matter where calls end.
        """
        p, (steps, begun) = self.problem, self._before
        made, due = float(run.steps) - steps, run.steps % EVERY == 0 or run.steps >= p.settings.most
        if run.stop is None or made <= 0 or not (due or failed):
            return False
        now, q, qd = run.stop.t, run.stop.q, run.stop.qd
        span = now - (begun if steps else float(p.times[0]))
        self._before = float(run.steps), now
        part = (now - p.times[0]) / (p.times[-1] - p.times[0])
        if float(run.evaluations) < MANY * part or not (np.isfinite(q).all() and np.isfinite(qd).all()):
            return False
        step = span / made if span > 0 else float(run.step)
        fastest = float(fastest_rates(rates_of(p), np.array([now]), q[None], qd[None], p.parameters)[0])
        self.found = step * fastest > NEAR * p.method.stable
        return self.found


def fastest_rates(rates: Rates, t: Numbers, q: Numbers, qd: Numbers, parameters: Numbers | None = None) -> Numbers:
    """Return the sizes of the largest eigenvalues of the rates at states [k, .], [1/s], by the power method.

    A size is the mean growth over the second half of the rounds; in an oscillation it changes from one to the next.
    Zero is returned where the rates are not finite.
    """
    nq, y, t = q.shape[-1], np.concatenate([q, qd], axis=-1), t[:, None]
    more = parameter_arguments(parameters)

    def rate(x: Numbers) -> Numbers:
        return np.concatenate(rates(t, x[:, :nq], x[:, nq:], *more), axis=-1)

    with np.errstate(all="ignore"):
        at, scale = rate(y), 1e-7 * (1.0 + np.abs(y).max(axis=-1, keepdims=True))
        v, growth = np.random.default_rng(1).normal(size=y.shape[-1]) + np.zeros_like(y), []
        for _ in range(ROUNDS):
            v = (rate(y + scale * v / np.linalg.norm(v, axis=-1, keepdims=True)) - at) / scale
            growth.append(np.linalg.norm(v, axis=-1))
        found = np.exp(np.log(growth[ROUNDS // 2 :]).mean(axis=0))
    return np.where(np.isfinite(found), found, 0.0)


def with_hints(problem: Problem, run: Run) -> Run:
    """Return a run whose failures name a step that is too long for the motion, and where it first was.

    A state shortly before the failure is one of a motion that already grows without bounds, so that samples from the
    start on are examined.
    """
    p, longest = problem, problem.method.stable
    if not run.failures or p.method.adaptive or math.isinf(longest) or p.is_long or p.outside:
        return run
    failures, own = dict(run.unexplained), p.parameters
    q, qd = (x.reshape(-1, *x.shape[-2:]) for x in (run.q, run.qd))
    if own is not None:
        own = np.broadcast_to(own, (*run.q.shape[:-2], own.shape[-1])).reshape(len(q), -1)
    for k in sorted(failures)[:HINTS]:
        good = np.isfinite(q[k]).all(axis=-1) & np.isfinite(qd[k]).all(axis=-1)
        some = np.unique(np.linspace(0, max(int(good.argmin()) - 1, 0), SAMPLES).astype(int))
        more = None if own is None else np.broadcast_to(own[k], (len(some), own.shape[-1]))
        found = fastest_rates(rates_of(p), run.t[some], q[k, some].astype(float), qd[k, some].astype(float), more)
        above = np.flatnonzero(found * p.settings.dt > longest / 2)
        if len(above):
            size = found[above[0]]
            hint = (
                f"at t = {run.t[some[above[0]]]:.3g} s the motion has rates of {size:.2g} 1/s, for which "
                f'{p.method.name} needs steps below {longest / size:.2g} s: try a smaller dt, or method="rodas5p" for '
                "stiff systems"
            )
            failures[k] = replace(failures[k], hint=hint)
    return replace(run, failures=run.failures | failures)


def rates_of(problem: Problem) -> Rates:
    """Return the compiled rates of a problem, which the System keeps."""
    p = problem
    key = ("rates", p.loops, p.acting_key)
    return p.kept.part(key, lambda: native(rates_program(p.dynamics)))


def run_native(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs in native code, piece by piece, with checkpoints."""
    p = problem
    made = p.kept.part(("stepper", p.method.name, p.loops, p.acting_key), lambda: stepper(p.dynamics, p.method.scheme))

    def again(q, qd, t, more) -> Run:
        return run(made, q, qd, t, p.settings, parameters=more)

    look = None
    if p.auto and p.method.adaptive and not p.lead and not p.checkpoint:
        look = Stiffness(p)

    def until(so_far: Run) -> bool:
        return (watch is not None and watch.stops(so_far)) or (look is not None and look.found)

    examined = until if watch or look is not None else None
    pace = Pace(growing=examined is None, check=look)

    done = run(
        made,
        *p.start,
        p.times,
        p.settings,
        parameters=p.parameters,
        threads=p.threads,
        progress=progress,
        checkpoint=p.checkpoint,
        key=_key(p, made) if p.checkpoint else "",
        until=examined,
        pace=pace,
    )
    done = done.with_end()
    instead = _implicit(made) if look is not None and look.found else ""
    return Motion(done, onward_by(p, done, again), lambda ended: (ended, acting_on(p)), instead)


def _implicit(made: Stepper) -> str:
    """Return the method for a stiff run of the same rates: native, unless their Jacobian is too long to compile."""
    return "rodas5p" if len(made.program.ops) <= LONGEST else "radau"


def _key(problem: Problem, made: Stepper) -> str:
    """Return the key that identifies the checkpoint of a problem."""
    arrays = (*problem.start, problem.times, *parameter_arguments(problem.parameters))
    numbers = (x.tobytes().hex() for x in arrays)
    return digest(made.program.hash, problem.method.name, repr(problem.settings), *numbers)


def acting_on(problem: Problem) -> Fields:
    """Return the loads of forces and compiled control as fields that are computed when they are read."""
    p = problem
    programs = lambda: loads_and_drives(p.dynamics)  # noqa: E731
    return dict(p.kept.part(("loads", p.acting_key), lambda: LoadPrograms(*programs()).fields()))
