"""Search for the best design: differential evolution in native batches, gradients, and a shrinking neighborhood."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..algebra.arrays import Numbers
from .objective import Judged, Objective, better

SETTLED = 1e-3
"""The largest extent of a population, in parts of the intervals, at which the global search ends: a local one is better
from there."""

STEP = 1e-4
"""The step of central differences, in parts of the intervals: the errors of truncation and rounding are about 1e-8."""

NEIGHBORS = 32
"""The designs of a round of the neighborhood search, four batches of eight lanes."""

SMALLEST = 1e-8
"""The extent of the neighborhood, in parts of the intervals, at which the search ends."""

Told = Callable[[Judged], None]
"""A function that is called with the best design so far."""

Slopes = Callable[[Objective, Numbers], tuple[Judged, Numbers, Numbers]]
"""A function (objective, x [d]) -> the design, the gradient of the cost [d], and that of the margins [bounds, d].

`differences` serves all measures, `exact_slopes` those whose columns have derivatives."""


def evolved(
    objective: Objective, start: Numbers, rng: np.random.Generator, generations: int, told: Told
) -> tuple[Judged, int]:
    """Return a population after differential evolution from a start [n, d], and the number of generations.

    Each generation is one native batch. A design is replaced by a better one: less violation first, then less cost.
    """
    population = objective.judged(start)
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
        found = objective.judged(tried)
        population = _replaced(population, found, better(found, population))
    told(population.row(population.best))
    return population, generations


def polished(objective: Objective, best: Judged, slopes: Slopes) -> tuple[Judged, bool]:
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
        lambda x: float(min(at(x)[0].cost[0], 1e6 * size) / size), best.x[0], jac=lambda x: at(x)[1] / size,
        bounds=[(0.0, 1.0)] * best.x.shape[1], constraints=bounded, method="SLSQP",
        options={"maxiter": 100, "ftol": 1e-12},
    )  # fmt: skip
    return kept, bool(done.success) and float(kept.violation[0]) == 0.0


def differences(objective: Objective, x: Numbers) -> tuple[Judged, Numbers, Numbers]:
    """Return a design and gradients by central differences, all designs in one native batch.

    At an end of an interval the differences are one-sided. Where a neighbor fails, the slope is zero.
    """
    axes = len(x)
    ahead, behind = np.minimum(x + STEP, 1.0), np.maximum(x - STEP, 0.0)
    designs = np.concatenate([x[None], np.where(np.eye(axes, dtype=bool), ahead, x),
                              np.where(np.eye(axes, dtype=bool), behind, x)])  # fmt: skip
    found = objective.judged(designs)
    width = ahead - behind
    with np.errstate(invalid="ignore"):
        cost = (found.cost[1 : axes + 1] - found.cost[axes + 1 :]) / width
    margins = objective.margins(found.measures)
    slope = (margins[1 : axes + 1] - margins[axes + 1 :]) / width[:, None]
    return found.row(0), np.where(np.isfinite(cost), cost, 0.0), np.nan_to_num(slope).T


def narrowed(objective: Objective, best: Judged, rng: np.random.Generator, rounds: int = 120) -> Judged:
    """Return the best design of a shrinking neighborhood, for measures with kinks such as peaks; never a worse one."""
    extent = 10.0 * SETTLED
    for _ in range(rounds):
        found = objective.judged(np.clip(best.x + extent * rng.normal(size=(NEIGHBORS, best.x.shape[1])), 0.0, 1.0))
        found = found.row(found.best)
        if better(found, best)[0]:
            extent = max(2.0 * float(np.abs(found.x - best.x).max()), SMALLEST)
            best = found
        else:
            extent *= 0.6
        if extent < SMALLEST:
            break
    return best


def _replaced(population: Judged, found: Judged, where: np.ndarray) -> Judged:
    return Judged(
        np.where(where[:, None], found.x, population.x),
        {name: np.where(where, found.measures[name], x) for name, x in population.measures.items()},
        np.where(where, found.cost, population.cost),
        np.where(where, found.violation, population.violation),
    )
