"""Studies with stores: resumed after any death, with equal bytes; damaged, foreign and full stores."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import everyday
import killed_study
import kinetree as kt
from killed_study import contents, settled
from kinetree.simulation.outcomes import Outcome
from kinetree.studies.store import PARTIAL, Store, prepare_store

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
    with pytest.raises(
        KeyboardInterrupt, match="the study was interrupted after 70 of 400 runs; they are `study` of"
    ) as stop:
        killed_study.study(tmp_path / "part.zarr")
    part = stop.value.study
    assert not part.complete
    assert int((part.status == Outcome.NOT_EVALUATED).sum()) == 400 - 7 * 10
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
    """Return the workers of a client; /proc lists them by the threads that started them."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread ended meanwhile
            found += [int(x) for x in task.read_text().split()]
    return found


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
    path = tmp_path / "store.zarr"
    shutil.copytree(undisturbed[0], path)
    (path / "zarr.json").write_text('{"attributes": ')
    for call in (killed_study.study, kt.read_study):
        with pytest.raises(kt.InputError) as caught:
            call(path)
        assert str(caught.value).startswith(f"{path / 'zarr.json'}: is damaged (")
        assert str(caught.value).endswith("Start the same study in another folder, and copy its zarr.json to here")
    prepare_store(
        undisturbed[1].plan, tmp_path / "other.zarr", killed_study.OPTIONS["shard"]
    )  # a study begins with this
    shutil.copy(tmp_path / "other.zarr" / "zarr.json", path)
    assert contents(path) == contents(undisturbed[0])
    with pytest.raises(kt.InputError, match="store is 3; give the path of a folder, such as 'study.zarr', or None"):
        killed_study.study(3)


def test_damaged_shards_are_named(undisturbed, tmp_path):
    """Find a damaged chunk by its checksum, name its file, and compute it anew once it is removed."""
    store = tmp_path / "bad.zarr"
    shutil.copytree(undisturbed[0], store)
    chunk = store / "rms" / "c" / "3"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 0x40
    chunk.write_bytes(bytes(data))
    with pytest.raises(kt.InputError) as caught:
        killed_study.study(store)
    assert f"{chunk}: shard 3 of the study is damaged" in str(caught.value)
    assert "remove this file and call the study again" in str(caught.value)
    chunk.unlink()
    assert killed_study.study(store).complete
    assert contents(store) == contents(undisturbed[0])


@pytest.mark.parametrize("chunk", ["rms/c/3", "failed_at/c/3", "k/c/3", "q/c/3/0/0", "control.main_bearing/c/3/0"])
def test_a_shard_that_lost_a_chunk_is_computed_again(chunk, undisturbed, tmp_path, monkeypatch):
    """Lose one chunk of any array: its runs are not evaluated, rather than NaN, and the same call computes them."""
    path, whole = undisturbed
    store = tmp_path / "lost.zarr"
    shutil.copytree(path, store)
    (store / chunk).unlink()
    found = kt.read_study(store)
    assert not found.complete and found.evaluated == 390 and "10 not evaluated" in repr(found)
    assert (found.status[30:40] == Outcome.NOT_EVALUATED).all()
    assert len(found.failed) == int((whole.status[np.r_[:30, 40:400]] != Outcome.FINISHED).sum())
    with pytest.raises(kt.InputError, match=r"is missing; call the study again, which computes this shard anew"):
        Store(store, 400, 10).part(chunk.split("/")[0], 3)
    written, write = [], Store.write
    monkeypatch.setattr(Store, "write", lambda self, k, arrays: (written.append(k), write(self, k, arrays)))
    again = killed_study.study(store)
    assert again.complete and written == [3]
    assert np.array_equal(again["rms"], whole["rms"], equal_nan=True)
    assert contents(store) == contents(path)


GAIN = 2.0


def helper(x):
    return GAIN * x


def first(run, by=1.0):
    return by * helper(run["control.main_bearing"][:, 0])


class Weighted:
    def __init__(self, weight):
        self.weight = weight

    def measure(self, run):
        return self.weight * run["control.main_bearing"][:, 0]

    def __call__(self, run):
        return self.measure(run)


SMALL = {"cycle": {"drive": "main_bearing", "speed": 3.0}, "steps": 8}


def small(path, measure, **options):
    over = {"m_c": kt.grid([1.0, 2.0])}
    return kt.study(kt.load("press"), over, measures={"x": measure}, store=path, progress=False, **SMALL | options)


@everyday.long
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (partial(first, by=2.0), partial(first, by=3.0)), (Weighted(2.0).measure, Weighted(3.0).measure),
        (Weighted(2.0), Weighted(3.0)), (lambda run: first(run), lambda run: first(run, 2.0)),
    ],
)  # fmt: skip
def test_measures_with_other_data_belong_to_another_study(one, other, tmp_path):
    """Refuse a partial, a bound method or an object with other data; the same ones find their numbers in the store."""
    found = small(tmp_path / "s.zarr", one)
    assert np.array_equal(small(tmp_path / "s.zarr", one)["x"], found["x"])
    with pytest.raises(
        kt.InputError, match="another study: the measures differ, or a function or number that they read"
    ):
        small(tmp_path / "s.zarr", other)


@pytest.mark.parametrize("name", ["GAIN", "helper"])
def test_what_measures_read_belongs_to_a_study(name, tmp_path, monkeypatch):
    """Change a global or a helper that a measure reads: the store does not return the old numbers."""
    path = tmp_path / "s.zarr"
    old = small(path, first)["x"]
    monkeypatch.setitem(globals(), name, 3.0 if name == "GAIN" else lambda x: 3.0 * x)
    with pytest.raises(
        kt.InputError, match="another study: the measures differ, or a function or number that they read"
    ):
        small(path, first)
    assert np.allclose(small(tmp_path / "new.zarr", first)["x"], 1.5 * old)


def test_what_a_control_reads_belongs_to_a_study(tmp_path, monkeypatch):
    """Change a global that a control reads, in a simulated study: the store does not return the old numbers."""
    control = kt.TorqueFunction(lambda t, q, qd: [-GAIN * qd[0], 0.1])

    def swings(path):
        return kt.study(
            kt.load("planar_2r"), {"q.joint1": kt.grid([0.3, 0.7])}, measures={"x": "at_end q.joint1"}, store=path,
            simulate={"duration": 0.3, "control": control}, progress=False,
        )  # fmt: skip

    old = swings(tmp_path / "s.zarr")["x"]
    monkeypatch.setitem(globals(), "GAIN", 9.0)
    with pytest.raises(
        kt.InputError, match="the motion or the options of the simulation differ, or a function or number"
    ):
        swings(tmp_path / "s.zarr")
    assert not np.allclose(swings(tmp_path / "new.zarr")["x"], old, rtol=1e-3)


def test_what_has_no_content_is_refused_for_a_store(tmp_path):
    """Refuse a measure that writes to an open file before anything is written; without a store it is evaluated."""
    with open(tmp_path / "log", "w") as log:

        def logged(run):
            log.write("x")
            return run["control.main_bearing"][:, 0]

        message = (
            "measures, 'x', the variable log of logged: is <_io.TextIOWrapper .*, whose content cannot be compared"
        )
        with pytest.raises(kt.InputError, match=message):
            small(tmp_path / "s.zarr", logged)
        assert not (tmp_path / "s.zarr").exists()
        found = small(None, logged)
        assert found.complete and found.plan.hash is None and found.save(tmp_path / "s.npz")


@everyday.long
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
