"""Search for the best design, and the choice among the runs of a study: differential evolution, gradients, fronts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._support.checks import number, whole
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError, brief, unknown_name
from .evaluating import evaluate_values
from .plan import Plan

if TYPE_CHECKING:
    from .study import Study


# --- The choice among the runs of a study: the best one within bounds, and the Pareto front of several measures ---

Bounds = tuple[float | None, float | None]
"""The lower and the upper bound of a measure; None for none."""


@dataclass(frozen=True, repr=False)
class Choice(Displayed):
    """A run of a study: its number, the values of its quantities, and its measures, by name."""

    run: int
    values: dict[str, float]
    measures: dict[str, float]

    def display(self) -> list[str | Table]:
        """Return values and measures."""
        both = {**self.values, **self.measures}
        return [Table(("run", *both), ((self.run, *both.values()),))]

    def __str__(self) -> str:
        """Return values and measures on one line."""
        both = {**self.values, **self.measures}
        return f"run {self.run}: " + ", ".join(f"{name} = {x:.6g}" for name, x in both.items())


def best_of(study: Study, measure: str, *, largest: bool, subject_to: Mapping[str, Bounds] | None) -> Choice:
    """Return the run with the smallest or the largest measure among those that finished within bounds."""
    if measure not in study.measures:
        raise unknown_name("measure", str(measure), study.measures)
    allowed = study.finished.copy()
    for name, bounds in checked_bounds(subject_to, study.measures).items():
        allowed &= violation(study.measures[name], bounds) == 0.0
    if not allowed.any():
        some = "finished" if not study.finished.any() else "is within the bounds"
        raise InputError(f"no run of the study {some}; see study.failed, or relax subject_to")
    values = np.where(allowed, study.measures[measure], np.nan)
    return _choice(study, int(np.nanargmax(values) if largest else np.nanargmin(values)))


def worst_of(study: Study, measure: str, n: int, *, largest: bool) -> list[Choice]:
    """Return the runs with the largest or the smallest values of a measure, the most extreme one first."""
    if measure not in study.measures:
        raise unknown_name("measure", str(measure), study.measures)
    runs = np.flatnonzero(study.finished)
    if not runs.size:
        raise InputError("no run of the study finished; see study.failed")
    values = study.measures[measure][runs]
    order = np.argsort(-values if largest else values, kind="stable")[: whole(n, "n", of="runs")]
    return [_choice(study, int(run)) for run in runs[order]]


def _choice(study: Study, run: int) -> Choice:
    return Choice(run, study.values_of(run), {name: float(x[run]) for name, x in study.measures.items()})


def front_of(study: Study, measures: Sequence[str]) -> NDArray[np.int_]:
    """Return the finished runs that no other run beats in all measures, sorted by the first one.

    Smaller is better, or larger for a name with a minus sign, "-reach".
    """
    for name in measures:
        if name.removeprefix("-") not in study.measures:
            raise unknown_name("measure", str(name), study.measures)
    if len(measures) < 2:
        raise InputError(f"a Pareto front has two or more measures; given {list(measures)}")
    runs = np.flatnonzero(study.finished)
    costs = np.stack([_cost(study, name)[runs] for name in measures], axis=-1)
    order = np.lexsort(costs.T[::-1])
    return runs[order[not_dominated(costs[order])]]


def _cost(study: Study, name: str) -> Numbers:
    return -study.measures[name[1:]] if name.startswith("-") else study.measures[name]


def not_dominated(costs: Numbers) -> NDArray[np.bool_]:
    """Return which rows of sorted costs [n, k] no other row beats: not larger in all columns, smaller in one."""
    if costs.shape[1] == 2:
        lowest = np.minimum.accumulate(np.append(np.inf, costs[:-1, 1]))
        return costs[:, 1] < lowest
    kept: list[int] = []
    for k, own in enumerate(costs):
        if not kept or not (costs[kept] <= own).all(axis=1).any():
            kept.append(k)
    out = np.zeros(len(costs), dtype=bool)
    out[kept] = True
    return out


def checked_bounds(given: Mapping[str, Bounds] | None, known: Mapping[str, object]) -> dict[str, Bounds]:
    """Return bounds by measure, after checks."""
    out: dict[str, Bounds] = {}
    for name, bounds in (given or {}).items():
        if name not in known:
            raise unknown_name("measure", str(name), known, where="subject_to")
        if not isinstance(bounds, tuple | list) or len(bounds) != 2 or all(x is None for x in bounds):
            raise InputError(f"the bounds of {name!r} are {brief(bounds)}; give (lower, upper), None for no bound")
        low, high = (None if x is None else number(x, f"a bound of {name!r}") for x in bounds)
        if low is not None and high is not None and low > high:
            raise InputError(f"the bounds of {name!r} are {low:g} and {high:g}; give the lower one first")
        out[str(name)] = low, high
    return out


def violation(values: Numbers, bounds: Bounds) -> Numbers:
    """Return by how much values are outside of bounds; infinite for NaN."""
    low, high = bounds
    below = np.zeros(np.shape(values)) if low is None else low - values
    above = np.zeros(np.shape(values)) if high is None else values - high
    return np.where(np.isnan(values), np.inf, np.maximum(0.0, np.maximum(below, above)))


# --- The objective of an optimization: costs of designs in the unit cube and their violations of bounds, in batches.


@dataclass(frozen=True, eq=False)
class Judged:
    """Designs [n, d] with their measures by name, costs [n] and total violations of bounds [n].

    Violations are relative to the size of a bound. Designs that failed have infinite cost and violation.
    """

    x: Numbers
    measures: dict[str, Numbers]
    cost: Numbers
    violation: Numbers

    def __len__(self) -> int:
        """Return the number of designs."""
        return len(self.x)

    def row(self, k: int) -> Judged:
        """Return one design as a batch of one."""
        return self.rows(np.array([k]))

    def rows(self, at: np.ndarray) -> Judged:
        """Return some designs."""
        return Judged(self.x[at], {name: m[at] for name, m in self.measures.items()}, self.cost[at], self.violation[at])

    @property
    def best(self) -> int:
        """The design that violates least, and of these the one with the smallest cost."""
        return int(np.lexsort((self.cost, self.violation))[0])


def better(a: Judged, b: Judged) -> np.ndarray:
    """Return where the designs of `a` are better than those of `b`: less violation, or equal and a smaller cost."""
    return (a.violation < b.violation) | ((a.violation == b.violation) & (a.cost < b.cost))


@dataclass(eq=False)
class Objective:
    """A measure to minimize within bounds of other measures, over intervals of the varied quantities."""

    plan: Plan
    minimize: str
    subject_to: dict[str, Bounds]
    lo: Numbers
    hi: Numbers
    evaluations: int = field(default=0)
    leader: Judged | None = field(default=None, init=False)
    """The best of all designs so far; None without one whose cost is finite."""

    def judge(self, x: Numbers) -> Judged:
        """Return designs of the unit cube [n, d] with cost and violation, by native batches."""
        x = np.atleast_2d(x)
        block = evaluate_values(self.plan, dict(zip(self.plan.space.names, self.quantities(x).T, strict=True)))
        self.evaluations += len(x)
        cost = np.where(np.isnan(block.measures[self.minimize]), np.inf, block.measures[self.minimize])
        total = np.where(np.isinf(cost), np.inf, 0.0)
        for name, bounds in self.subject_to.items():
            total = total + violation(block.measures[name], bounds) / scale(bounds)
        found = Judged(x, block.measures, cost, total)
        row = found.row(found.best)
        if np.isfinite(row.cost[0]) and (self.leader is None or better(row, self.leader)[0]):
            self.leader = row
        return found

    def quantities(self, x: Numbers) -> Numbers:
        """Return the values of the quantities of designs in the unit cube."""
        return np.clip(self.lo + (self.hi - self.lo) * x, np.minimum(self.lo, self.hi), np.maximum(self.lo, self.hi))

    def unit(self, values: Numbers) -> Numbers:
        """Return designs of the unit cube for values of the quantities."""
        return (values - self.lo) / (self.hi - self.lo)

    def margins(self, measures: dict[str, Numbers]) -> Numbers:
        """Return the distances of measures from their bounds, relative to these; negative if violated, [n, bounds]."""
        out = []
        for name, (low, high) in self.subject_to.items():
            size = scale((low, high))
            out += [] if low is None else [(measures[name] - low) / size]
            out += [] if high is None else [(high - measures[name]) / size]
        count = len(next(iter(measures.values())))
        return np.stack(out, axis=-1) if out else np.zeros((count, 0))


def scale(bounds: Bounds) -> float:
    """Return the size of bounds, by which violations are divided."""
    return max([abs(x) for x in bounds if x is not None], default=1.0) or 1.0


SETTLED = 1e-3
"""The largest extent of a population, relative to the intervals, at which the global search ends: a local one is better
from there."""

STEP = 1e-4
"""The step of central differences, relative to the intervals: the errors of truncation and rounding are about 1e-8."""

NEIGHBORS = 32
"""The designs of a round of the neighborhood search, four batches of eight lanes."""

SMALLEST = 1e-8
"""The extent of the neighborhood, relative to the intervals, at which the search ends."""

Told = Callable[[Judged], None]
"""A function that is called with the best design so far."""

Slopes = Callable[[Objective, Numbers], tuple[Judged, Numbers, Numbers]]
"""A function (objective, x [d]) -> the design, and the gradients of cost [d] and margins [bounds, d].

