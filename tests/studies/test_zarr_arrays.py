"""Arrays of stores: the bytes of chunks."""

from __future__ import annotations

import numpy as np
import zarr

from kinetree.studies.zarr_arrays import create_array, encode_chunk


def test_chunks_are_those_of_zarr(tmp_path):
    """Write a chunk, also a partial one, with the bytes that Zarr writes itself."""
    group = zarr.open_group(str(tmp_path / "z"), mode="w", zarr_format=3)
    for name, values in (("x", np.random.default_rng(1).normal(size=(5, 3))), ("s", np.arange(5, dtype=np.uint8))):
        dims, units = ("a", "b")[: values.ndim], {"units": "m"}
        array = create_array(group, name, values.shape, (7, *values.shape[1:]), values.dtype, dims, units)
        array[...] = values
        found = (tmp_path / "z" / name / "c" / "/".join(["0"] * values.ndim)).read_bytes()
        assert encode_chunk(values, 7) == found
        assert dict(array.attrs) == units
