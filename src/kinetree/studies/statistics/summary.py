"""Statistics of a study's measures: histograms, the probability of a failure, and a summary for a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._support.checks import number, whole
from ..._support.lazy_names import picture
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import InputError, unknown_name
from ...simulation.outcomes import Outcome
from ..searching import Bounds, Choice, checked_bounds, violation
from .bands import Bands, over_time
from .indices import Indices

if TYPE_CHECKING:
    from ...plots.figures import Picture
    from ..study import Study


# --- The probability that a run fails, with a confidence interval ---

METHODS = ("clopper-pearson", "wilson")
"""Confidence intervals: one that covers the truth at least as often as stated, and a narrower approximate one."""


@dataclass(frozen=True, repr=False)
class FailureProbability(Displayed):
    """The share of runs that failed, with a confidence interval from `low` to `high`.

    `reasons` has the number of runs by reason. A run that exceeds several limits is counted under each of them.
    """

    failed: int
    evaluated: int
    runs: int
    low: float
    high: float
    confidence: float
    method: str
    reasons: dict[str, int]
    random: bool

    @property
    def value(self) -> float:
        """The share of the evaluated runs that failed."""
        return self.failed / self.evaluated

    def display(self) -> list[str | Table]:
        """Return the probability with its interval in words, and the reasons with their numbers."""
        return [self.summary(), *([Table(("reason", "runs"), tuple(self.reasons.items()))] if self.reasons else [])]

    def summary(self) -> str:
        """Return the probability with its interval in words."""
        part = "" if self.evaluated == self.runs else f", of {self.runs:,} planned"
        words = (
            f"{self.failed:,} of {self.evaluated:,} runs{part} failed: probability {self.value:.4g}, "
            f"{100 * self.confidence:g} % confidence {self.low:.4g} to {self.high:.4g} ({self.method})"
        )
        return (
            words
            if self.random
            else f"{words}; the interval assumes random samples, and the runs are those of a grid or a scheme"
        )


def failure_probability_of(
    study: Study,
    limits: Mapping[str, Bounds] | None = None,
    *,
    confidence: float = 0.95,
    method: str = METHODS[0],
    count_failed: bool = True,
) -> FailureProbability:
    """Return the probability that a run ends with a status other than finished, or exceeds limits of its measures."""
    level = number(confidence, "confidence")
    if not 0.0 < level < 1.0:
        raise InputError(f"confidence is {level:g}; give a probability between 0 and 1, such as 0.95")
    if method not in METHODS:
        raise unknown_name("confidence interval", str(method), METHODS)
    bounds = checked_bounds(limits, study.measures)
    considered = study.status != Outcome.NOT_EVALUATED if count_failed else study.finished
    count = int(considered.sum())
    if not count:
        raise InputError(f"none of the {study.runs:,} runs of the study {'was evaluated' * count_failed or 'finished'}")
    lost = considered & ~study.finished
    reasons = {
        Outcome(code).sentence: int((study.status[lost] == code).sum()) for code in np.unique(study.status[lost])
    }
    bad = lost.copy()
    for name, pair in bounds.items():
        outside = study.finished & (violation(study.measures[name], pair) > 0.0)
        reasons[limit_text(name, pair, study.units.get(name, ""))] = int(outside.sum())
        bad |= outside
    failed = int(bad.sum())
    low, high = interval(failed, count, level, method)
    planned = "sensitivity" in study.about or any(name in study.dims for name in study.over)
    return FailureProbability(failed, count, study.runs, low, high, level, method, reasons, random=not planned)


def limit_text(name: str, bounds: Bounds, unit: str) -> str:
    """Return in words what exceeds a limit: "peak above 50 N m"."""
    end = f" {unit}" if unit else ""
    low, high = bounds
    sides = ([] if low is None else [f"below {low:g}{end}"]) + ([] if high is None else [f"above {high:g}{end}"])
    return f"{name} {' or '.join(sides)}"


def interval(failed: int, count: int, confidence: float, method: str = METHODS[0]) -> tuple[float, float]:
    """Return the confidence interval of the probability of an event that happened `failed` times of `count`."""
    from scipy.special import betaincinv, ndtri

    tail = 0.5 * (1.0 - confidence)
    if method == "wilson":
        z, share = float(ndtri(1.0 - tail)), failed / count
        middle = (share + z * z / (2 * count)) / (1 + z * z / count)
        half = z / (1 + z * z / count) * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
        return max(0.0, float(middle - half)), min(1.0, float(middle + half))
    low = 0.0 if failed == 0 else float(betaincinv(failed, count - failed + 1, tail))
    high = 1.0 if failed == count else float(betaincinv(failed + 1, count - failed, 1.0 - tail))
    return low, high


# --- Histograms of measures over the finished runs of a study ---

BINS = 40
"""The number of intervals by default."""
FINEST = 4
"""The least width of an interval, in units of the last digit of the values."""


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """How often a measure is in each interval: `counts` [n] between `edges` [n + 1]; of how many runs."""

    measure: str
    unit: str
    edges: Numbers
    counts: NDArray[np.int_]
    mean: float
    deviation: float
    median: float
    finished: int
    evaluated: int
    runs: int

    def plot(self, path: str | Path | None = None, **options: object) -> Picture | Path:
        """Draw the histogram."""
        return picture("histogram_plot")(self, path, **options)

    def __repr__(self) -> str:
        """Return the measure, its mean and its standard deviation on one line."""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"<Histogram of {self.measure!r}: {self.finished:,} of {self.runs:,} runs, mean {self.mean:.6g}{unit}, "
            f"standard deviation {self.deviation:.6g}{unit}>"
        )


def histogram_of(study: Study, measure: str, bins: int = BINS) -> Histogram:
    """Return the histogram of a measure over the runs that finished."""
    values = finished_values(study, measure)
    count = whole(bins, "bins", of="intervals")
    counts, edges = np.histogram(values, bins=count, range=_range(values, count))
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Histogram(
        measure, study.units.get(measure, ""), edges, counts, float(values.mean()), deviation,
        float(np.median(values)), len(values), study.evaluated, study.runs,
    )  # fmt: skip


def _range(values: Numbers, count: int) -> tuple[float, float]:
    """Return the range of the intervals: the range of the values, or a wider one if they differ by rounding alone."""
    low, high = float(values.min()), float(values.max())
    least = count * FINEST * float(np.spacing(max(abs(low), abs(high))))
    if low == high or high - low >= least:
        return low, high
    middle = low + 0.5 * (high - low)
    return middle - 0.5 * least, middle + 0.5 * least


def finished_values(study: Study, measure: str) -> Numbers:
    """Return a measure of the runs that finished; an unknown one, or none that finished, raises an error."""
    if measure not in study.measures:
        raise unknown_name("measure", str(measure), study.measures)
    if not study.finished.any():
        raise InputError("no run of the study finished; see study.failed")
    return study.measures[measure][study.finished]


@dataclass(frozen=True, eq=False)
class Summary:
    """Statistics of a study by measure or column, and lines of words; without results, `histograms` is empty."""

    words: tuple[str, ...]
    failures: FailureProbability | None
    histograms: dict[str, Histogram]
    bands: tuple[Bands, ...]
    indices: dict[str, Indices]
    worst: dict[str, list[Choice]]


def summary_of(
    study: Study,
    *,
    limits: Mapping[str, Bounds] | None = None,
    columns: Sequence[str] | str | None = None,
    measures: Sequence[str] | str | None = None,
    n: int = 5,
    smallest: Sequence[str] | str = (),
) -> Summary:
    """Return the statistics of a study; `smallest` are measures whose smallest values are the worst."""
    names = _as_list(measures, list(study.measures))
    least = _as_list(smallest, [])
    for name in (*names, *least):
        if name not in study.measures:
            raise unknown_name("measure", str(name), study.measures)
    some = bool(study.finished.any())
    if columns is None:
        columns = over_time(study) if study.store is not None and "time" in study.store.group else []
    histograms = {name: study.histogram(name) for name in names} if some else {}
    planned = some and "sensitivity" in study.about
    indices = {name: study.sensitivity(name) for name in names if planned and histograms[name].deviation > 0.0}
    failures = study.failure_probability(limits) if study.evaluated else None
    worst = {name: study.worst(name, n, largest=name not in least) for name in names} if some else {}
    bands = tuple(study.bands(name) for name in _as_list(columns, [])) if some else ()
    return Summary(
        _words(study, failures, histograms, indices, worst, least), failures, histograms, bands, indices, worst
    )


def _as_list(given: Sequence[str] | str | None, default: list[str]) -> list[str]:
    if given is None:
        return default
    return [given] if isinstance(given, str) else list(given)


def _words(study: Study, failures, histograms, indices, worst, least) -> tuple[str, ...]:
    """Return the summary, a sentence or two per line."""
    lines = []
    if study.evaluated < study.runs:
        lines.append(
            f"The study is unfinished: {study.evaluated:,} of {study.runs:,} runs are evaluated, and all figures are "
            "those of these runs."
        )
    if failures is not None:
        lines.append(f"{failures.summary()}.")
    for name, x in histograms.items():
        unit = f" {x.unit}" if x.unit else ""
        extreme = worst[name][0]
        word = "smallest" if name in least else "largest"
        lines.append(
            f"{name}: mean {x.mean:.4g}{unit}, standard deviation {x.deviation:.3g}{unit}, median "
            f"{x.median:.4g}{unit}; the {word} is {extreme.measures[name]:.4g}{unit}, in run {extreme.run:,}."
        )
    for name, x in indices.items():
        first = x.order[0]
        if x.method == "sobol":
            share = f"{100 * x['total'][first]:.0f} % of the variance of {name}, with interactions"
        else:
            share = f"a mean effect of {x['effect'][first]:.3g} {x.unit}".rstrip() + f" on {name}"
        lines.append(f"The most important quantity is {x.names[first]}: it has {share}.")
    return tuple(lines)
