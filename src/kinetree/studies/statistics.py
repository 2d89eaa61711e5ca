"""Statistics of studies: quantile bands over time, probabilities with confidence, and Sobol indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError, unknown_name
from ..numbers import number, numbers, whole
from ..pictures import picture
from .choosing import Bounds, checked_bounds, violation
from .evaluating import evaluate_values
from .samplings import Given, Grid
from .store import Store, attributes
from .streams import sobol_points

if TYPE_CHECKING:
    from .study import Study

MEMORY = 256e6
"""The memory of the samples that are sorted at a time [bytes]."""

RESAMPLES = 200
"""The number of bootstrap samples of a confidence interval: enough for two digits of its width."""


@dataclass(frozen=True, eq=False)
class Bands:
    """Quantiles of a stored column over time: `values` [quantiles, nt] at the times t [s], of `runs` that finished."""

    column: str
    t: Numbers
    quantiles: tuple[float, ...]
    values: Numbers
    runs: int
    unit: str = ""

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the bands between pairs of quantiles; write the picture to `path` if given."""
        return picture("bands_plot")(self, path, **options)


def bands(path: str | Path, column: str, quantiles: Sequence[float]) -> Bands:
    """Return quantiles over time of a column of a store, such as "q.elbow" of "q"; the memory is bounded."""
    about = attributes(Path(path))
    store = Store(Path(path), about["runs"], about["shard"])
    array, entry = _stored(store, column)
    wanted = numbers(list(quantiles), "the quantiles")
    if not all(0.0 <= x <= 1.0 for x in wanted):
        raise InputError(f"the quantiles are {list(wanted)}; give numbers from 0 to 1")
    good = np.asarray(store.group["status"][...]) == 0
    if not good.any():
        raise InputError(f"{path}: no run finished, so there are no quantiles")
    count = array.shape[1]
    step = max(1, int(MEMORY / (8 * store.runs)))
    found = np.empty((len(wanted), count))
    for first in range(0, count, step):
        samples = np.empty((int(good.sum()), min(step, count - first)))
        row = 0
        for k in range(store.shards):  # a shard at a time: the store may be larger than the memory
            begin, end = store.span(k)
            mine = good[begin:end]
            block = array[begin:end] if entry is None else array[begin:end, :, entry]
            samples[row : row + int(mine.sum())] = block[mine][:, first : first + step]
            row += int(mine.sum())
        found[:, first : first + step] = np.quantile(samples, wanted, axis=0)
    unit = str(array.attrs.get("units", ""))
    return Bands(column, np.asarray(store.group["time"][...]), wanted, found, int(good.sum()), unit)


def _stored(store: Store, column: str) -> tuple[Any, int | None]:
    """Return the array of a stored column, and the entry of a part of it."""
    over_time = {name: x for name, x in store.group.arrays() if len(x.shape) > 1}
    known = {name: None for name, x in over_time.items() if len(x.shape) == 2}
    for name, x in over_time.items():
        known |= {f"{name}.{label}": k for k, label in enumerate(x.attrs.get("labels", ()))}
    if column not in known:
        raise unknown_name("stored column", str(column), sorted(known), where=str(store.path))
    return over_time[column if known[column] is None else column.partition(".")[0]], known[column]


@dataclass(frozen=True)
class Probability:
    """The share of runs that fail or violate bounds, with an interval that covers the true one with `confidence`."""

    value: float
    low: float
    high: float
    count: int
    runs: int
    confidence: float

    def __str__(self) -> str:
        """Return the share and its interval as a sentence."""
        return (
            f"{self.value:.4g} ({self.count} of {self.runs} runs), {100 * self.confidence:g} % confidence: "
            f"{self.low:.4g} to {self.high:.4g}"
        )


