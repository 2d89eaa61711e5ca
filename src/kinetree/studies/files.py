"""Results of studies in other forms: NPZ with everything, CSV with a row per run, Datasets of xarray, DataFrames."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.atomic import replacing
from .._support.optional import optional
from ..errors import InputError, KinetreeError
from ..results.files.content import refuse_large, refuse_packed, require_archive
from ..simulation.outcomes import Outcome
from .store import Store, attributes, flags

if TYPE_CHECKING:
    from .study import Study

FORMAT = "kinetree-study-1"


def save(study: Study, path: str | Path) -> Path:
    """Write the results of a study; return the path."""
    path = Path(path)
    writers = {".npz": _write_npz, ".csv": _write_csv}
    if path.suffix.lower() not in writers:
        raise InputError(f"{path}: a study is saved as .npz or .csv; for other formats see study.dataset")
    writers[path.suffix.lower()](study, path)
    return path


def read_study(path: str | Path) -> Study:
    """Read the results of a study: an .npz file that `study.save` wrote, or the store of a study (.zarr)."""
    from .study import Study

    path = Path(path)
    if path.is_dir():
        return _read_store(path)
    if not path.exists():
        raise InputError(f"{path}: does not exist; give the store of a study (.zarr), or an .npz file of study.save")
    require_archive(path, "give the store of a study (.zarr), or an .npz file of study.save")
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            refuse_packed(file.zip, path)
            about = json.loads(file["about"].tobytes()) if "about" in file else {}
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise InputError(f"{path}: is not a study; give an .npz file that study.save wrote")
            over = {name: (dim, file[f"over.{name}"]) for name, dim in about["over"].items()}
            measures = {name: file[f"measure.{name}"] for name in about["measures"]}
            return Study(
                about["dims"], over, measures, file["status"], file["failed_at"], about["units"], about["about"]
            )
    except KinetreeError:
        raise
    except Exception as error:  # NumPy, zipfile and json have errors of their own for altered files
        raise InputError(
            f"{path}: cannot be read as a study ({type(error).__name__}: {error}); give an .npz file of study.save"
        ) from None


def _read_store(path: Path) -> Study:
    """Return the results in a store; columns over time stay there."""
    from .study import Study

    about = attributes(path, "give the store of a study (.zarr), or an .npz file of study.save")
    try:
        store = Store(path, int(about["runs"]), int(about["shard"]))
        dims, quantities = about["dims"], about["coordinates"].split()
        names = [*quantities, *about["measures"], "failed_at", "status"]
        if store.runs != prod(dims.values()) or store.shard < 1:
            raise ValueError(f"{store.runs} runs in shards of {store.shard}, and dimensions {dims}")
        refuse_large(8 * store.runs * len(names), path)
        found = store.read(names)
        status, failed_at = found.pop("status"), found.pop("failed_at")
        over = {name: _along(dims, name, found.pop(name)) for name in quantities}
        return Study(dims, over, found, status, failed_at, about["units"], about, store=store)
    except KinetreeError:
        raise
    except Exception as error:  # any error of a codec, or of attributes that were altered
        raise InputError(
            f"{path}: is a damaged store of a study ({type(error).__name__}: {error}); compute it again"
        ) from None


def _along(dims: dict[str, int], name: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the dimension of a quantity and its values along it, from all runs; NaN where none is stored."""
    dim = name if name in dims else list(dims)[-1]
    by_dim = np.moveaxis(values.reshape(tuple(dims.values())), list(dims).index(dim), 0).reshape(dims[dim], -1)
    first = np.argmax(np.isfinite(by_dim), axis=1)  # any finished shard
    return dim, by_dim[np.arange(len(by_dim)), first]


def _write_npz(study: Study, path: Path) -> None:
    about = {
        "format": FORMAT,
        "dims": study.dims,
        "over": {name: dim for name, (dim, _) in study.over.items()},
        "measures": list(study.measures),
        "units": study.units,
        "about": study.about,
    }
    arrays: dict[str, Any] = {f"over.{name}": x for name, (_, x) in study.over.items()}
    arrays |= {f"measure.{name}": x for name, x in study.measures.items()}
    with replacing(path) as written, open(written, "xb") as file:
        np.savez(
            file,
            about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            status=study.status,
            failed_at=study.failed_at,
            **arrays,
        )


def _write_csv(study: Study, path: Path) -> None:
    names = [*study.over, *study.measures]
    numbers = np.stack([study.column(name) for name in names], axis=-1)
    heads = [f"{name} [{unit}]" if (unit := study.units.get(name)) else name for name in names]
    with replacing(path) as written, open(written, "x", encoding="utf-8", newline="") as file:
        file.write(",".join([*heads, "status"]) + "\n")
        for row, code in zip(numbers, study.status, strict=True):
            file.write(",".join([*("" if np.isnan(x) else repr(float(x)) for x in row), Outcome(code).sentence]) + "\n")


# --- A study as labelled arrays of other packages: a Dataset of xarray, a DataFrame of pandas ---


def dataset_of(study: Study) -> Any:
    """Return an xarray Dataset: measures and statuses over the dimensions, quantities as coordinates."""
    xarray = optional("xarray", "Datasets of studies", "studies")
    coords: dict[str, object] = {
        name: (dim, values, {"units": study.units.get(name, "")}) for name, (dim, values) in study.over.items()
    }
    for name, count in study.dims.items():
        coords.setdefault(name, (name, np.arange(count), {}))
    dims, shape = tuple(study.dims), study.shape
    texts = study.about.get("measures", {})
    data: dict[str, object] = {
        name: (dims, x.reshape(shape), {"units": study.units.get(name, ""), "long_name": texts.get(name, name)})
        for name, x in study.measures.items()
    }
    data["status"] = (dims, study.status.reshape(shape), flags())
    data["failed_at"] = (dims, study.failed_at.reshape(shape), {"units": "s", "long_name": "time of the failure"})
    plain = {name: x for name, x in study.about.items() if not isinstance(x, dict)}
    return xarray.Dataset(data, coords, plain)


def dataframe_of(study: Study) -> Any:
    """Return a pandas DataFrame with a row per run: quantities, measures and the status."""
    pandas = optional("pandas", "DataFrames")
    names = [*study.over, *study.measures]
    status = [Outcome(code).sentence for code in study.status]
    return pandas.DataFrame({**{name: study.column(name) for name in names}, "status": status})
