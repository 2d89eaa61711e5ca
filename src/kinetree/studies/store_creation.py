"""Creation of stores: the metadata of all arrays of a study, and the size of its shards."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import writing
from ..results.files.atomic import temporary
from ..version import VERSION
from .kept_columns import Kept
from .labelled import flags
from .plan import Plan
from .store import FORMAT, STATUS, Store, opened
from .zarr_arrays import created, package

BLOCKS = 16
"""Blocks of runs in a shard by default: some seconds of work, which makes the overhead of a shard negligible."""

SHARDS = 32
"""The least number of shards of a large study by default, so that several workers finish together."""

MEMORY = 128e6
"""The largest size of the stored columns of a shard by default [bytes]."""


def prepared(plan: Plan, path: str | Path, shard: int | None) -> Store:
    """Return the store of a plan, created unless it exists; that of another study is refused."""
    path = Path(path)
    if path.exists():
        return opened(plan, path, shard)
    runs = plan.space.runs
    store = Store(path, runs, shard or default_shard(plan))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        made = temporary(path)
        try:
            _create(plan, made, store)
            os.replace(made, path)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            if path.exists():  # another process was first
                return opened(plan, path, shard)
            raise
    return store


def default_shard(plan: Plan) -> int:
    """Return the number of runs in a shard: some blocks, fewer if there are few runs or much to store."""
    found = min(BLOCKS * plan.block, max(1, -(-plan.space.runs // SHARDS)))
    stored = 8 * sum(int(np.prod(kept.shape)) for kept in plan.kept)
    return max(1, min(found, int(MEMORY / stored) if stored else found))


def _create(plan: Plan, path: Path, store: Store) -> None:
    """Write the metadata of all arrays, and the times."""
    zarr = package("zarr")
    runs, shard = store.runs, store.shard
    group = zarr.open_group(str(path), mode="w-", zarr_format=3, attributes=_about(plan, store))
    for name, dtype, kept, attrs in _arrays(plan):
        dims, more = (("run",), ()) if kept is None else (("run", *kept.dims), kept.shape)
        created(group, name, (runs, *more), (shard, *more), dtype, dims, attrs)
    if plan.kept:
        times = plan.evaluation.times
        made = created(group, "time", times.shape, times.shape, times.dtype, ("time",), {"units": "s"})
        made[...] = times
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an extension of Zarr v3, which xarray reads
        zarr.consolidate_metadata(str(path))
    _sort_members(path / "zarr.json")


def _sort_members(file: Path) -> None:
    """Sort the arrays in the metadata of a group, whose order is otherwise that of the folder."""
    data = json.loads(file.read_text())
    listed = data["consolidated_metadata"]["metadata"]
    data["consolidated_metadata"]["metadata"] = dict(sorted(listed.items()))
    file.write_text(json.dumps(data, indent=2))


def _arrays(plan: Plan) -> Iterator[tuple[str, Any, Kept | None, dict[str, Any]]]:
    """Yield name, type, column and attributes of all arrays over runs."""
    for name in (*plan.space.names, *plan.measures):
        attrs = {"units": plan.units.get(name, "")}
        if name in plan.measures:
            attrs["long_name"] = str(plan.about["measures"][name])
        yield name, np.float64, None, attrs
    for kept in plan.kept:
        labels = {"labels": list(kept.labels)} if kept.labels else {}
        yield kept.name, np.float64, kept, {"units": kept.units, **labels}
    yield "failed_at", np.float64, None, {"units": "s", "long_name": "time of the failure"}
    yield STATUS, np.uint8, None, flags()


def _about(plan: Plan, store: Store) -> dict[str, Any]:
    # xarray reads quantities as coordinates by this attribute of the CF conventions
    return {
        "format": FORMAT, "coordinates": " ".join(plan.space.names), **plan.about, "numpy": np.__version__,
        "kinetree": VERSION, "parts": plan.parts, "runs": store.runs, "shard": store.shard,
        "dims": dict(plan.space.dims), "units": dict(plan.units),
    }  # fmt: skip
