"""Files of runs: every format keeps every bit, is written as a whole or not at all, and faults are reported."""

from __future__ import annotations

import csv as plain_csv
import importlib.util
import json
import os
import sys
import zipfile

import numpy as np
import pytest

import kinetree as kt
from closed_form_runs import PENDULUM, batch, swinging
from kinetree.results import Trajectory, read_trajectory
from kinetree.results.files import FORMATS, content, formats
from kinetree.simulation.outcomes import Ending, Endings, Outcome
from tolerance import assert_close

PACKAGES = {".parquet": "pyarrow", ".zarr": "zarr"}
ENDINGS = [
    pytest.param(
        ending,
        marks=pytest.mark.skipif(
            ending in PACKAGES and importlib.util.find_spec(PACKAGES[ending]) is None,
            reason=f"needs {PACKAGES.get(ending)}",
        ),
    )
    for ending in FORMATS
]
every_format = pytest.mark.parametrize("ending", ENDINGS)


def same(a: Trajectory, b: Trajectory) -> bool:
    """Return whether two runs have the same bits and texts."""
    arrays = ("t", "q", "qd", "torque", "control", "accelerations", "wrenches", "reference", "parameters")
    for name in arrays:
        x, y = getattr(a, name), getattr(b, name)
        if (x is None) != (y is None) or (x is not None and not np.array_equal(x, y, equal_nan=True)):
            return False
    words = ("method", "options", "status", "evaluations")
    return a.system.mechanism.hash == b.system.mechanism.hash and all(getattr(a, w) == getattr(b, w) for w in words)


@every_format
def test_a_run_comes_back_to_the_last_bit(ending, tmp_path):
    """Save and read a run with everything that it can hold."""
    rng = np.random.default_rng(5)
    run = swinging(
        "biped",
        torque=rng.normal(size=(41, 12)) * 10.0 ** rng.integers(-300, 300, size=(41, 12)),
        control=rng.normal(size=(41, 12)),
        accelerations=rng.normal(size=(41, 12)),
        reference=np.where(rng.random((41, 13)) < 0.3, np.nan, rng.normal(size=(41, 13))),
        wrenches=rng.normal(size=(41, 7, 6)),
        options={"dt": 0.1, "names": ["a", "b"], "limit": float("inf")},
        endings=Endings(whole=Ending(Outcome.STOPPED, "a reason with \"quotes\", a comma\nand a line")),
    )  # fmt: skip
    path = run.save(tmp_path / f"run{ending}")
    again = read_trajectory(path)
    assert same(again, run)
    assert np.array_equal(again["reactions"], run["reactions"])
    assert [file.name for file in tmp_path.iterdir()] == [f"run{ending}"]


@every_format
def test_a_batch_comes_back(ending, tmp_path):
    """Save and read batches with one parameter per run, with one for all, and with NaN after a stop."""
    (tmp_path / "p.toml").write_text(PENDULUM)
    pendulum = kt.load(tmp_path / "p.toml")
    t = np.array([0.0, 0.1, 0.4])
    q = np.random.default_rng(5).normal(size=(2, 4, 3, 1))
    q[1, 2, 1:] = np.nan
    for parameters in (np.linspace(0.1, 1.0, 8).reshape(2, 4, 1), np.array([0.25])):
        runs = Trajectory(pendulum, t, q, -q, parameters=parameters, control=2.0 * q, reference=t[:, None])
        assert same(read_trajectory(runs.save(tmp_path / f"run{ending}")), runs)


@every_format
def test_what_a_simulation_knows_is_in_the_file(ending, tmp_path):
    """Save a run before any column was used, and find control, reference, torques and wrenches in the file."""
    arm = kt.load("planar_2r")
    control = kt.Saturated(kt.PD(3.0, 0.5, kt.Hold([0.4, -0.3])), 0.7)
    run = kt.simulate(
        arm, [[0.1, 0.2], [0.3, 0.1]], duration=0.1, control=control, forces=[kt.JointDamper("joint1", 0.3)]
    )
    path = run.save(tmp_path / f"run{ending}")
    again = read_trajectory(path)
    assert same(again, run)
    assert again["control"].shape == again["tau"].shape == (2, 1001, 2)
    assert_close(again["tau"] - again["control"], -0.3 * run.qd * [1.0, 0.0], 1e-15, "damping")
    assert_close(again["tracking_error"], [0.4, -0.3] - run.q, 0.0, "tracking error")
    assert again["wrenches"].shape == (2, 1001, 2, 6) and not again["wrenches"].any()


