"""The choice among the runs of a study: the best one within bounds, and the Pareto front of several measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._support.checks import number, whole
from .._support.tables import Displayed, Table
from ..algebra.arrays import Numbers
from ..errors import InputError, brief, unknown_name

if TYPE_CHECKING:
    from .study import Study

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
