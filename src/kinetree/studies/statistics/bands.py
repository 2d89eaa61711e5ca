"""Quantile bands over time of a stored column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...algebra.arrays import Numbers
from ...errors import InputError, brief
from ...numbers import positive, real_array
from ...pictures import picture
from .exact_quantiles import exact_quantiles
from .stored_columns import stored_column

if TYPE_CHECKING:
    from ..study import Study

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""The quantiles of bands by default: extremes, 90 % of the runs, half of them, and the median."""
MEMORY = 256e6
"""The memory of bands by default, beside a shard of the store [bytes]."""
LEAST = 1e6
"""The least memory of bands: that of the samples of some columns [bytes]."""


@dataclass(frozen=True, eq=False, repr=False)
class Bands:
    """Exact quantiles of a column over the finished runs of a study, at every time.

    `values` [quantiles, times, entries] belong to the `quantiles` and `times` [s]; `labels` name the entries. `counts`
    [times, entries] are the numbers of finite values. `evaluated` of `runs` runs were evaluated.
    """

    column: str
    unit: str
    labels: tuple[str, ...]
    times: Numbers
    quantiles: Numbers
    values: Numbers
    counts: NDArray[np.int_]
    evaluated: int
    runs: int

    def of(self, label: str) -> Numbers:
        """Return the quantiles of an entry, [quantiles, times]."""
        if label not in self.labels:
            raise InputError(
                f"the bands of {self.column!r} have no entry {label!r}; they have {', '.join(self.labels)}"
            )
        return self.values[:, :, self.labels.index(label)]

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw a panel per entry: the median, and shaded bands between pairs of quantiles."""
        return picture("bands_plot")(self, path, **options)

    def __repr__(self) -> str:
        """Return the column, the quantiles and the numbers of runs on one line."""
        levels = ", ".join(f"{q:g}" for q in self.quantiles)
        part = "" if self.evaluated == self.runs else f" (unfinished: {self.runs:,} runs planned)"
        return f"<Bands of {self.column!r}: quantiles {levels} of {int(self.counts.max(initial=0)):,} runs{part}>"


def bands_of(
    study: Study, column: str, quantiles: Sequence[float] | Numbers = QUANTILES, memory: float = MEMORY
) -> Bands:
    """Return the quantile bands of a stored column over all runs that finished."""
    levels = np.atleast_1d(real_array(quantiles, "quantiles"))
    if levels.ndim != 1 or not levels.size or not ((levels >= 0.0) & (levels <= 1.0)).all():
        raise InputError(f"quantiles are {brief(quantiles)}; give numbers from 0 to 1, such as (0.05, 0.5, 0.95)")
    room = positive(memory, "memory")
    if room < LEAST:
        raise InputError(f"memory is {room:g} bytes; give at least {LEAST:g}")
    found = stored_column(study, column)
    rows = int(study.finished.sum())
    if not rows:
        raise InputError("no run of the study finished, so there are no bands; see study.failed")
    values, counts = exact_quantiles(
        lambda first, last: found.blocks(study, first, last, 0.1 * room), rows, found.columns, levels, memory=0.8 * room
    )
    shape = (len(found.times), len(found.labels))
    return Bands(
        column, found.unit, found.labels, found.times, levels, values.reshape(len(levels), *shape),
        counts.reshape(shape), study.evaluated, study.runs,
    )  # fmt: skip
