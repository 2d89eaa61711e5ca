"""Quantile bands over time of a stored column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._support.checks import positive, real_array
from ..._support.lazy_names import picture
from ...algebra.scalars import Numbers
from ...errors import Advice, InputError, brief, unknown_name

if TYPE_CHECKING:
    from ...plots.figures import Picture
    from ..store import Store
    from ..study import Study


# --- Exact quantiles of columns that are larger than memory, from a few passes over blocks of rows ---
#
# A first pass takes a random sample of every column. The sampled values divide the column into intervals with about
# equal numbers of values. A second pass counts the values of each interval, which shows the intervals that contain the
# wanted order statistics. A third pass collects the values of these intervals alone, a small part of all. Sampling
# affects the amount of work, never the result.

SAMPLE = 1024
"""The number of sampled values of a column: the intervals of some quantiles then contain less than 1 % of it."""
PER_VALUE = 64
"""The memory per sampled value: the sample, its two borders and two counts [bytes]."""

Blocks = Callable[[int, int], Iterator[Numbers]]
"""Blocks of rows [n, last - first] of the columns first to last - 1; each call starts a new pass."""


def exact_quantiles(
    blocks: Blocks, rows: int, columns: int, probabilities: Numbers, *, memory: float
) -> tuple[Numbers, NDArray[np.int_]]:
    """Return quantiles [p, columns] by linear interpolation, as `numpy.quantile`, and the number of values [columns].

    Values that are not finite are left out. Beside a block of rows, at most `memory` bytes are used.
    """
    values = np.full((len(probabilities), columns), np.nan)
    counts = np.zeros(columns, dtype=int)
    width = max(1, min(columns, int(memory / min(8 * rows + 8, PER_VALUE * SAMPLE))))
    waiting = [(first, min(first + width, columns), SAMPLE) for first in range(0, columns, width)]
    while waiting:
        first, last, sample = waiting.pop()
        found = _of_columns(lambda a=first, b=last: blocks(a, b), rows, last - first, probabilities, memory, sample)
        if found is not None:
            values[:, first:last], counts[first:last] = found
        elif last - first > 1:  # too much to collect at once
            middle = (first + last) // 2
            waiting += [(first, middle, sample), (middle, last, sample)]
        else:
            waiting.append((first, last, 16 * sample))
    return values, counts


def _of_columns(passes, rows: int, columns: int, p: Numbers, memory: float, sample: int):
    """Return quantiles and counts of some columns, or None if their intervals exceed the memory."""
    if 8 * rows * columns <= memory or sample >= rows:
        return _in_memory(passes(), rows, columns, p)
    borders = [_borders(x) for x in _sample_rows(passes(), rows, columns, sample)]
    within = _count_between(passes(), borders)
    wanted = [_Wanted.of(own, edges, p) for own, edges in zip(within, borders, strict=True)]
    if 16 * sum(one.size for one in wanted) > memory:  # the values, and once more while they are joined
        return None
    collected = _collect_wanted(passes(), borders, wanted)
    values = np.stack([one.quantiles(x) for one, x in zip(wanted, collected, strict=True)], axis=-1)
    return values, np.array([one.count for one in wanted])


def _in_memory(blocks: Iterator[Numbers], rows: int, columns: int, p: Numbers):
    whole = np.full((columns, rows), np.nan)
    at = 0
    for block in blocks:
        whole[:, at : at + len(block)] = np.where(np.isfinite(block), block, np.nan).T
        at += len(block)
    whole.sort(axis=1)  # NaN last
    counts = np.isfinite(whole).sum(axis=1)
    values = np.full((len(p), columns), np.nan)
    for k, count in enumerate(counts):
        if count:
            low, high, part = order_statistics(int(count), p)
            values[:, k] = interpolate(whole[k, low], whole[k, high], part)
    return values, counts


def _sample_rows(blocks: Iterator[Numbers], rows: int, columns: int, count: int) -> Numbers:
    """Return random rows as [columns, count]; not evenly spaced ones, which may coincide with the steps of a grid."""
    chosen = np.sort(np.random.default_rng(rows).choice(rows, size=count, replace=False))
    found = np.full((columns, count), np.nan)
    at = 0
    for block in blocks:
        i, j = np.searchsorted(chosen, [at, at + len(block)])
        found[:, i:j] = block[chosen[i:j] - at].T
        at += len(block)
    return found


def _borders(values: Numbers) -> Numbers:
    """Return the lower borders of intervals: each sampled value is one of its own, and so are the gaps between.

    A value that many rows share therefore needs no collection.
    """
    found = np.unique(values[np.isfinite(values)])
    return np.unique(np.concatenate([found, np.nextafter(found, np.inf)]))


def _finite(column: Numbers) -> Numbers:
    return column[np.isfinite(column)]


def _count_between(blocks: Iterator[Numbers], borders: list[Numbers]) -> list[NDArray[np.int_]]:
    counts = [np.zeros(len(edges) + 1, dtype=int) for edges in borders]
    for block in blocks:
        for k, edges in enumerate(borders):
            places = np.searchsorted(edges, _finite(block[:, k]), side="right")
            counts[k] += np.bincount(places, minlength=len(edges) + 1)
    return counts


def _collect_wanted(blocks: Iterator[Numbers], borders: list[Numbers], wanted: list[_Wanted]) -> list[Numbers]:
    found: list[list[Numbers]] = [[] for _ in borders]
    for block in blocks:
        for k, (edges, one) in enumerate(zip(borders, wanted, strict=True)):
            if one.size:
                column = _finite(block[:, k])
                found[k].append(column[one.taken[np.searchsorted(edges, column, side="right")]])
    return [np.sort(np.concatenate([np.zeros(0), *parts])) for parts in found]


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The order statistics of a column: their intervals, and which intervals are collected."""

    edges: Numbers
    counts: NDArray[np.int_]
    taken: NDArray[np.bool_]
    p: Numbers

    @staticmethod
    def of(counts: NDArray[np.int_], edges: Numbers, p: Numbers) -> _Wanted:
        taken = np.zeros(len(counts), dtype=bool)
        if counts.sum():
            low, high, _ = order_statistics(int(counts.sum()), p)
            taken[np.searchsorted(np.cumsum(counts), np.concatenate([low, high]), side="right")] = True
            taken[1:-1] &= edges[1:] > np.nextafter(edges[:-1], np.inf)  # intervals of a single value are known
        return _Wanted(edges, counts, taken, p)

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def size(self) -> int:
        return int(self.counts[self.taken].sum())

    def quantiles(self, collected: Numbers) -> Numbers:
        """Return the quantiles from the collected values, sorted."""
        if not self.count:
            return np.full(len(self.p), np.nan)
        low, high, part = order_statistics(self.count, self.p)
        return interpolate(self._at(low, collected), self._at(high, collected), part)

    def _at(self, ranks: NDArray[np.int_], collected: Numbers) -> Numbers:
        below = np.append(0, np.cumsum(self.counts))
        skipped = np.append(0, np.cumsum(np.where(self.taken, 0, self.counts)))
        places = np.searchsorted(below[1:], ranks, side="right")
        out = np.empty(len(ranks))
        for k, (rank, place) in enumerate(zip(ranks, places, strict=True)):
            out[k] = collected[rank - skipped[place]] if self.taken[place] else self.edges[place - 1]
        return out


