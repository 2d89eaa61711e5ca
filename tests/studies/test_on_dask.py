"""Studies on Dask: a cluster of separate processes, one started by its own commands, and an unreachable scheduler."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import killed_study
import kinetree as kt

pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]  # those of Dask and its packages


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def started(*arguments: str, log: Path) -> subprocess.Popen:
    paths = os.pathsep.join(x for x in sys.path if x)
    with open(log, "w") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]], stdout=out, stderr=out,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip


def address_in(log: Path) -> str:
    for _ in range(300):
        found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
        if found:
            return found.group(1)
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_an_unreachable_scheduler_is_named(monkeypatch):
    """Name the address that does not answer, before anything is written."""
    from kinetree.studies import on_dask

    monkeypatch.setattr(on_dask, "TIMEOUT", 0.3)
    with pytest.raises(kt.InputError, match=r"the Dask scheduler at 'tcp://127.0.0.1:9' cannot be reached"):
        on_dask.connected("tcp://127.0.0.1:9")


@pytest.mark.slow
def test_a_cluster_writes_equal_bytes(tmp_path):
    """Run a study on two processes of a LocalCluster, and find the bytes of a study without it."""
    killed_study.study(tmp_path / "here.zarr")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed_study.study(tmp_path / "there.zarr", on=client)
    assert contents(tmp_path / "there.zarr") == contents(tmp_path / "here.zarr")


@pytest.mark.slow
def test_killed_workers_and_clients_leave_equal_bytes(tmp_path):
    """Start a scheduler and workers by their own commands, kill workers and clients, and find equal bytes."""
    rng, kills = random.Random(5), int(os.environ.get("KINETREE_KILLS", "4"))
    killed_study.study(tmp_path / "here.zarr")
    log = tmp_path / "scheduler.log"
    scheduler = started("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", log=log)
    address = address_in(log)

    def worker(n: int) -> subprocess.Popen:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        return started("dask_worker", address, *options, log=tmp_path / f"w{n}.log")

    workers = [worker(0), worker(1)]
    store, n = tmp_path / "there.zarr", 2
    script = [sys.executable, killed_study.__file__, str(store), address]
    try:
        done = False
        while not done:
            client = subprocess.Popen(
                script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(x for x in sys.path if x)},
            )  # fmt: skip
            if kills:
                kills -= 1
                time.sleep(rng.uniform(0.5, 8.0))
                if rng.random() < 0.5:
                    client.send_signal(signal.SIGKILL)
                else:
                    k = rng.randrange(2)
                    workers[k].kill()
                    workers[k].wait()
                    workers[k], n = worker(n), n + 1
            done = client.wait() == 0 and not kills
        assert contents(store) == contents(tmp_path / "here.zarr")
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
