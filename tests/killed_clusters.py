"""Studies on Dask clusters whose workers and clients are killed at random moments: their stores have equal bytes.

python tests/killed_clusters.py --kills 54 kills that many in all, with 1, 2 and 8 workers, on a LocalCluster and on a
scheduler and workers that were started by their own commands. It prints a line per kill.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import killed_study
from killed_study import contents, settled

HERE = Path(__file__).parent
ENDS = 600.0
"""The longest time of a study that is not disturbed any more [s]."""
SHARDS = killed_study.OPTIONS["samples"] // killed_study.OPTIONS["shard"]
EARLY, START = 0.2, 1.5
"""The part of kills at any moment of the start, and its duration [s]: a client connects and creates the store."""
SHARD = 0.1
"""About the duration of a shard [s]; other kills are within that time of the end of a random shard."""
LOOK = 0.005
"""The time between looks for finished shards [s]."""


def environment() -> dict[str, str]:
    """Return the environment of processes that find the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *(x for x in sys.path if x)])}


@dataclass(frozen=True)
class Cluster:
    """A cluster: the address of its scheduler, its workers, and a function that replaces one that was killed."""

    address: str
    workers: Callable[[], list[int]]
    replace: Callable[[int], None]


@contextmanager
def local_cluster(count: int, folder: Path) -> Iterator[Cluster]:
    """Yield a LocalCluster with separate processes, whose nannies start other workers for those that die."""
    import distributed

    made = distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs="CRITICAL"
    )

    def workers() -> list[int]:
        # a nanny gives up if its worker dies while it starts, so that those that start are left alone
        running = [nanny.process for nanny in made.workers.values()]
        return [x.pid for x in running if x is not None and x.status is distributed.Status.running and alive(x.pid)]

    with made:
        yield Cluster(made.scheduler_address, workers, lambda pid: None)


@contextmanager
def started_cluster(count: int, folder: Path) -> Iterator[Cluster]:
    """Yield a scheduler and workers that were started by the commands of Dask, each on its own."""
    running: list[subprocess.Popen] = []

    def start(*arguments: str) -> subprocess.Popen:
        with open(folder / f"{arguments[0]}.log", "a") as out:
            made = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            running.append(subprocess.Popen(made, stdout=out, stderr=out, env=environment(), cwd=folder))
        return running[-1]

    def start_worker() -> None:
        start("worker", address, "--nthreads", "1", "--no-nanny")

    def replace(pid: int) -> None:
        found = next(process for process in running if process.pid == pid)
        found.wait()
        running.remove(found)
        start_worker()

    try:
        start("scheduler", "--port", "0", "--host", "127.0.0.1")
        address = address_in(folder / "scheduler.log")
        for _ in range(count):
            start_worker()
        yield Cluster(address, lambda: [process.pid for process in running[1:]], replace)
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


CLUSTERS = {"local": local_cluster, "commands": started_cluster}


