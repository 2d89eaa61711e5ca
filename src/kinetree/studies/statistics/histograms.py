"""Histograms of measures over the finished runs of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._support.checks import whole
from ..._support.pictures import picture
from ...algebra.arrays import Numbers
from ...errors import InputError, unknown_name

if TYPE_CHECKING:
    from ..study import Study

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

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
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
