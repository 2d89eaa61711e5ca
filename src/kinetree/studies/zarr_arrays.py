"""Arrays of stores in the format Zarr v3: their metadata, and their chunks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.optional import optional
from ..simulation.outcomes import Outcome

if TYPE_CHECKING:
    from .study import Study


LEVEL = 3
"""The level of Zstandard: its default, fast and close to the best."""


def package(name: str) -> Any:
    """Return a package that stores need."""
    return optional(name, "Stores of studies", "studies")


def create_array(group: Any, name: str, shape, chunks, dtype, dims: tuple[str, ...], attributes: dict[str, Any]) -> Any:
    """Return a new array; its checksums find damaged files."""
    codecs = package("zarr.codecs")
    return group.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill(dtype), dimension_names=dims,
        attributes=attributes, compressors=[codecs.ZstdCodec(level=LEVEL), codecs.Crc32cCodec()],
    )  # fmt: skip


def write_rows(folder: Path, rows: slice, arrays: dict[str, np.ndarray]) -> None:
    """Write rows of arrays into a folder that has the consolidated metadata of a store, also chunks without numbers."""
    zarr = package("zarr")
    with zarr.config.set({"array.write_empty_chunks": True}):
        group = zarr.open_group(str(folder), mode="r+")
        for name, values in arrays.items():
            group[name][rows] = values


def fill(dtype: Any) -> Any:
    """Return the value of runs that were not evaluated."""
    return np.nan if np.dtype(dtype).kind == "f" else int(Outcome.NOT_EVALUATED)


# --- A study as labelled arrays of other packages: a Dataset of xarray, a DataFrame of pandas ---


def dataset_of(study: Study) -> Any:
    """Return an xarray Dataset: measures and statuses over the dimensions, quantities as coordinates."""
    xarray = optional("xarray", "Datasets of studies", "studies")
    coords: dict[str, Any] = {
        name: (dim, values, {"units": study.units.get(name, "")}) for name, (dim, values) in study.over.items()
    }
    for name, count in study.dims.items():
        coords.setdefault(name, (name, np.arange(count), {}))
    dims, shape = tuple(study.dims), study.shape
    texts = study.about.get("measures", {})
    data: dict[str, Any] = {
        name: (dims, x.reshape(shape), {"units": study.units.get(name, ""), "long_name": texts.get(name, name)})
        for name, x in study.measures.items()
    }
    data["status"] = (dims, study.status.reshape(shape), flags())
    data["failed_at"] = (dims, study.failed_at.reshape(shape), {"units": "s", "long_name": "time of the failure"})
    plain = {name: x for name, x in study.about.items() if not isinstance(x, dict)}
    return xarray.Dataset(data, coords, plain)


def flags() -> dict[str, Any]:
    """Return the meanings of statuses by the names of the CF conventions."""
    return {
        "long_name": "how the run ended",
        "flag_values": [int(outcome) for outcome in Outcome],
        "flag_meanings": " ".join(outcome.sentence.replace(" ", "_") for outcome in Outcome),
    }


def dataframe_of(study: Study) -> Any:
    """Return a pandas DataFrame with a row per run: quantities, measures and the status."""
    pandas = optional("pandas", "DataFrames")
    names = [*study.over, *study.measures]
    status = [Outcome(code).sentence for code in study.status]
    return pandas.DataFrame({**{name: study.column(name) for name in names}, "status": status})