`differences` serves all measures, `exact_slopes` those whose columns have derivatives."""


def evolve(
    objective: Objective, start: Numbers, rng: np.random.Generator, generations: int, told: Told
) -> tuple[Judged, int]:
    """Return a population after differential evolution from a start [n, d], and the number of generations.

    Each generation is one native batch. A design is replaced by a better one: less violation first, then less cost.
    """
    population = objective.judge(start)
    count, axes = start.shape
    for generation in range(generations):
        told(population.row(population.best))
        if np.ptp(population.x, axis=0).max() < SETTLED and np.isfinite(population.violation).all():
            return population, generation
        x = population.x
        others = np.argsort(rng.random((count, count - 1)), axis=1)[:, :2]
        others += others >= np.arange(count)[:, None]
        scale = rng.uniform(0.5, 0.9, size=(count, 1))
        leaders = np.lexsort((population.cost, population.violation))[: max(2, count // 5)]
        leader = x[leaders[rng.integers(len(leaders), size=count)]]
        tried = x + scale * (leader - x) + scale * (x[others[:, 0]] - x[others[:, 1]])
        crossed = rng.random((count, axes)) < 0.9
        crossed[np.arange(count), rng.integers(axes, size=count)] = True
        tried = np.where(crossed, tried, x)
        outside = (tried < 0.0) | (tried > 1.0)
        tried = np.where(outside, 0.5 * (x + np.clip(tried, 0.0, 1.0)), tried)
        found = objective.judge(tried)
        population = _replace_rows(population, found, better(found, population))
    told(population.row(population.best))
    return population, generations


def polish_design(objective: Objective, best: Judged, slopes: Slopes) -> tuple[Judged, bool]:
    """Return the design after sequential quadratic programming from the best one, and whether that converged.

    The design is never worse than the first.
    """
    from scipy.optimize import minimize

    size = max(abs(float(best.cost[0])), 1e-300)
    kept, known = best, {}

    def at(x: Numbers) -> tuple[Judged, Numbers, Numbers]:
        nonlocal kept
        key = x.tobytes()
        if key not in known:
            known.clear()
            known[key] = slopes(objective, np.clip(x, 0.0, 1.0))
            if better(known[key][0], kept)[0]:
                kept = known[key][0]
        return known[key]

    def margins(x: Numbers) -> Numbers:
        return np.nan_to_num(objective.margins(at(x)[0].measures)[0], nan=-1.0)

    bounded = [{"type": "ineq", "fun": margins, "jac": lambda x: at(x)[2]}] if objective.subject_to else []
    done = minimize(
        lambda x: float(min(at(x)[0].cost[0], 1e6 * size) / size),
        best.x[0],
        jac=lambda x: at(x)[1] / size,
        bounds=[(0.0, 1.0)] * best.x.shape[1],
        constraints=bounded,
        method="SLSQP",
        options={"maxiter": 100, "ftol": 1e-12},
    )
    return kept, bool(done.success) and float(kept.violation[0]) == 0.0


def differences(objective: Objective, x: Numbers) -> tuple[Judged, Numbers, Numbers]:
    """Return a design and gradients by central differences, all designs in one native batch.

    At an end of an interval the differences are one-sided. Where a neighbor fails, the slope is zero.
    """
    axes = len(x)
    ahead, behind = np.minimum(x + STEP, 1.0), np.maximum(x - STEP, 0.0)
    designs = np.concatenate(
        [x[None], np.where(np.eye(axes, dtype=bool), ahead, x), np.where(np.eye(axes, dtype=bool), behind, x)]
    )
    found = objective.judge(designs)
    width = ahead - behind
    with np.errstate(invalid="ignore"):
        cost = (found.cost[1 : axes + 1] - found.cost[axes + 1 :]) / width
    margins = objective.margins(found.measures)
    slope = (margins[1 : axes + 1] - margins[axes + 1 :]) / width[:, None]
    return found.row(0), np.where(np.isfinite(cost), cost, 0.0), np.nan_to_num(slope).T


def narrow_search(objective: Objective, best: Judged, rng: np.random.Generator, rounds: int = 120) -> Judged:
    """Return the best design of a shrinking neighborhood, for measures with kinks such as peaks; never a worse one."""
    extent = 10.0 * SETTLED
    for _ in range(rounds):
        found = objective.judge(np.clip(best.x + extent * rng.normal(size=(NEIGHBORS, best.x.shape[1])), 0.0, 1.0))
        found = found.row(found.best)
        if better(found, best)[0]:
            extent = max(2.0 * float(np.abs(found.x - best.x).max()), SMALLEST)
            best = found
        else:
            extent *= 0.6
        if extent < SMALLEST:
            break
    return best


def _replace_rows(population: Judged, found: Judged, where: np.ndarray) -> Judged:
    return Judged(
        np.where(where[:, None], found.x, population.x),
        {name: np.where(where, found.measures[name], x) for name, x in population.measures.items()},
        np.where(where, found.cost, population.cost),
        np.where(where, found.violation, population.violation),
    )