def alive(pid: int) -> bool:
    """Return whether a process exists and did not end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def address_in(log: Path) -> str:
    """Return the address that a scheduler wrote."""
    for _ in range(600):
        if log.exists() and (found := re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())):
            return found.group(1)
        time.sleep(0.1)
    raise AssertionError(log.read_text())


@dataclass
class Clients:
    """Client processes, one at a time."""

    host: subprocess.Popen = field(
        default_factory=lambda: subprocess.Popen(
            [sys.executable, str(HERE / "killed_clients.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(),
        )
    )  # fmt: skip
    pid: int = 0

    def start(self, store: Path, address: str) -> None:
        """Start a client."""
        self.host.stdin.write(f"{store} {address}\n".encode())  # type: ignore[union-attr]
        self.host.stdin.flush()  # type: ignore[union-attr]
        self.pid = int(self._line(ENDS))

    def ended(self, seconds: float) -> int | None:
        """Return the exit status of the client if it ends within some time."""
        line = self._line(seconds)
        return int(line) if line else None

    def _line(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self.host.stdout], [], [], seconds)
        return self.host.stdout.readline() if ready else b""  # type: ignore[union-attr]

    def end(self) -> str:
        """End the host, and return its messages."""
        self.host.kill()
        return self.host.communicate()[1].decode()


@dataclass
class Round:
    """A study that is disturbed, and each kill: the kind of the victim, and the number of finished shards."""

    cluster: Cluster
    clients: Clients
    store: Path
    rng: random.Random
    killed: list[tuple[str, int]] = field(default_factory=list)

    def run(self, kills: int) -> None:
        """Disturb the study by a number of kills, fewer if it is faster, and go on until it is complete."""
        self.clients.start(self.store, self.cluster.address)
        while len(self.killed) < kills:
            status = self._moment()
            if status is not None:
                assert status == 0, status
                return
            self._kill()
        assert self.clients.ended(ENDS) == 0, "a study that was not disturbed any more did not end"

    def _moment(self) -> int | None:
        """Wait for a random moment, at the start or in a random shard; return the status of a client that ended."""
        if self.rng.random() < EARLY:
            return self.clients.ended(self.rng.uniform(0.0, START))
        least = self.rng.randrange(self._finished(), SHARDS + 1)
        until = time.monotonic() + ENDS
        while (status := self.clients.ended(LOOK)) is None and self._finished() < least:
            assert time.monotonic() < until, f"{self._finished()} of {SHARDS} shards after {ENDS:g} s: {self.killed}"
        return self.clients.ended(self.rng.uniform(0.0, SHARD)) if status is None else status

    def _finished(self) -> int:
        shards = self.store / "status" / "c"
        return len(list(shards.iterdir())) if shards.exists() else 0

    def _kill(self) -> None:
        workers = self.cluster.workers()
        kind = "worker" if workers and self.rng.random() < 0.6 else "client"
        victim = self.rng.choice(workers) if kind == "worker" else self.clients.pid
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:  # it just ended
            return
        self.killed.append((kind, self._finished()))
        if kind == "worker":
            self.cluster.replace(victim)
        else:
            assert self.clients.ended(ENDS) in (-signal.SIGKILL, 0)
            self.clients.start(self.store, self.cluster.address)


def disturbed(kind: str, workers: int, kills: int, folder: Path, whole: dict[str, bytes], *, seed: int) -> list:
    """Kill workers and clients of studies on a cluster; return victims and finished shards of all kills.

    Every study has one to three kills. Its store must have the bytes of a whole one.
    """
    rng, found, count = random.Random(seed), [], 0
    with CLUSTERS[kind](workers, folder) as cluster:
        clients = Clients()
        try:
            while len(found) < kills:
                one = Round(cluster, clients, folder / f"killed{count}.zarr", rng)
                one.run(min(rng.randint(1, 3), kills - len(found)))
                settled(one.store)
                assert contents(one.store) == whole, f"{one.store} differs after {one.killed}"
                found, count = found + one.killed, count + 1
        except BaseException:
            print(clients.end(), file=sys.stderr)
            raise
        clients.end()
    return found


def main() -> None:
    """Kill, and print the victims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=54, help="the number of kills in all")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--clusters", nargs="+", choices=list(CLUSTERS), default=list(CLUSTERS))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    ways = [(kind, count) for kind in given.clusters for count in given.workers]
    with tempfile.TemporaryDirectory() as folder:
        killed_study.study(Path(folder) / "whole.zarr")
        whole, all_kills = contents(Path(folder) / "whole.zarr"), 0
        for k, (kind, count) in enumerate(ways):
            own = Path(folder) / f"{kind}{count}"
            own.mkdir()
            kills = given.kills * (k + 1) // len(ways) - given.kills * k // len(ways)
            began = time.monotonic()
            found = disturbed(kind, count, kills, own, whole, seed=given.seed + k)
            all_kills += len(found)
            places, took = ", ".join(str(n) for _, n in found), time.monotonic() - began
            victims = ", ".join(f"{n} {name}s" for name, n in sorted(Counter(x for x, _ in found).items()))
            print(
                f"{kind}, {count} workers: {len(found)} kills ({victims}) after "
                f"{places} of {SHARDS} shards: equal bytes, {took:.0f} s",
                flush=True,
            )
    print(f"{all_kills} kills, all stores with the bytes of an undisturbed one")


if __name__ == "__main__":
    main()
