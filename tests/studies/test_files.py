"""Files of studies."""

import numpy as np
import pytest

import kinetree as kt
from press import press


@pytest.fixture(scope="module")
def found():
    return kt.study(
        press(), {"r": kt.grid([0.05, 0.3]), "m": kt.latin(0.0, 3.0)}, samples=3, steps=12,
        cycle={"drive": "main", "speed": 5.0}, measures={"x": "rms control.main"},
    )  # fmt: skip


def test_a_study_is_read_as_it_was_saved(found, tmp_path):
    """Read back every number, unit and status of an .npz file."""
    back = kt.read_study(found.save(tmp_path / "study.npz"))
    assert np.array_equal(back["x"], found["x"], equal_nan=True)
    assert np.array_equal(back["m"], found["m"])
    assert (back.dims, back.units, back.about) == (found.dims, found.units, found.about)
    assert back.status.tolist() == found.status.tolist()
    assert str(back.failed[0]).startswith("run 3 (r = 0.3, m = ")
    assert "the loops do not close at t = " in back.failed[0].reason
    with pytest.raises(kt.InputError, match="read from a file without its mechanism"):
        back.run(0)


def test_a_study_is_a_table(found, tmp_path):
    """Write a row per run, with units and the status as text."""
    lines = found.save(tmp_path / "study.csv").read_text().splitlines()
    assert lines[0] == "r [m],m [kg],x [N m],status"
    assert len(lines) == 7
    assert lines[1].endswith(",finished")
    assert lines[4].endswith(",,the loops do not close")


def test_other_files_are_refused(found, tmp_path):
    """Refuse other suffixes, other contents and damaged files."""
    with pytest.raises(kt.InputError, match=r"a study is saved as .npz or .csv"):
        found.save(tmp_path / "study.xlsx")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(kt.InputError, match="is not a study; give an .npz file that study.save wrote"):
        kt.read_study(tmp_path / "other.npz")
    np.savez(tmp_path / "bad.npz", about=np.frombuffer(b"{", dtype=np.uint8))
    with pytest.raises(kt.InputError, match="cannot be read as a study"):
        kt.read_study(tmp_path / "bad.npz")
    np.savez(tmp_path / "list.npz", about=np.frombuffer(b"[3]", dtype=np.uint8))
    with pytest.raises(kt.InputError, match="is not a study; give an .npz file that study.save wrote"):
        kt.read_study(tmp_path / "list.npz")


def test_altered_stores_are_refused(tmp_path):
    """Name the fault of a store whose attributes claim other runs, or are not those of a store."""
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "study.zarr"
    kt.study(
        press(), {"m": kt.grid([0.1, 0.3])}, steps=12, cycle={"drive": "main", "speed": 5.0},
        measures={"x": "rms control.main"}, store=path, progress=False,
    )  # fmt: skip
    group = zarr.open_group(str(path), mode="r+")
    for change, message in (
        ({"runs": 10**15}, r"damaged store of a study \(ValueError: 1000000000000000 runs in shards of \d+, and dim"),
        ({"runs": 10**15, "dims": {"m": 10**15}}, "its arrays have 3.2e\\+07 GB, and this machine can read"),
        ({"dims": 3}, "damaged store of a study"),
    ):
        group.attrs.update(change)
        with pytest.raises(kt.InputError, match=message):
            kt.read_study(path)


def test_a_study_is_a_dataset(found):
    """Label the dimensions, with units and meanings of statuses in attributes."""
    pytest.importorskip("xarray")
    data = found.dataset
    assert dict(data.sizes) == {"r": 2, "sample": 3}
    assert data["m"].dims == ("sample",)
    assert data["x"].attrs == {"units": "N m", "long_name": "rms control.main"}
    assert data["status"].attrs["flag_values"][0] == 0
    assert float(data["x"].sel(r=0.05).isel(sample=1)) == found["x"][0, 1]
    assert data.attrs["mechanism"] == "press"


def test_a_missing_package_is_named(found, monkeypatch):
    """Name the extra that installs xarray."""
    import sys

    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(kt.InputError, match=r"pip install 'kinetree\[studies\]'"):
        _ = found.dataset


def test_a_study_is_a_dataframe(found):
    """Return a row per run."""
    frame = found.to_dataframe()
    assert list(frame.columns) == ["r", "m", "x", "status"]
    assert len(frame) == 6