def test_zeros_are_named_and_not_written(tmp_path):
    """Save a run without wrenches and find no array of zeros, unless that column is requested."""
    run = kt.simulate(kt.load("planar_2r"), [0.1, 0.2], duration=0.1)
    with np.load(run.save(tmp_path / "run.npz")) as file:
        assert set(file) == {"about", "t", "q", "qd", "qdd"}
        assert json.loads(file["about"].tobytes())["zero"] == ["tau", "control", "wrenches"]
    with np.load(run.save(tmp_path / "run.npz", columns=["wrenches"])) as file:
        assert file["wrenches"].shape == (1001, 2, 6)
    assert same(read_trajectory(tmp_path / "run.npz"), run)


def test_files_of_before_are_read(tmp_path):
    """Read a file without control and without the list of zeros, and find no such column."""
    packed = content.pack(swinging(torque=np.ones((41, 6)), wrenches=np.zeros((41, 6, 6))))
    about = {key: value for key, value in packed.about.items() if key != "zero"}
    about["digest"] = content._digest(about, packed.arrays)
    formats.write_npz(content.Content(about, packed.arrays), tmp_path / "run.npz")
    again = read_trajectory(tmp_path / "run.npz")
    assert again.control is None and again.reference is None
    assert again["wrenches"].shape == (41, 6, 6)
    with pytest.raises(kt.UnknownNameError, match="no column 'control'; .*available: t, q, qd, qdd, tau"):
        again["control"]


@every_format
def test_a_file_is_replaced_as_a_whole(ending, tmp_path):
    """Save over an earlier file, with more columns, and find only the new one."""
    path = tmp_path / f"run{ending}"
    swinging().save(path)
    run = swinging(shift=1.0)
    run.save(path, columns=("energy", "poses", "qd"))
    assert same(read_trajectory(path), run)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@every_format
def test_an_immovable_mechanism_comes_back(ending, tmp_path):
    """Save and read a run without coordinates."""
    system = kt.System(kt.build_mechanism("m", [kt.Body("b", mass=2.0)], [kt.Joint("j", "fixed", kt.GROUND, "b")]))
    run = Trajectory(system, [0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)))
    assert same(read_trajectory(run.save(tmp_path / f"run{ending}")), run)


@every_format
def test_another_mechanism_is_refused(ending, tmp_path):
    """Read a run with the System it belongs to, and with another one."""
    path = swinging().save(tmp_path / f"run{ending}")
    arm = kt.load("stanford")
    assert read_trajectory(path, system=arm).system is arm
    message = (
        r"run\.\w+: is a run of 'stanford' with the hash \w{12}, not of the given 'planar_2r' with \w{12}; leave out"
    )
    with pytest.raises(kt.InputError, match=message):
        read_trajectory(path, system=kt.load("planar_2r"))


@every_format
def test_a_failed_write_leaves_the_old_file(ending, tmp_path, monkeypatch):
    """Fail at the end of a write and find the earlier file, and no other file in the folder."""
    path = tmp_path / f"run{ending}"
    old = swinging()
    old.save(path)

    real = os.replace

    def fail(source, target):
        if str(target) == str(path) and "run." in str(source) and not os.path.exists(path):
            monkeypatch.setattr(os, "replace", real)
            raise OSError(28, "No space left on device")
        if os.path.isfile(source):
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(kt.InputError, match=r"cannot be written \(No space left on device\); choose another path"):
        swinging(shift=1.0).save(path)
    monkeypatch.setattr(os, "replace", real)
    assert same(read_trajectory(path), old)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".csv", ".npz", pytest.param(".parquet", marks=ENDINGS[2].marks)])
