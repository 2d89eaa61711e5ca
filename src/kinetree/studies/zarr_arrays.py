"""Arrays of stores in the format Zarr v3: their metadata, and the bytes of their chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..packages import optional
from .statuses import Status

LEVEL = 3
"""The level of Zstandard: its default, fast and close to the best."""


def package(name: str) -> Any:
    """Return a package that stores need."""
    return optional(name, "Stores of studies", "studies")


def created(group: Any, name: str, shape, chunks, dtype, dims: tuple[str, ...], attributes: dict[str, Any]) -> Any:
    """Return a new array; its checksums find damaged files."""
    codecs = package("zarr.codecs")
    return group.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill(dtype), dimension_names=dims,
        attributes=attributes, compressors=[codecs.ZstdCodec(level=LEVEL), codecs.Crc32cCodec()],
    )  # fmt: skip


def encoded(values: np.ndarray, count: int) -> bytes:
    """Return the bytes of a chunk of `count` rows as Zarr writes them: little-endian, by Zstandard, with a CRC-32C."""
    checksum = package("google_crc32c").value
    zstd = package("numcodecs.zstd")
    if len(values) < count:
        rest = np.full((count - len(values), *values.shape[1:]), fill(values.dtype), dtype=values.dtype)
        values = np.concatenate([values, rest])
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
    packed = bytes(zstd.Zstd(level=LEVEL, checksum=False).encode(plain))
    return packed + checksum(packed).to_bytes(4, "little")


def fill(dtype: Any) -> Any:
    """Return the value of runs that were not evaluated."""
    return np.nan if np.dtype(dtype).kind == "f" else int(Status.NOT_EVALUATED)
