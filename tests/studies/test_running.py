"""Studies with stores: resumed after any death, with equal bytes; damaged, foreign and full stores."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import killed_study
import kinetree as kt
from killed_study import contents, settled
from kinetree.studies.statuses import Status
from kinetree.studies.store import PARTIAL, Store
from kinetree.studies.store_creation import prepared

pytest.importorskip("zarr")
SCRIPT = Path(killed_study.__file__)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "whole.zarr"
    return path, killed_study.study(path)


def test_a_store_has_the_results_of_the_study(undisturbed):
    """Read back from a store what the same study returns without one, bit for bit."""
    _, found = undisturbed
    options = {name: x for name, x in killed_study.OPTIONS.items() if name not in ("shard", "keep")}
    plain = kt.study(
        kt.load("press"), {"r": kt.latin(0.03, 0.3), "m_c": kt.uniform(0.0, 9.0), "k": kt.sobol(0.0, 900.0)},
        measures={"rms": "rms control.main_bearing", "pin": "peak qd.crank_pin", "slowest": killed_study.slowest},
        **options,
    )  # fmt: skip
    for name in ("rms", "pin", "slowest"):
        assert np.array_equal(found[name], plain[name], equal_nan=True), name
    assert found.status.tolist() == plain.status.tolist()
    assert 0 < len(found.failed) < 200


def test_xarray_opens_a_store_without_us(undisturbed):
    """Open a store with xarray alone: dimensions, coordinates, units, hashes and statuses."""
    xarray = pytest.importorskip("xarray")
    path, found = undisturbed
    with xarray.open_zarr(path, chunks=None) as data:
        assert dict(data.sizes) == {"run": 400, "time": 21, "coordinate": 3}
        assert set(data.coords) == {"r", "m_c", "k", "time"}
        assert np.array_equal(data["rms"], found["rms"], equal_nan=True)
        assert np.array_equal(data["r"], found["r"])
        assert data["rms"].attrs["units"] == "N m"
        assert data["q"].attrs["labels"] == ["main_bearing", "crank_pin", "guide"]
        assert data.attrs["study_hash"] == found.plan.hash
        good = int(np.flatnonzero(found.finished)[5])
        assert np.array_equal(data["q"][good], found.run(good).q)
        assert np.isnan(data["q"][int(found.failed.runs[0])]).all()


def test_a_resumed_study_computes_missing_shards_only(undisturbed, tmp_path, monkeypatch):
    """Stop after some shards, and go on with the others to a store of equal bytes."""
    path, _ = undisturbed
    written = []
    write = Store.write

    def interrupted(self, k, arrays):
        if len(written) == 7:
            raise KeyboardInterrupt
        written.append(k)
        write(self, k, arrays)

    monkeypatch.setattr(Store, "write", interrupted)
    part = killed_study.study(tmp_path / "part.zarr")
    assert not part.complete
    assert int((part.status == Status.NOT_EVALUATED).sum()) == 400 - 7 * 10
    written.clear()
    monkeypatch.setattr(Store, "write", lambda self, k, arrays: (written.append(k), write(self, k, arrays)))
    assert killed_study.study(tmp_path / "part.zarr").complete
    assert len(written) == 33
    assert contents(tmp_path / "part.zarr") == contents(path)


@pytest.mark.slow
def test_processes_write_equal_bytes(undisturbed, tmp_path):
    """Run a study in two processes, with a function of a test module as a measure."""
    killed_study.study(tmp_path / "two.zarr", workers=2)
    assert contents(tmp_path / "two.zarr") == contents(undisturbed[0])


def killed_until_done(store: Path, way: str, kills: int, rng: random.Random, longest: float) -> int:
    """Start the study again and again, kill it or one of its workers at random moments, and return the kills."""
    done, killed = False, 0
    while not done:
        client = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(store), way], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(x for x in sys.path if x)},
        )  # fmt: skip
        if killed < kills:
            time.sleep(rng.uniform(0.2, longest))
            workers = _children(client.pid)
            victim = rng.choice([client.pid, *workers]) if workers else client.pid
            if client.poll() is None:
                try:
                    os.kill(victim, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
            if victim != client.pid:
                done = client.wait() == 0
        else:
            done = client.wait() == 0
        if client.poll() is None or client.returncode not in (0, -signal.SIGKILL):
            _, err = client.communicate()
            assert client.returncode in (0, -signal.SIGKILL), err.decode()
        client.stdout.close()
        client.stderr.close()
    return killed


def _children(pid: int) -> list[int]:
    try:
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to find workers")
@pytest.mark.parametrize("way", ["1", "2", "8"])
def test_killed_studies_have_equal_bytes(way, undisturbed, tmp_path):
    """Kill clients and workers at random moments, resume, and find the bytes of an undisturbed store."""
    rng = random.Random(int(way))
    kills = int(os.environ.get("KINETREE_KILLS", "4"))
    store = tmp_path / "killed.zarr"
    for _ in range(20):
        kills -= killed_until_done(store, way, kills, rng, 6.0)
        settled(store)
        leftovers = {name for name in contents(store) if name.startswith(PARTIAL)}
        assert not leftovers
        assert contents(store) == contents(undisturbed[0])
        if kills <= 0:
            break
        store = tmp_path / f"killed{kills}.zarr"
    assert kills <= 0


def test_stores_of_other_studies_are_refused(undisturbed, tmp_path, monkeypatch):
    """Name the part of the study that differs: samplings, measures, shard, columns, mechanism; or that it is none."""
    path, _ = undisturbed
    for change, message in (
        ({"seed": 10}, "the samplings, samples or seed differ; give another path"),
        ({"steps": 21}, "the motion or the options of the simulation differ"),
        ({"keep": ["q"]}, "the stored columns differ"),
        ({"shard": 31}, "has shards of 10 runs, and shard is 31; leave shard out"),
        ({"parameters": {"l": 0.26}}, "the motion or the options of the simulation differ"),
    ):
        with pytest.raises(kt.InputError) as caught:
            killed_study.study(path, **change)
        assert message in str(caught.value)
    system = kt.load("press")
    heavier = kt.System(replace(system.mechanism, gravity=(0.0, -9.8, 0.0)))
    monkeypatch.setattr(kt, "load", lambda name: heavier)
    with pytest.raises(kt.InputError, match="is the store of another study: the mechanism differs"):
        killed_study.study(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(kt.InputError, match="exists and is not the store of a study"):
        killed_study.study(tmp_path / "folder")


def test_damaged_metadata_are_named(undisturbed, tmp_path):
    """Name a damaged zarr.json, whose bytes the same study in another folder has; refuse paths that are none."""
    import shutil

    path = tmp_path / "store.zarr"
    shutil.copytree(undisturbed[0], path)
    (path / "zarr.json").write_text('{"attributes": ')
    for call in (killed_study.study, kt.read_study):
        with pytest.raises(kt.InputError) as caught:
            call(path)
        assert str(caught.value).startswith(f"{path / 'zarr.json'}: is damaged (")
        assert str(caught.value).endswith("Start the same study in another folder, and copy its zarr.json to here")
    prepared(undisturbed[1].plan, tmp_path / "other.zarr", killed_study.OPTIONS["shard"])  # a study begins with this
    shutil.copy(tmp_path / "other.zarr" / "zarr.json", path)
    assert contents(path) == contents(undisturbed[0])
    with pytest.raises(kt.InputError, match="store is 3; give the path of a folder, such as 'study.zarr', or None"):
        killed_study.study(3)


def test_damaged_shards_are_named(undisturbed, tmp_path):
    """Find a damaged chunk by its checksum, name its file, and compute it anew once its statuses are removed."""
    import shutil

    store = tmp_path / "bad.zarr"
    shutil.copytree(undisturbed[0], store)
    chunk = store / "rms" / "c" / "3"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 0x40
    chunk.write_bytes(bytes(data))
    with pytest.raises(kt.InputError) as caught:
        killed_study.study(store)
    assert f"{chunk}: shard 3 of the study is damaged" in str(caught.value)
    assert f"remove {store / 'status' / 'c' / '3'}" in str(caught.value)
    (store / "status" / "c" / "3").unlink()
    assert killed_study.study(store).complete
    assert contents(store) == contents(undisturbed[0])


def test_a_full_disk_keeps_what_is_done(undisturbed, tmp_path, monkeypatch):
    """Report a disk without space with the path, and go on when there is some."""
    replace_file, count = os.replace, []

    def full(old, new):
        count.append(new)
        if len(count) == 31:  # in the middle of a shard, after the store itself
            raise OSError(28, "No space left on device")
        replace_file(old, new)

    monkeypatch.setattr(os, "replace", full)
    store = tmp_path / "full.zarr"
    with pytest.raises(kt.InputError, match=r"full.zarr: cannot be written \(No space left on device\)"):
        killed_study.study(store)
    monkeypatch.undo()
    assert killed_study.study(store).complete
    assert contents(store) == contents(undisturbed[0])


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 280 kB, on which the store of `killed_study` has no room."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=280k", "none", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_disk_that_is_really_full(workers, small_disk, undisturbed):
    """Fill a small disk, in this process and in others; go on to equal bytes when it is larger."""
    store = small_disk / "s.zarr"
    with pytest.raises(kt.errors.WriteError, match=r"s.zarr: cannot be written \(No space left on device\)"):
        killed_study.study(store, workers=workers)
    done = len(list((store / "status" / "c").iterdir()))
    assert 0 < done < 40
    found = kt.read_study(store)
    assert found.evaluated == 10 * done
    subprocess.run(["mount", "-o", "remount,size=9M", str(small_disk)], check=True)
    assert killed_study.study(store, workers=workers).complete
    assert contents(store) == contents(undisturbed[0])


@pytest.mark.slow
def test_workers_that_always_die_are_reported(tmp_path):
    """Give up on a shard after three workers died on it, and keep the others."""

    def deadly(run):
        import os
        import signal

        if run.parameters[0, 0] > 8.0:
            os.kill(os.getpid(), signal.SIGKILL)
        return run["control.main_bearing"].max(axis=1)

    pytest.importorskip("cloudpickle")
    options = {"cycle": {"drive": "main_bearing", "speed": 3.0}, "steps": 8, "shard": 1, "workers": 2}
    with pytest.raises(
        kt.InputError, match=r"shard 2 of the study: 3 workers died on it, the last with exit status -9"
    ):
        kt.study(
            kt.load("press"), {"m_c": kt.grid([1.0, 2.0, 9.0])}, measures={"x": deadly}, store=tmp_path / "d.zarr",
            **options,
        )  # fmt: skip
    assert (tmp_path / "d.zarr" / "status" / "c" / "0").exists()


@pytest.mark.slow
def test_errors_of_measures_come_back(tmp_path):
    """Raise the error of a measure in a worker, with its shard."""
    pytest.importorskip("cloudpickle")

    def wrong(run):
        return run["control.nothing"]

    with pytest.raises(kt.InputError, match=r"shard \d of the study: no part of column 'control' 'nothing'"):
        kt.study(
            kt.load("press"), {"m_c": kt.grid([1.0, 2.0])}, measures={"x": wrong}, store=tmp_path / "e.zarr", workers=2,
            cycle={"drive": "main_bearing", "speed": 3.0}, steps=8, shard=1,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2}, "workers needs a store, a folder for the results"),
        ({"keep": "q"}, "keep needs a store"),
        ({"store": "s.zarr", "workers": 2, "on": "tcp://127.0.0.1:1"}, "workers and on: give one of them"),
        ({"store": "s.zarr", "on": 3}, "on is 3; give a Dask client, or the address of a scheduler"),
        ({"store": "s.zarr", "keep": "qq"}, "no column 'qq'"),
        ({"store": "s.zarr", "keep": "poses"}, "keep has 'poses', which has 48 entries per time; name single ones"),
        ({"store": "s.zarr", "workers": 0}, "workers is 0; give 1 or more"),
    ],
)
def test_impossible_ways_are_refused(options, message, tmp_path, monkeypatch):
    """Refuse ways to run that need a store, and that contradict each other."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kt.KinetreeError) as caught:
        kt.study(
            kt.load("press"), {"m_c": kt.grid([1.0])}, cycle={"drive": "main_bearing", "speed": 3.0}, steps=8,
            measures={"x": "rms control.main_bearing"}, **options,
        )  # fmt: skip
    assert message in str(caught.value)
