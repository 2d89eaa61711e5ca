"""The formats of trajectory files, each with a function that writes content and one that reads it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np

from ..._support.atomic import replacing
from ..._support.optional import optional
from ...algebra.scalars import Numbers
from ...errors import InputError
from .content import FORMAT, Content, refuse_large, refuse_packed, require_archive

# --- Conversion of arrays to one table of named columns, with a row per sample of each run, and back ---

SHARED = ("t", "reference")
"""Arrays with one row per sample that all runs of a batch share."""


def headings(content: Content) -> list[str]:
    """Return the names of the columns with their units; a batch has the number of the run as its first column."""
    named = [
        f"{label} [{unit}]"
        for entry in content.about["arrays"]
        for label, unit in zip(entry["labels"], entry["units"], strict=True)
    ]
    return (["run [1]"] if content.about["batch"] else []) + named


def to_table(content: Content) -> Numbers:
    """Return all numbers as [rows, columns]; values that are constant in a run are repeated in each of its rows."""
    batch = tuple(content.about["batch"])
    nt = len(content.arrays["t"])
    rows = (prod(batch), nt)
    blocks = [np.repeat(np.arange(rows[0], dtype=float), nt)[:, None]] if batch else []
    for name, array in content.arrays.items():
        if name == "parameters" and (batch or array.ndim == 1):  # a single run has [nt, np] where they change
            array = np.broadcast_to(np.expand_dims(array, -2), (*batch, nt, array.shape[-1]))
        elif name in SHARED:
            array = np.broadcast_to(array, (*batch, *array.shape))
        width = prod(array.shape[len(batch) + 1 :])
        blocks.append(array.reshape(rows[0] * nt, width))
    return np.concatenate(blocks, axis=1)


def described_rows(about: dict) -> int:
    """Return the number of rows of the table that `about` describes."""
    return prod(about["batch"]) * about["arrays"][0]["shape"][0]


def require_rows(about: dict, count: int) -> None:
    """Refuse a table with another number of rows than the described one."""
    rows = described_rows(about)
    if count != rows:
        raise ValueError(f"{count} rows, but {rows} are described")


def from_table(about: dict, table: Numbers) -> Content:
    """Return the content of a table; its columns follow from the shapes in `about`."""
    batch = tuple(about["batch"])
    arrays, at = {}, 1 if batch else 0
    nt = about["arrays"][0]["shape"][0]
    for entry in about["arrays"]:
        shape, width = tuple(entry["shape"]), len(entry["labels"])
        block = table[:, at : at + width]
        at += width
        if entry["name"] in SHARED:
            arrays[entry["name"]] = block[:nt].reshape(shape)
        elif entry["name"] == "parameters" and (batch or len(shape) == 1):
            arrays["parameters"] = block.reshape(*batch, nt, width)[..., 0, :][(0,) * (len(batch) + 1 - len(shape))]
        else:
            arrays[entry["name"]] = block.reshape(shape)
    if at != table.shape[1]:
        raise ValueError(f"{table.shape[1]} columns, but {at} are described")
    return Content(about, arrays)


# --- CSV: lines of `# key: value` in JSON, a heading with units, then numbers with all their bits ---

HEADER = 1000
"""Largest number of describing lines, of which `write_csv` writes some dozen."""


def write_csv(content: Content, path: Path) -> None:
    """Write a CSV file."""
    with replacing(path) as written, open(written, "x", encoding="utf-8", newline="") as file:
        for key, value in content.about.items():
            file.write(f"# {key}: {json.dumps(value)}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings(content))
        writer.writerows(to_table(content).tolist())


def read_csv(path: Path) -> Content:
    """Read a CSV file that `write_csv` wrote."""
    about: dict[str, object] = {}
    at = 0
    with open(path, encoding="utf-8", newline="") as file:
        line = file.readline()
        while line.startswith("#"):
            if len(about) == HEADER:
                raise ValueError(f"more than {HEADER} lines before the columns")
            key, _, value = line[1:].partition(":")
            about[key.strip()] = json.loads(value)
            at = file.tell()
            line = file.readline()
        if "arrays" not in about:
            return Content(about, {})
        file.seek(at)
        rows = csv.reader(file)
        expected = headings(Content(about, {}))
        if next(rows) != expected:
            raise ValueError("the heading does not match the described columns")
        most = described_rows(about)
        found = list(islice(filter(None, rows), most + 1))
        require_rows(about, len(found))
        table = np.array(found, dtype=float).reshape(-1, len(expected))
    return from_table(about, table)


# --- NPZ: NumPy's own arrays in a zip file, never pickled ---

ABOUT = "about"
"""The name of the array with the table, as the bytes of its JSON."""


def write_npz(content: Content, path: Path) -> None:
    """Write an NPZ file."""
    about = np.frombuffer(json.dumps(content.about).encode(), dtype=np.uint8)
    with replacing(path) as written, open(written, "xb") as file:
        np.savez(file, **{ABOUT: about}, **content.arrays)  # type: ignore[arg-type]


def read_npz(path: Path) -> Content:
    """Read an NPZ file that `write_npz` wrote."""
    require_archive(path, "give a file that a run's save(...) wrote")
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
        refuse_packed(file.zip, path)
        about = json.loads(file[ABOUT].tobytes()) if ABOUT in file else {}
        names = [entry["name"] for entry in about.get("arrays", ())]
        return Content(about, {name: file[name] for name in names})


# --- Parquet: the table by columns, for data frames and databases; requires pyarrow ---

KEY = b"kinetree"
"""The entry of the schema with the describing table, as JSON."""


def write_parquet(content: Content, path: Path) -> None:
    """Write a Parquet file."""
    pyarrow = optional("pyarrow", "Parquet files")
    files = optional("pyarrow.parquet", "Parquet files")
    columns = [pyarrow.array(column) for column in to_table(content).T]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in headings(content)])
    schema = schema.with_metadata({KEY: json.dumps(content.about).encode()})
    table = pyarrow.Table.from_arrays(columns, schema=schema)
    with replacing(path) as written:
        files.write_table(table, written, compression="zstd", write_page_checksum=True)


def read_parquet(path: Path) -> Content:
    """Read a Parquet file that `write_parquet` wrote."""
    files = optional("pyarrow.parquet", "Parquet files")
    with open(path, "rb") as stream:
        shape = files.read_metadata(stream)
        schema = shape.schema.to_arrow_schema()
        about = json.loads((schema.metadata or {}).get(KEY, b"{}"))
        if not isinstance(about, dict) or "arrays" not in about:
            return Content({}, {})
        require_rows(about, shape.num_rows)
        if schema.names != headings(Content(about, {})) or any(str(kind) != "double" for kind in schema.types):
            raise ValueError("the columns are not the described ones, of numbers in double precision")
        refuse_large(8 * shape.num_rows * shape.num_columns, path, path.stat().st_size)
        table = files.read_table(stream, page_checksum_verification=True)
    return from_table(about, np.stack([column.to_numpy() for column in table.columns], axis=1))


# --- Zarr: a folder of chunked arrays, for runs that are too large to read as a whole; requires zarr ---

CHUNKS = 100_000
"""The largest number of chunks of an array, each of which takes time even if it is empty."""


def write_zarr(content: Content, path: Path) -> None:
    """Write a Zarr folder; an earlier trajectory at the path is replaced, anything else is kept and refused."""
    zarr = optional("zarr", "Zarr files")
    if path.exists() and not _is_ours(path, zarr):
        raise InputError(f"{path}: already exists and is not a trajectory; choose another name or remove it")
    with replacing(path) as written:
        group = zarr.open_group(str(written), mode="w-")
        entries = {entry["name"]: entry for entry in content.about["arrays"]}
        for name, array in content.arrays.items():
            stored = group.create_array(name, data=np.ascontiguousarray(array))
            stored.attrs.update({key: entries[name][key] for key in ("labels", "units")})
        group.attrs.update(content.about)


def read_zarr(path: Path) -> Content:
    """Read a Zarr folder that `write_zarr` wrote."""
    zarr = optional("zarr", "Zarr files")
    group = zarr.open_group(str(path), mode="r")
    about = dict(group.attrs)
    arrays = {entry["name"]: group[entry["name"]] for entry in about.get("arrays", ())}
    size = sum(map(_size, arrays.values()))
    refuse_large(size, path)
    for array in arrays.values():
        if array.nchunks > CHUNKS:
            raise ValueError(f"{array.nchunks} chunks in an array")
    refuse_large(size, path, sum(file.stat().st_size for file in path.rglob("*") if file.is_file()))
    return Content(about, {name: array[...] for name, array in arrays.items()})


def _size(array) -> int:
    """Return the bytes of an array, or of one of its chunks if they are larger than the array."""
    return array.dtype.itemsize * max(prod(array.shape), prod(array.chunks))


def _is_ours(path: Path, zarr) -> bool:
    try:
        return zarr.open_group(str(path), mode="r").attrs.get("format") == FORMAT
    except Exception:  # anything that zarr cannot read was not written here
        return False


@dataclass(frozen=True)
class Format:
    """A format of trajectory files: `write(content, path)` and `read(path)`."""

    write: Callable[[Content, Path], None]
    read: Callable[[Path], Content]


FORMATS = {
    ".csv": Format(write_csv, read_csv),
    ".npz": Format(write_npz, read_npz),
    ".parquet": Format(write_parquet, read_parquet),
    ".zarr": Format(write_zarr, read_zarr),
}
"""The formats by suffix."""