def test_damaged_files_are_refused(ending, tmp_path):
    """Truncate files, overwrite and flip bytes: each reads unchanged, or gives an error that names the file."""
    run = swinging("planar_2r")[:6]
    data = run.save(tmp_path / f"run{ending}").read_bytes()
    rng = np.random.default_rng(3)
    bad = tmp_path / f"bad{ending}"
    refused = 0
    for _ in range(60):
        changed = bytearray(data)
        match rng.integers(3):
            case 0:
                changed = changed[: rng.integers(len(changed))]
            case 1:
                changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
            case 2:
                at = rng.integers(len(changed))
                changed[at : at + 20] = rng.bytes(20)
        bad.write_bytes(bytes(changed))
        try:
            assert same(read_trajectory(bad), run)
        except kt.KinetreeError as error:
            assert str(bad) in str(error)
            refused += 1
    assert refused >= 40


def test_altered_numbers_are_noticed(tmp_path):
    """Change a digit of a CSV file, and the mechanism in it, and read that it is damaged."""
    path = swinging().save(tmp_path / "run.csv")
    text = path.read_text()
    path.write_text(text[:-3] + ("1" if text[-3] != "1" else "2") + text[-2:])
    with pytest.raises(kt.InputError, match=r"run\.csv: is damaged: the digest of its content is wrong"):
        read_trajectory(path)
    path.write_text(text.replace("mass = 9.0", "mass = 8.0"))
    with pytest.raises(kt.InputError, match="is damaged"):
        read_trajectory(path)


def test_a_forged_mechanism_is_noticed(tmp_path):
    """Change the mechanism together with the digest, and read that the hash differs."""
    packed = content.pack(swinging())
    about = json.loads(json.dumps(packed.about).replace("mass = 9.0", "mass = 8.0"))
    about["digest"] = content._digest(about, packed.arrays)
    formats.write_npz(content.Content(about, packed.arrays), tmp_path / "run.npz")
    with pytest.raises(kt.InputError, match=r"the mechanism inside has the hash \w{12}, but the run is of \w{12}; the"):
        read_trajectory(tmp_path / "run.npz")
    about["version"] = 2
    formats.write_npz(content.Content(about, packed.arrays), tmp_path / "run.npz")
    with pytest.raises(kt.InputError, match="has version 2, but this Kinetree reads 1; update Kinetree"):
        read_trajectory(tmp_path / "run.npz")


def test_csv_is_for_people_too(tmp_path):
    """Read names with units, all digits and lines of comments with a plain CSV reader."""
    (tmp_path / "p.toml").write_text(PENDULUM.replace('"hinge"', '"a, \\"b\\" #1"'))
    run = Trajectory(kt.load(tmp_path / "p.toml"), [0.0, 0.1], [[1 / 3], [2.0]], [[0.0], [0.0]], parameters=[0.5])
    path = run.save(tmp_path / "run.csv", columns=["energy"])
    lines = path.read_text().splitlines()
    assert lines[0] == '# format: "kinetree trajectory"'
    assert '# status: "finished"' in lines
    header, first, _ = plain_csv.reader(line for line in lines if not line.startswith("# "))
    assert header == [
        "t [s]", 'q.a, "b" #1 [rad]', 'qd.a, "b" #1 [rad/s]', "energy [J]", "parameters.l [m]",
    ]  # fmt: skip
    assert first == ["0.0", repr(1 / 3), "0.0", repr(float(run["energy"][0])), "0.5"]
    assert same(read_trajectory(path), run)


def test_npz_is_numpys_own_and_never_pickled(tmp_path):
    """Open the file with NumPy, and refuse one with an object inside without running it."""
    path = batch().save(tmp_path / "run.npz", columns=["energy"])
    with np.load(path, allow_pickle=False) as file:
        assert file["q"].shape == (3, 41, 6)
        assert file["energy"].shape == (3, 41)
    np.savez(tmp_path / "bad.npz", about=np.array([{"a": 1}], dtype=object))
    with pytest.raises(
        kt.InputError, match=r"bad\.npz: is damaged or not a trajectory \(ValueError: .*allow_pickle=False"
    ):
        read_trajectory(tmp_path / "bad.npz")


