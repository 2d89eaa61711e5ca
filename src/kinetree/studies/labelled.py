"""A study as labelled arrays of other packages: a Dataset of xarray, a DataFrame of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..packages import optional
from .statuses import MEANINGS

if TYPE_CHECKING:
    from .study import Study


def dataset_of(study: Study) -> Any:
    """Return an xarray Dataset: measures and statuses over the dimensions, quantities as coordinates."""
    xarray = optional("xarray", "Datasets of studies", "studies")
    coords: dict[str, Any] = {
        name: (dim, values, {"units": study.units.get(name, "")}) for name, (dim, values) in study.over.items()
    }  # fmt: skip
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
        "flag_values": [int(code) for code in MEANINGS],
        "flag_meanings": " ".join(text.replace(" ", "_") for text in MEANINGS.values()),
    }


def dataframe_of(study: Study) -> Any:
    """Return a pandas DataFrame with a row per run: quantities, measures and the status."""
    pandas = optional("pandas", "DataFrames")
    names = [*study.over, *study.measures]
    status = [MEANINGS[int(code)] for code in study.status]
    return pandas.DataFrame({**{name: study.column(name) for name in names}, "status": status})
