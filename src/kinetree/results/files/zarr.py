"""Zarr: a folder of chunked arrays, for runs that are too large to read as a whole. Requires zarr."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np

from ..._support.atomic import replacing
from ..._support.optional import optional
from ...errors import InputError
from .content import FORMAT, Content, refuse_large

CHUNKS = 100_000
"""The largest number of chunks of an array, each of which takes time even if it is empty."""


def write(content: Content, path: Path) -> None:
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


def read(path: Path) -> Content:
    """Read a Zarr folder that `write` wrote."""
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
