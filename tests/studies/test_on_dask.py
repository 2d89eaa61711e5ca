"""Studies on Dask: clusters in this process, in others, and by their own commands; killed, interrupted, unreachable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import killed_clusters
import killed_study
import kinetree as kt
from killed_study import contents, settled
from kinetree._support import VERSION
from kinetree.studies import running, shards
from kinetree.studies.store import Store

pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]  # those of Dask and its packages


@pytest.fixture(scope="module")
def client():
    """A cluster of two workers in threads of this process: it starts in a tenth of a second."""
    options = {"processes": False, "dashboard_address": ":0"}
    with distributed.Client(n_workers=2, threads_per_worker=1, silence_logs="CRITICAL", **options) as made:
        yield made


def small(store: Path, **options) -> kt.Study:
    """Run a small study of 8 shards."""
    measures = {"peak": "peak control.main_bearing", **options.pop("measures", {})}
    return kt.study(
        kt.load("press"), {"m_c": kt.uniform(0.0, 9.0), "k": kt.sobol(0.0, 900.0)}, samples=39, seed=4, shard=5,
        cycle={"drive": "main_bearing", "speed": 3.0}, steps=8, keep="q", store=store, progress=False,
        measures=measures, **options,
    )  # fmt: skip


def test_a_cluster_writes_equal_bytes(client, tmp_path):
    """Find the bytes of a study without Dask, and nothing left on the cluster."""
    here, there = small(tmp_path / "here.zarr"), small(tmp_path / "there.zarr", on=client)
    assert np.array_equal(here["peak"], there["peak"])
    assert contents(tmp_path / "there.zarr") == contents(tmp_path / "here.zarr")
    for _ in range(50):
        if not (left := client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))):
            break
        time.sleep(0.1)
    assert not left


def test_interrupts_keep_what_is_done(client, tmp_path, monkeypatch):
    """Return the finished shards after Ctrl-C, and go on with the others to equal bytes."""

    @contextmanager
    def impatient(progress, total):
        def show(done):
            if done > 12:
                raise KeyboardInterrupt

        yield show

    monkeypatch.setattr(running, "show_runs", impatient)
    with pytest.raises(KeyboardInterrupt) as stop:
        small(tmp_path / "part.zarr", on=client)
    part = stop.value.study
    monkeypatch.undo()
    assert 12 < part.evaluated
    again = small(tmp_path / "part.zarr", on=client)
    assert again.complete
    good = part.finished
    assert np.array_equal(part["peak"][good], again["peak"][good])
    small(tmp_path / "here.zarr")
    settled(tmp_path / "part.zarr")
    assert contents(tmp_path / "part.zarr") == contents(tmp_path / "here.zarr")


def test_errors_of_workers_come_back(client, tmp_path):
    """Raise the error of a measure with its shard; finished shards stay."""

    def wrong(run):
        if run.parameters is not None and (run.parameters[:, 0] > 8.0).any():
            raise ValueError("too heavy")
        return run["control.main_bearing"].max(axis=1)

    with pytest.raises(kt.InputError, match=r"shard \d of the study failed on Dask: .*too heavy"):
        small(tmp_path / "e.zarr", on=client, measures={"x": wrong})


def test_a_full_disk_is_an_error_of_writing(client, tmp_path, monkeypatch):
    """Report a disk without space as such, keep what is done, and go on when there is some."""
    write = Store.write

    def full(self, k, arrays):
        if k == 6:
            raise kt.errors.unwritable(self.path, OSError(28, "No space left on device"))
        write(self, k, arrays)

    monkeypatch.setattr(Store, "write", full)
    message = r"shard 6 of the study failed on Dask: .*full.zarr: cannot be written \(No space left on device\)"
    with pytest.raises(kt.errors.WriteError, match=message):
        small(tmp_path / "full.zarr", on=client)
    monkeypatch.undo()
    assert small(tmp_path / "full.zarr", on=client).complete


def test_workers_without_the_folder_are_named(client, tmp_path, monkeypatch):
    """Refuse to write to a machine that has no such store, or another version; miss files that did not arrive."""
    given = {"blob": b"", "path": str(tmp_path / "none.zarr"), "runs": 10, "shard": 5, "token": "x"}
    with pytest.raises(kt.InputError, match=r"none.zarr: is not on .*; give a path on a file system that all workers"):
        shards.remote_shard(0, **given, version=VERSION)
    assert not (tmp_path / "none.zarr").exists()
    with pytest.raises(kt.InputError, match=rf"has version {VERSION} of Kinetree, and the study was planned by 0.0.0"):
        shards.remote_shard(0, **given, version="0.0.0")
    monkeypatch.setattr(running, "remote_shard", elsewhere)
    monkeypatch.setattr(running, "ARRIVAL", 0.0)
    with pytest.raises(kt.InputError, match=r"8 shards that workers of Dask wrote are not here, such as shard 0"):
        small(tmp_path / "s.zarr", on=client)


def elsewhere(k, **given):
    return k


def test_an_unreachable_scheduler_is_named(tmp_path, monkeypatch):
    """Name the address that does not answer, before anything is written."""
    monkeypatch.setattr(running, "TIMEOUT", 0.3)
    with pytest.raises(kt.InputError, match=r"the Dask scheduler at 'tcp://127.0.0.1:9' cannot be reached"):
        small(tmp_path / "s.zarr", on="tcp://127.0.0.1:9")
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks clients")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", list(killed_clusters.CLUSTERS))
def test_killed_workers_and_clients_leave_equal_bytes(kind, workers, tmp_path):
    """Kill workers and clients of a LocalCluster, and of a scheduler and workers by their own commands."""
    killed_study.study(tmp_path / "whole.zarr")
    kills = int(os.environ.get("KINETREE_KILLS", "3"))
    found = killed_clusters.disturbed(kind, workers, kills, tmp_path, contents(tmp_path / "whole.zarr"), seed=workers)
    assert len(found) == kills


def test_marks_count_dead_workers(tmp_path):
    """Refuse a shard on which three workers of the same call died; other shards and calls do not count."""
    small(tmp_path / "s.zarr")
    store = Store(tmp_path / "s.zarr", 39, 5)
    given = {"blob": b"", "path": str(store.path), "runs": 39, "shard": 5, "version": VERSION}
    for k, token in ((2, "a"), (2, "a"), (12, "a"), (2, "b"), (2, "a")):
        (store.path / ".partial" / f"{k}.{token}.77.{os.urandom(4).hex()}").mkdir(parents=True)
    assert store.marked("a") == [2, 2, 2, 12]
    with pytest.raises(kt.InputError, match=r"^3 workers died on it; they may lack memory: give a smaller shard"):
        shards.remote_shard(2, token="a", **given)
    with store.attempt(12, "a") as before:
        assert before == 1
    assert store.marked("a") == [2, 2, 2, 12]
    assert small(tmp_path / "s.zarr").complete
    assert not (store.path / ".partial").exists()


def test_a_cluster_without_workers_is_reported(tmp_path, monkeypatch):
    """Warn that a study waits for workers, and go on when there is one."""
    messages = []
    options = {"n_workers": 0, "processes": False, "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:

        def warn(message, **more):
            messages.append(message)
            cluster.scale(1)

        monkeypatch.setattr(running, "PATIENCE", 0.05)
        monkeypatch.setattr(running, "warnings", SimpleNamespace(**{**vars(warnings), "warn": warn}))
        assert small(tmp_path / "s.zarr", on=client).complete
    assert messages == ["the Dask cluster has no workers; the study waits for some"]


def deadly(run):
    """Kill the worker that has the third shard."""
    if run.parameters[0, 0] > 8.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return run["control.main_bearing"].max(axis=1)


@pytest.mark.slow
def test_a_shard_that_kills_workers_is_named(tmp_path, monkeypatch):
    """Name the shard on which every worker dies, and not another one that waited there."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(x for x in sys.path if x))
    options = {"n_workers": 5, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with (
        distributed.Client(processes=True, **options) as client,
        pytest.raises(kt.InputError, match=r"shard 2 of the study failed on Dask: 3 workers died on it; they may lack"),
    ):
        kt.study(
            kt.load("press"), {"m_c": kt.grid([1.0, 2.0, 9.0, 3.0])}, measures={"x": deadly}, store=tmp_path / "d.zarr",
            on=client, cycle={"drive": "main_bearing", "speed": 3.0}, steps=8, shard=1,
        )  # fmt: skip


@pytest.mark.slow
def test_ctrl_c_ends_a_client(tmp_path):
    """Send Ctrl-C to a client process: it prints what is done, and the next one completes the store."""
    killed_study.study(tmp_path / "whole.zarr")
    with killed_clusters.started_cluster(1, tmp_path) as cluster:
        store = tmp_path / "there.zarr"
        script = [sys.executable, killed_study.__file__, str(store), cluster.address]
        for interrupted in (True, False):
            client = subprocess.Popen(
                script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=killed_clusters.environment(),
                start_new_session=True,
            )  # fmt: skip
            while interrupted and client.poll() is None and not list((store / "status").glob("c/*")):
                time.sleep(0.01)
            if interrupted:
                client.send_signal(signal.SIGINT)
            out, err = client.communicate(timeout=120)
            assert client.returncode == (-signal.SIGINT if interrupted else 0), err.decode()
            assert ("not evaluated" in out.decode()) is interrupted
        settled(store)
        assert contents(store) == contents(tmp_path / "whole.zarr")
