"""Files and stores that older versions wrote: their numbers are read without a difference.

An archive in written_before/ has the files of one commit, by its name, with the numbers they were written from.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt

ARCHIVES = sorted((Path(__file__).parent / "written_before").glob("*.zip"))
CALL = {
    "over": {"m_c": kt.grid(0.0, 12.0, 5)},
    "cycle": {"drive": "main_bearing", "speed": 20.0},
    "measures": {"main_bearing": kt.peak("radial.main_bearing"), "guide": kt.peak("radial.guide")},
}
"""The study that the archives have."""


@pytest.fixture(params=ARCHIVES, ids=lambda file: file.stem)
def written(request, tmp_path) -> tuple[Path, Mapping[str, np.ndarray]]:
    """Return the folder of an archive's files, and the numbers."""
    folder = tmp_path / request.param.stem
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(folder)
    return folder, np.load(folder / "numbers.npz")


def test_archives_are_there():
    """Find the archives of at least two versions."""
    assert len(ARCHIVES) >= 2


def test_runs_are_read(written):
    """Read a run in each of the four formats, and a batch, with the coordinates and energies of then."""
    folder, then = written
    for name in ("run.npz", "run.csv", "run.parquet", "run.zarr"):
        run = kt.read_trajectory(folder / name)
        assert run.outcome == kt.Outcome.FINISHED and run.method == "rk4"
        for key in ("t", "q", "qd"):
            assert np.array_equal(getattr(run, key), then[key]), f"{name}: {key}"
        np.testing.assert_allclose(run["energy"], then["energy"], rtol=0, atol=1e-14)  # 0 measured
    assert np.array_equal(kt.read_trajectory(folder / "batch.npz").q, then["batch"])


def test_studies_and_stores_are_read(written):
    """Read a study from its file and from its store, with the measures of then."""
    folder, then = written
    for name in ("study.npz", "study.zarr"):
        study = kt.read_study(folder / name)
        assert study.finished.all()
        for measure in ("main_bearing", "guide"):
            assert np.array_equal(study[measure], then[measure]), f"{name}: {measure}"


def test_stores_are_continued_by_the_same_study_alone(written):
    """Call the study again: a store of the same form has its numbers, an older form is refused and stays readable."""
    folder, then = written
    if folder.name.endswith("ea4d32c0"):
        with pytest.raises(kt.InputError, match=r"study\.zarr: is the store of another study: .*; give another path"):
            kt.study(kt.load("press"), **CALL, store=folder / "study.zarr")
    else:
        assert np.array_equal(kt.study(kt.load("press"), **CALL, store=folder / "study.zarr")["guide"], then["guide"])
    assert np.array_equal(kt.read_study(folder / "study.zarr")["guide"], then["guide"])


def test_models_are_read(written):
    """Read a model file, with the torques of then."""
    folder, then = written
    arm, q = kt.load(folder / "model.toml"), then["q0"]
    np.testing.assert_allclose(arm.inverse_dynamics(q, q, q), then["tau"], rtol=0, atol=1e-14)  # 0 measured
