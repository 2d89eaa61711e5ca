"""`optimize`: the design that minimizes a measure within bounds of its quantities and of other measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import number, whole
from .._support.interruption import keep_in_interrupt
from .._support.options import option_names
from .._support.progress import show_runs
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError, brief, unknown_name
from ..model.mechanism import Mechanism
from ..results.trajectory import Trajectory
from ..simulation.outcomes import Outcome
from ..system import System
from .evaluating import evaluate
from .exact_slopes import exact_slopes, is_smooth, series_of
from .measures import Measure, Measuring
from .plan import STORING, Plan, StudyOptions, plan_of
from .samplings import Sobol
from .searching import (
    Bounds,
    Choice,
    Judged,
    Objective,
    checked_bounds,
    differences,
    evolve,
    narrow_search,
    polish_design,
)
from .study import Study, evaluate_plan

OBJECTIVE = "objective"
"""The name of a measure to minimize that is given without one."""

OPTIONS = option_names(StudyOptions, "samples", "seed", "store", "keep", *STORING)
"""The options of `study` that `optimize` takes: those that determine how a design is evaluated."""

AT_BOUND = 1e-6
"""The distance from a bound, relative to its size, below which it counts as active."""


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(Displayed):
    """The best design that was found: values of its quantities and measures, by name.

    `feasible` is whether all bounds of measures hold; otherwise the design is the one that violates them least.
    `active` are the names of quantities and measures at their bounds. `nominal` has the measures of the mechanism's own
    parameters, None if that design fails. `history` has the best cost after each generation of the global search.
    """

    minimize: str
    values: dict[str, float]
    measures: dict[str, float]
    feasible: bool
    violation: float
    active: tuple[str, ...]
    nominal: dict[str, float] | None
    evaluations: int
    history: Numbers
    bounds: dict[str, tuple[float, float]]
    subject_to: dict[str, Bounds]
    units: dict[str, str]
    plan: Plan = field(repr=False)

    @property
    def cost(self) -> float:
        """The measure that was minimized."""
        return self.measures[self.minimize]

    @property
    def parameters(self) -> dict[str, float]:
        """The values of the free parameters, for `parameters=` of other functions."""
        return {name: x for name, x in self.values.items() if name in self.plan.quantities.parameters}

    def run(self) -> Trajectory | None:
        """Return the best design as a Trajectory."""
        run = self.plan.evaluation.evaluate({name: np.array([x]) for name, x in self.values.items()}).run
        return run.run(0) if run is not None else None

    def sweep(self, samples: int = 4096, *, seed: int = 1, progress: bool | None = None) -> Study:
        """Return a study of Sobol samples within the same bounds, with the same measures."""
        from dataclasses import replace

        space = replace(self.plan.space, samples=whole(samples, "samples"), seed=whole(seed, "seed", least=0))
        plan = replace(self.plan, space=space)
        return evaluate_plan(plan, progress=progress)

    def confirmed(self, samples: int = 4096, *, seed: int = 1) -> Confirmation:
        """Compare the optimum with the best of a sweep of Sobol samples, which is an independent search."""
        swept = self.sweep(samples, seed=seed, progress=False)
        try:
            best = swept.best(self.minimize, subject_to=self.subject_to)
        except InputError:
            best = None
        return Confirmation(self.cost, best, self.minimize, samples, int(swept.finished.sum()))

    def display(self) -> list[str | Table]:
        """Return values, measures and active bounds as a table."""
        lines: list[str | Table] = [f"minimum of {self.minimize} after {self.evaluations} designs"]
        if not self.feasible:
            lines.append(f"no design within all bounds was found; this one violates them by {self.violation:.3g}")
        rows = []
        for name, x in {**self.values, **self.measures}.items():
            before = self.nominal is not None and name in self.measures and f"(nominal {self.nominal[name]:.6g})"
            notes = [*([before] if before else []), *(["at its bound"] if name in self.active else [])]
            rows.append((f"  {name}", f"{x:.6g}", self.units.get(name, ""), " ".join(notes)))
        return [*lines, Table(("", "", "", ""), tuple(rows))]


@dataclass(frozen=True)
class Confirmation:
    """The optimum beside the best design of a sweep; `holds` if the sweep found nothing better."""

    cost: float
    best: Choice | None
    minimize: str
    samples: int
    finished: int

    @property
    def holds(self) -> bool:
        """Whether no sample of the sweep is better than the optimum."""
        return self.best is None or self.cost <= self.best.measures[self.minimize]

    def __str__(self) -> str:
        """Return the comparison as a sentence."""
        if self.best is None:
            return f"no design of {self.samples} samples is within the bounds"
        found = self.best.measures[self.minimize]
        return (
            f"{self.minimize}: {self.cost:.9g} at the optimum, {found:.9g} in the best of {self.samples} samples "
            f"({self.finished} finished)"
        )


def optimize(
    system: System | Mechanism,
    over: Mapping[str, tuple[float, float]],
    *,
    minimize: str | Measuring,
    subject_to: Mapping[str, Bounds] | None = None,
    measures: Mapping[str, str | Measuring] | None = None,
    population: int | None = None,
    generations: int = 300,
    seed: int = 0,
    progress: bool | None = None,
    **evaluation: Any,
) -> Optimum:
    """Return the design that minimizes a measure, with bounds (lo, hi) of its quantities and of other measures.

    `minimize` is the name of one of the `measures`, or a measure such as rms("control.lift"). `subject_to` has bounds
    of measures by name: {"peak": (None, 50.0)}. The evaluation takes the options of `study`: motion, simulate,
    cycle, duration, parameters, actuated and others.

    The search is global first: differential evolution of a `population` from Sobol samples and the nominal design, each
    generation in native batches. Then the best design is improved by sequential quadratic programming, and in a
    shrinking neighborhood, which also suits peaks. Gradients are exact for torques along a motion that the design does
    not change, and for coordinates and velocities of simulated trees; then measures without kinks need no neighborhood.
    Others are differences in one native batch. Designs that fail, or violate bounds, lose against all others.
    `optimum.confirmed()` compares the result with an independent sweep. Ctrl-C raises a KeyboardInterrupt whose
    `optimum` is the best design so far.
    """
    measures, minimize = _name_measures(measures, minimize)
    bounds = _intervals(over)
    count = _population(population, len(bounds))
    for name in evaluation:
        if name not in OPTIONS:
            raise unknown_name("option of optimize", name, OPTIONS)
    options = StudyOptions(samples=count, seed=seed, **evaluation)
    plan = plan_of(system, {name: Sobol(*ends) for name, ends in bounds.items()}, measures, options)
    lo, hi = (np.array([ends[k] for ends in bounds.values()]) for k in (0, 1))
    objective = Objective(plan, minimize, checked_bounds(subject_to, plan.measures), lo, hi)
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    start = objective.unit(np.stack(list(plan.space.values(0, count).values()), axis=-1))
    nominal, own = _nominal(plan), None
    if nominal is not None:
        inside = (nominal >= lo) & (nominal <= hi)
        own = evaluate_nominal(objective, nominal)
        if inside.all():
            start[0] = objective.unit(nominal)
    history: list[float] = []
    try:
        with show_runs(progress, whole(generations, "generations")) as show:

            def told(best: Judged) -> None:
                history.append(float(best.cost[0]))
                show(len(history))

            found, _ = evolve(objective, start, rng, generations, told)
        best = _improve_locally(objective, found.row(found.best), rng)
    except KeyboardInterrupt:
        if objective.leader is None:
            raise
        part = _optimum(objective, objective.leader, own, history, bounds)
        text = f"optimize was interrupted after {objective.evaluations} designs; the best one is `optimum`"
        raise keep_in_interrupt(text, optimum=part) from None
    return _optimum(objective, best, own, history, bounds)


def _improve_locally(objective: Objective, best: Judged, rng: np.random.Generator) -> Judged:
    """Return the design after the local search from the best one of the global search."""
    if not np.isfinite(best.cost[0]):
        raise _explain_failure(objective.plan)
    series = series_of(objective)
    best, converged = polish_design(objective, best, differences if series is None else exact_slopes(series))
    if series is None or not converged or not is_smooth(objective):
        best = narrow_search(objective, best, rng)
    return best


def evaluate_nominal(objective: Objective, values: Numbers) -> dict[str, float] | None:
    """Return the measures of the nominal design, None if it fails."""
    found = objective.judge(objective.unit(values)[None])
    return None if not np.isfinite(found.cost[0]) else {name: float(x[0]) for name, x in found.measures.items()}


def _optimum(objective: Objective, best: Judged, own, history: list[float], bounds: dict) -> Optimum:
    x, plan = best.x[0], objective.plan
    values = dict(zip(bounds, map(float, objective.quantities(best.x)[0]), strict=True))
    measures = {name: float(m[0]) for name, m in best.measures.items()}
    active = [name for name, part in zip(bounds, x, strict=True) if min(part, 1.0 - part) < AT_BOUND]
    for name, ends in objective.subject_to.items():
        size = max(abs(e) for e in ends if e is not None) or 1.0
        if any(e is not None and abs(measures[name] - e) < AT_BOUND * size for e in ends):
            active.append(name)
    return Optimum(
        objective.minimize, values, measures, bool(best.violation[0] == 0.0), float(best.violation[0]), tuple(active),
        own, objective.evaluations, np.array(history), bounds, objective.subject_to, dict(plan.units), plan,
    )  # fmt: skip


def _name_measures(
    measures: Mapping[str, str | Measuring] | None, minimize: str | Measuring
) -> tuple[dict[str, str | Measuring], str]:
    """Return all measures by name, and the name of the one to minimize."""
    known = dict(measures or {})
    if isinstance(minimize, str) and minimize in known:
        return known, minimize
    if isinstance(minimize, Measure) or callable(minimize) or (isinstance(minimize, str) and " " in minimize):
        return {OBJECTIVE: minimize, **known}, OBJECTIVE
    raise InputError(
        f"minimize is {brief(minimize)}; give the name of a measure ({', '.join(known) or 'none is given'}), or a "
        "measure such as rms('control.lift')"
    )


def _intervals(over: object) -> dict[str, tuple[float, float]]:
    if not isinstance(over, Mapping) or not over:
        raise InputError(f"over is {brief(over)}; give intervals by name, such as {{'k': (0.0, 1e3)}}")
    out = {}
    for name, ends in over.items():
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise InputError(f"{name!r} varies over {brief(ends)}; give an interval (lo, hi)")
        lo, hi = (number(x, f"an end of {name!r}") for x in ends)
        if lo >= hi:
            raise InputError(f"{name!r} varies from {lo:g} to {hi:g}; give lo below hi")
        out[str(name)] = lo, hi
    return out


def _population(given: int | None, axes: int) -> int:
    return max(32, 16 * axes) if given is None else whole(given, "population", least=8)


def _nominal(plan: Plan) -> Numbers | None:
    """Return the nominal values of the varied quantities; None if initial states vary."""
    if plan.quantities.starts or plan.nominal is None:
        return None
    return np.array([plan.nominal[plan.quantities.parameters[name]] for name in plan.space.names])


def _explain_failure(plan: Plan) -> InputError:
    block = evaluate(plan, 0, 1)
    outcome = Outcome(int(block.status[0]))
    at = f" at t = {block.failed_at[0]:.6g} s" if np.isfinite(block.failed_at[0]) else ""
    return InputError(f"all designs within the bounds failed; the first one: {outcome.sentence}{at}. Give other bounds")