def test_files_that_claim_more_memory_than_they_have_are_refused(tmp_path, monkeypatch):
    """Refuse compressed arrays and descriptions of huge ones before any memory is taken."""
    path = swinging().save(tmp_path / "run.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez_compressed(path, **arrays | {"q": np.zeros((50_000, 6))})
    with pytest.raises(kt.InputError, match=r"run\.npz: its arrays have \d+ bytes, more than the file; Kinetree"):
        read_trajectory(path)
    pytest.importorskip("zarr")
    path = swinging().save(tmp_path / "run.zarr")
    about = json.loads((path / "q" / "zarr.json").read_text())
    (path / "q" / "zarr.json").write_text(json.dumps(about | {"shape": [10**9, 6]}))
    monkeypatch.setattr(content, "memory", lambda: 24 << 30)
    with pytest.raises(kt.InputError, match=r"run\.zarr: its arrays have 48 GB, and this machine can read 8\.59 GB"):
        read_trajectory(path)
    (path / "q" / "zarr.json").write_text(json.dumps(about | {"shape": [10**7, 6]}))
    with pytest.raises(kt.InputError, match=r"run\.zarr: is damaged or not a trajectory \(ValueError: 243903 chunks"):
        read_trajectory(path)


def test_small_files_of_huge_arrays_are_refused(tmp_path, monkeypatch):
    """Refuse arrays that are packed a thousand times, and chunks that are larger than their array."""
    monkeypatch.setattr(content, "PACKED", ((1000, 1000), (2 << 30, 20)))
    pytest.importorskip("zarr")
    still = swinging(torque=np.full((41, 6), 0.3))
    path = still.save(tmp_path / "run.zarr")
    assert same(read_trajectory(path), still)
    about = json.loads((path / "q" / "zarr.json").read_text())
    about["chunk_grid"]["configuration"]["chunk_shape"] = [10**7, 6]
    (path / "q" / "zarr.json").write_text(json.dumps(about))
    with pytest.raises(
        kt.InputError, match=r"run\.zarr: its arrays have 0\.48 GB, more than 1000 times the [\d,]+ bytes"
    ):
        read_trajectory(path)
    parquet = pytest.importorskip("pyarrow.parquet")
    path = still.save(tmp_path / "run.parquet")
    assert same(read_trajectory(path), still)
    monkeypatch.setattr(content, "PACKED", ((1000, 1000), (2000, 0)))
    with pytest.raises(kt.InputError, match=r"run\.parquet: its arrays have .* GB, more than 0 times .* run as \.npz"):
        read_trajectory(path)
    monkeypatch.undo()
    monkeypatch.setattr(content, "memory", lambda: 24 << 30)
    with pytest.raises(
        kt.InputError, match=r"its arrays have 3 GB, more than 20 times the 5,000,000 bytes of the file"
    ):
        content.refuse_large(3 * 10**9, path, 5_000_000)
    content.refuse_large(2 * 10**9, path, 5_000_000)
    table = parquet.read_table(path)
    parquet.write_table(table.slice(0, 40), path)
    with pytest.raises(kt.InputError, match=r"\(ValueError: 40 rows, but 41 are described\)"):
        read_trajectory(path)
    name = table.schema.names[1]
    texts = table.set_column(1, name, table.column(1).cast("string"))
    parquet.write_table(texts.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(
        kt.InputError, match=r"\(ValueError: the columns are not the described ones, of numbers in double"
    ):
        read_trajectory(path)


def test_other_bytes_are_not_recommended_to_be_unpickled(tmp_path):
    """Read a text and an empty file as a run and as a study: the message names the file that belongs there."""
    for found in (b"", b"x = 1\n"):
        (tmp_path / "bad.npz").write_bytes(found)
        with pytest.raises(
            kt.InputError, match=r"bad\.npz: is not an \.npz file, or is incomplete; give a file that a r"
        ):
            read_trajectory(tmp_path / "bad.npz")
        with pytest.raises(
            kt.InputError, match=r"bad\.npz: is not an \.npz file, or is incomplete; give the store of a"
        ):
            kt.read_study(tmp_path / "bad.npz")


def test_altered_tables_are_refused(tmp_path):
    """Refuse a CSV file with more rows or lines of description than it has, and complex numbers."""
    path = swinging().save(tmp_path / "run.csv")
    text = path.read_text()
    path.write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(kt.InputError, match=r"run\.csv: .* \(ValueError: 42 rows, but 41 are described\)"):
        read_trajectory(path)
    path.write_text("".join(f"# k{i}: 1\n" for i in range(1001)) + text)
    with pytest.raises(kt.InputError, match=r"run\.csv: .* \(ValueError: more than 1000 lines before the columns\)"):
        read_trajectory(path)
    path = swinging().save(tmp_path / "run.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"q": arrays["q"] + 0.5j})
    with pytest.raises(kt.InputError, match=r"run\.npz: the column 'q' has the type complex128; runs have plain real"):
        read_trajectory(path)


def test_parquet_is_a_data_frame(tmp_path):
    """Read tidy columns with names and units."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(batch().save(tmp_path / "run.parquet"))
    assert table.column_names[:3] == ["run [1]", "t [s]", "q.joint1 [rad]"]
    assert table.num_rows == 3 * 41


def test_zarr_has_labels_and_units(tmp_path):
    """Open the folder with zarr and read the description of the columns."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(swinging().save(tmp_path / "run.zarr")), mode="r")
    assert group["q"].shape == (41, 6)
    assert group["q"].attrs["units"][2] == "m"
    assert group.attrs["mechanism"]["name"] == "stanford"


def test_a_foreign_folder_is_left_alone(tmp_path):
    """Save over a folder with other content and find it unchanged."""
    pytest.importorskip("zarr")
    (tmp_path / "run.zarr").mkdir()
    (tmp_path / "run.zarr" / "thesis.tex").write_text("precious")
    with pytest.raises(kt.InputError, match=r"run\.zarr: already exists and is not a trajectory; choose another name"):
        swinging().save(tmp_path / "run.zarr")
    assert (tmp_path / "run.zarr" / "thesis.tex").read_text() == "precious"


def test_a_damaged_zarr_is_refused(tmp_path):
    """Remove and overwrite files of a Zarr folder and read that it is damaged."""
    pytest.importorskip("zarr")
    path = swinging().save(tmp_path / "run.zarr")
    chunk = next(file for file in (path / "q").rglob("*") if file.is_file() and file.name != "zarr.json")
    chunk.unlink()  # zarr reads a missing chunk as zeros
    with pytest.raises(kt.InputError, match="the digest of its content is wrong"):
        read_trajectory(path)
    (path / "zarr.json").write_text("{")
    with pytest.raises(kt.InputError, match=r"run\.zarr: is damaged or not a trajectory"):
        read_trajectory(path)
    assert not formats._is_ours(path, sys.modules["zarr"])


@pytest.mark.parametrize(("ending", "package", "what"), [(".parquet", "pyarrow", "Parquet"), (".zarr", "zarr", "Zarr")])
def test_a_missing_package_is_named(ending, package, what, tmp_path, monkeypatch):
    """Hide a package and read how to install it."""
    for name in (package, "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    message = rf"{what} files need the package {package}, which is not installed; pip install 'kinetree\[results\]'"
    with pytest.raises(kt.InputError, match=message):
        swinging().save(tmp_path / f"run{ending}")
    (tmp_path / f"run{ending}").touch()
    with pytest.raises(kt.InputError, match=message):
        read_trajectory(tmp_path / f"run{ending}")


def test_other_files_are_refused(tmp_path):
    """Give files of other formats and read which formats are supported."""
    run = swinging()
    with pytest.raises(
        kt.InputError, match=r"files that end with '.xls' are not trajectories; use \.csv, .* or \.zarr"
    ):
        run.save(tmp_path / "run.xls")
    with pytest.raises(kt.InputError, match="a file without a suffix is not a trajectory; use"):
        read_trajectory(tmp_path / "run")
    with pytest.raises(kt.InputError, match=r"none\.csv: does not exist; give the path of a \.csv"):
        read_trajectory(tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(kt.InputError, match=r"other\.csv: is not a trajectory; give a file that a run's save"):
        read_trajectory(tmp_path / "other.csv")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as file:
        file.writestr("a.txt", "b")
    with pytest.raises(kt.InputError, match=r"other\.npz: is not a trajectory"):
        read_trajectory(tmp_path / "other.npz")
    with pytest.raises(kt.InputError, match=r"cannot be written \(No such file or directory\)"):
        run.save(tmp_path / "no" / "run.csv")
    with pytest.raises(kt.UnknownNameError, match="no column 'heat'"):
        run.save(tmp_path / "run.csv", columns=["heat"])