def failure_probability(study: Study, subject_to: Mapping[str, Bounds] | None, confidence: float) -> Probability:
    """Return the probability that a run fails or violates bounds, by the interval of Clopper and Pearson."""
    from scipy.special import betaincinv

    part = number(confidence, "confidence")
    if not 0.0 < part < 1.0:
        raise InputError(f"confidence is {part:g}; give a number between 0 and 1, such as 0.95")
    done = study.status != 255
    bad = ~study.finished
    for name, bounds in checked_bounds(subject_to, study.measures).items():
        bad = bad | (violation(study.measures[name], bounds) > 0.0)
    count, runs = int((bad & done).sum()), int(done.sum())
    if not runs:
        raise InputError("no run of the study was evaluated")
    rest = 0.5 * (1.0 - part)
    low = 0.0 if count == 0 else float(betaincinv(count, runs - count + 1, rest))
    high = 1.0 if count == runs else float(betaincinv(count + 1, runs - count, 1.0 - rest))
    return Probability(count / runs, low, high, count, runs, part)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sobol indices of a measure: shares of its variance by quantity, `first` alone and `total` with interactions.

    `first_width` and `total_width` are half widths of 95 % intervals, by resampling. `runs` is the number of designs,
    `failed` that of samples left out since one of their designs failed.
    """

    measure: str
    names: tuple[str, ...]
    first: Numbers
    total: Numbers
    first_width: Numbers
    total_width: Numbers
    runs: int
    failed: int

    def __str__(self) -> str:
        """Return a table with a row per quantity."""
        lines = [f"variance of {self.measure}, {self.runs} designs" + (f", {self.failed} left out" * bool(self.failed))]
        for k, name in enumerate(self.names):
            alone = f"{self.first[k]:7.4f} +- {self.first_width[k]:.4f}"
            lines.append(f"  {name:<20} alone {alone}   total {self.total[k]:7.4f} +- {self.total_width[k]:.4f}")
        return "\n".join(lines)


def sensitivity(study: Study, measure: str, samples: int, seed: int) -> Sensitivity:
    """Return Sobol indices by the estimators of Saltelli (first) and Jansen (total), all designs in native batches."""
    if measure not in study.measures:
        raise unknown_name("measure", str(measure), study.measures)
    if study.plan is None:
        raise InputError("this study was read from a file without its mechanism; call kt.study again for sensitivity")
    over = dict(study.plan.space.over)
    for name, own in over.items():
        if isinstance(own, Grid | Given):
            raise InputError(
                f"{name!r} is on a grid or in a table, and has no distribution; sample it by uniform, latin, sobol or "
                "normal for sensitivity"
            )
    names, count = tuple(over), whole(samples, "samples", least=8)
    points = sobol_points(seed, [f"{name} {half}" for half in "AB" for name in names], 0, count)
    A, B = points[:, : len(names)], points[:, len(names) :]
    mixed = [np.where(np.arange(len(names)) == k, B, A) for k in range(len(names))]
    cubes = np.concatenate([A, B, *mixed])
    values = {name: own.quantile(cubes[:, k]) for k, (name, own) in enumerate(over.items())}  # type: ignore[union-attr]
    found = evaluate_values(study.plan, values).measures[measure].reshape(len(names) + 2, count)
    good = np.isfinite(found).all(axis=0)
    if good.sum() < 8:
        raise InputError(f"{int(good.sum())} of {count} samples finished with all their designs; give other intervals")
    first, total = _indices(found[:, good])
    rng = np.random.default_rng(seed)
    again = [_indices(found[:, good][:, rng.integers(good.sum(), size=good.sum())]) for _ in range(RESAMPLES)]
    widths = 1.96 * np.std(np.array(again), axis=0)
    return Sensitivity(measure, names, first, total, widths[0], widths[1], cubes.shape[0], int((~good).sum()))


def _indices(found: Numbers) -> tuple[Numbers, Numbers]:
    """Return first-order and total indices from the values at A, B and A with columns of B, [2 + d, n]."""
    a, b, mixed = found[0], found[1], found[2:]
    variance = np.var(np.concatenate([a, b]))
    if variance == 0.0:
        return np.zeros(len(mixed)), np.zeros(len(mixed))
    return (b * (mixed - a)).mean(axis=1) / variance, ((a - mixed) ** 2).mean(axis=1) / (2.0 * variance)
