"""Columns over time in the store of a study, read shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import Advice, InputError, unknown_name

if TYPE_CHECKING:
    from ..store import Store
    from ..study import Study


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