def order_statistics(count: int, p: Numbers) -> tuple[NDArray[np.int_], NDArray[np.int_], Numbers]:
    """Return the ranks below and above each quantile of `count` values, and the part of the way between them."""
    at = (count - 1) * p
    low = np.floor(at).astype(int)
    return low, np.minimum(low + 1, count - 1), at - low


def interpolate(low: Numbers, high: Numbers, part: Numbers) -> Numbers:
    """Return values between two order statistics, with the rounding of `numpy.quantile`."""
    step = high - low
    return np.where(part >= 0.5, high - step * (1.0 - part), low + step * part)


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""The quantiles of bands by default: extremes, 90 % of the runs, half of them, and the median."""
MEMORY = 256e6
"""The memory of bands by default, beside a shard of the store [bytes]."""
LEAST = 1e6
"""The least memory of bands, enough for the samples of some columns [bytes]."""


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

    def plot(self, path: str | Path | None = None, **options: object) -> Picture | Path:
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
        column,
        found.unit,
        found.labels,
        found.times,
        levels,
        values.reshape(len(levels), *shape),
        counts.reshape(shape),
        study.evaluated,
        study.runs,
    )


# --- Columns over time in the store of a study, read shard by shard ---


@dataclass(frozen=True, eq=False)
class StoredColumn:
    """A column of a store: its name, the array and the entries of it, their labels, the unit, and the times [s]."""

    name: str
    array: str
    entries: tuple[int, ...] | None
    labels: tuple[str, ...]
    unit: str
    times: Numbers

    @property
    def columns(self) -> int:
        """The number of values per run."""
        return len(self.times) * len(self.labels)

    def blocks(self, study: Study, first: int, last: int, size: float) -> Iterator[Numbers]:
        """Yield the values first to last - 1 of the runs that finished, [n, last - first], in blocks of runs.

        Small shards are joined to blocks of about `size` bytes.
        """
        store, finished = store_of(study), study.finished
        waiting: list[Numbers] = []
        for k in range(store.shards):
            start, stop = store.span(k)
            good = finished[start:stop]
            if not good.any():
                continue
            values = store.part(self.array, k)
            if self.entries is not None:
                values = values[:, :, list(self.entries)]
            waiting.append(values.reshape(len(values), -1)[good, first:last])
            if sum(x.nbytes for x in waiting) >= size:
                yield np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                waiting.clear()
        if waiting:
            yield np.concatenate(waiting)


def stored_column(study: Study, name: str) -> StoredColumn:
    """Return a column of the store of a study: a whole one, "q", or an entry, "q.elbow"."""
    known = over_time(study)
    base, _, part = name.partition(".") if isinstance(name, str) else ("", "", "")
    group = store_of(study).group
    times = group["time"][...]
    if name in known:
        labels = tuple(group[name].attrs.get("labels", ()))
        return StoredColumn(name, name, None, labels or (name,), _unit(group[name]), times)
    if base in known and part in (labels := list(group[base].attrs.get("labels", ()))):
        return StoredColumn(name, base, (labels.index(part),), (part,), _unit(group[base]), times)
    entries = [f"{own}.{label}" for own in known for label in group[own].attrs.get("labels", ())]
    raise unknown_name("stored column", str(name), [*known, *entries])


def store_of(study: Study) -> Store:
    """Return the store of a study; a study without one raises an error."""
    if study.store is None:
        raise InputError(
            Advice(
                "bands over time need stored columns, and this study has no store; call kt.study with "
                "store='study.zarr' and keep=['q']",
                "bands over time need stored columns, and this study has no store; "
                'write keep = ["q"] in its table [study]',
            )
        )
    return study.store


def over_time(study: Study) -> list[str]:
    """Return the names of the arrays over time; a study without any raises an error."""
    store = store_of(study)
    found = [name for name, x in sorted(store.group.arrays()) if "time" in _dims(x)[1:]]
    if not found:
        raise InputError(
            Advice(
                f"{store.path}: has measures alone, and no column over time; call kt.study with another store and with "
                "columns to keep, such as keep=['q']",
                f"{store.path}: has measures alone, and no column over time; give another --store, and columns such as "
                'keep = ["q"] in the table [study]',
            )
        )
    return found


def _dims(array: Any) -> tuple[str, ...]:
    return tuple(array.metadata.dimension_names or ())


def _unit(array: Any) -> str:
    return str(array.attrs.get("units", ""))
