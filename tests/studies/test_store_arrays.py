"""Arrays of stores: chunks of rows, written by Zarr."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import zarr

from kinetree.studies.store import create_array, write_rows


def test_rows_are_written_beside_a_store(tmp_path):
    """Write rows into a folder with the metadata alone: a chunk per array, also without numbers, and the last one."""
    group = zarr.open_group(str(tmp_path / "z"), mode="w", zarr_format=3)
    values = {"x": np.random.default_rng(1).normal(size=(12, 3)), "s": np.arange(12, dtype=np.uint8)}
    values["x"][:7] = np.nan
    for name, x in values.items():
        dims, units = ("a", "b")[: x.ndim], {"units": "m"}
        array = create_array(group, name, x.shape, (7, *x.shape[1:]), x.dtype, dims, units)
        assert dict(array.attrs) == units
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata are an extension of Zarr v3
        zarr.consolidate_metadata(str(tmp_path / "z"))
    (tmp_path / "w").mkdir()
    shutil.copyfile(tmp_path / "z" / "zarr.json", tmp_path / "w" / "zarr.json")
    for k, rows in enumerate((slice(0, 7), slice(7, 12))):
        write_rows(tmp_path / "w", rows, {name: x[rows] for name, x in values.items()})
        for name, x in values.items():
            chunk = "/".join([name, "c", str(k), *["0"] * (x.ndim - 1)])
            (tmp_path / "z" / chunk).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "w" / chunk).replace(tmp_path / "z" / chunk)
    read = zarr.open_group(str(tmp_path / "z"), mode="r")
    assert all(np.array_equal(read[name][...], x, equal_nan=True) for name, x in values.items())
