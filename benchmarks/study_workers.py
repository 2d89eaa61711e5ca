"""Studies in one process, in two, and on a Dask cluster of two workers: what the way to run them costs."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kinetree as kt
from bare_runs import Bare
from book import Section
from kinetree.studies import running
from measure import Disagreement, Figure, NotMeasured, all_cores
from report import Table
from robot_files import ROBOTS
from shard_clock import FILE, clocked

WORKERS = 2
SHARDS = 40
SECONDS = 1.0
"""The work of a shard on one core [s]."""
MOST = 1.05
"""The largest ratio of the time on Dask to that in processes."""
LEAST = 1.8
"""The least ratio of the time in one process to that in two."""
CALM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.memory.monitor-interval": "1s",
}
"""Settings of Dask under which it watches itself less often, as docs/many-machines.md recommends them."""
CLUSTERS: dict[str, dict[str, Any]] = {"Dask": {}, "calm Dask": CALM}
"""Settings of clusters by name."""
STUDIES = ("first study", "next study")
"""Studies on one cluster, in their order."""
ONE, TWO = "one process", "two processes"


@dataclass(frozen=True)
class Cost:
    """The duration of a study, and the processor time of all its processes and of its shards alone [s]."""

    wall: float
    cpu: float
    shards: float


@dataclass(frozen=True)
class Ratio:
    """The cost of a study, and those in two processes just before and after it: the machine's speed drifts."""

    cost: Cost
    before: Cost
    after: Cost

    @property
    def wall(self) -> float:
        """The ratio of durations."""
        return 2.0 * self.cost.wall / (self.before.wall + self.after.wall)

    @property
    def even(self) -> float:
        """The ratio of durations per processor time of the shards: that on a machine of even speed."""
        paces = [x.wall / x.shards for x in (self.cost, self.before, self.after)]
        return 2.0 * paces[0] / (paces[1] + paces[2])


def section(quick: bool) -> Section:
    """Return the costs of a study by the way to run it."""
    try:
        import distributed  # noqa: F401
        import zarr  # noqa: F401
    except ImportError as error:
        raise NotMeasured(f"{error.name} is not installed") from None
    count = SHARDS // 4 if quick else SHARDS
    with all_cores(), tempfile.TemporaryDirectory() as folder, Bare() as bare:
        study = Study(Path(folder), _shard(), count)
        found: dict[str, list[Ratio]] = {}
        alone: list[float] = []
        after = None
        for _ in range(1 if quick else 3):
            alone.append(bare.ratio())
            one, before = study.here(workers=1), study.here(workers=WORKERS)
            found.setdefault(ONE, []).append(Ratio(one, after or before, before))
            for cluster, settings in CLUSTERS.items():
                costs = study.on_cluster(settings)
                after = study.here(workers=WORKERS)
                for name, cost in zip(STUDIES, costs, strict=True):
                    found.setdefault(f"{cluster}, {name}", []).append(Ratio(cost, before, after))
                before = after
    return _section(found, study, Figure.of(alone))


def _section(found: dict[str, list[Ratio]], study: Study, alone: Figure) -> Section:
    twos = {x: None for ratios in found.values() for ratio in ratios for x in (ratio.before, ratio.after)}
    plain = {name: Figure.of([x.wall for x in ratios]) for name, ratios in found.items()}
    even = {name: Figure.of([x.even for x in ratios]) for name, ratios in found.items() if name != ONE}
    rows = [
        (name, *_figures([x.cost for x in ratios]), plain[name].text(), *_verdict(name, plain[name], even.get(name)))
        for name, ratios in found.items()
    ]
    rows.insert(1, (TWO, *_figures(list(twos)), "1", "1", ""))
    note = (
        f"{study.runs:,} runs of 1 s of a UR5 from random states, 100 Runge-Kutta steps each, q at 11 times in a Zarr "
        f"store, in {study.count} shards of some {SECONDS:g} s. Ratios are to the mean of two processes before and "
        "after. At even speed: of times per processor time of the shards, which is the same work; the speed of a "
        "shared machine changes from study to study. Processes are started by each study; workers of Dask before the "
        "first one, which still loads Kinetree and its compiled code in them. Workers, scheduler and client share two "
        "cores. A calm Dask samples no stacks, and looks at its event loops and its memory less often: "
        "docs/many-machines.md has its settings. `cpu` is the processor time of all processes. All stores have equal "
        "bytes. Two processes that simulate such runs without a study, and are started before, were "
        f"{alone.text()} times as fast as one in the same minutes: what the machine itself gives."
    )
    columns = ("way", "time [s]", "cpu [s]", "shards [s]", "time to two processes", "at even speed", "target")
    costs = ", ".join(f"{100 * (x.median - 1):+.1f} % ({name})" for name, x in even.items())
    headline = (
        f"Two processes are {plain[ONE].median:.3g} times as fast as one, and {alone.median:.3g} times without a "
        f"study. At shards of a second, Dask changes their time by {costs}."
    )
    return Section("Studies on workers", headline, (Table("One study, six ways", columns, tuple(rows), note),))


def _figures(costs: list[Cost]) -> tuple[str, ...]:
    """Return durations, processor times, and those of shards."""
    return tuple(Figure.of(list(x)).text() for x in zip(*((c.wall, c.cpu, c.shards) for c in costs), strict=True))


def _verdict(name: str, plain: Figure, even: Figure | None) -> tuple[str, str]:
    """Return the ratio at even speed, the bound of a ratio of times to that in two processes, and whether it is met."""
    if even is None:  # one process has no neighbor, which takes memory's time from the shards of two
        return "", f"> {LEAST:g}: {'met' if plain.median > LEAST else 'missed'}"
    return even.text(), f"< {MOST:g}: {'met' if even.median < MOST else 'missed'}"


class Study:
    """A study of falling arms that is run again and again, with a new store each time."""

    def __init__(self, folder: Path, shard: int, count: int) -> None:
        """Take the folder for stores, and the number of runs in a shard and of shards."""
        self.folder, self.shard, self.count = folder, shard, count
        self._bytes: dict[str, bytes] = {}
        self._clock = folder / "clock.txt"
        os.environ[FILE] = str(self._clock)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each worker would translate all modules again
        clocked()
        running.START = f"import shard_clock; shard_clock.clocked(); {running.START}"

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.shard * self.count

    def here(self, *, workers: int) -> Cost:
        """Return the cost of the study in processes that it starts."""

        def used() -> float:
            spent = resource.getrusage(resource.RUSAGE_CHILDREN)
            return time.process_time() + spent.ru_utime + spent.ru_stime

        return self._cost(used, workers=workers)

    def on_cluster(self, settings: dict[str, Any]) -> list[Cost]:
        """Return the costs of `STUDIES` on a new cluster whose scheduler is in this process."""
        import dask
        from distributed import Client, LocalCluster

        with (
            dask.config.set(settings),
            LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            client.run(clocked)
            return [self._there(client) for _ in STUDIES]

    def _there(self, client: Any) -> Cost:
        return self._cost(lambda: time.process_time() + sum(client.run(time.process_time).values()), on=client)

    def _cost(self, used: Callable[[], float], **way: Any) -> Cost:
        store = self.folder / "study.zarr"
        arm, over, options = arms(self.runs)
        self._clock.write_text("")
        before, began = used(), time.perf_counter()
        kt.study(arm, over, store=store, shard=self.shard, **options, **way)
        wall, cpu = time.perf_counter() - began, used() - before
        found = Cost(wall, cpu, sum(map(float, self._clock.read_text().split())))
        files = {str(x.relative_to(store)): x.read_bytes() for x in store.rglob("*") if x.is_file()}
        if self._bytes and files != self._bytes:
            raise Disagreement(f"the store of a study with {way} differs from the first one")
        self._bytes = files
        shutil.rmtree(store)
        return found


def arms(runs: int) -> tuple[kt.System, dict[str, Any], dict[str, Any]]:
    """Return an arm, what varies, and the options of a study of its falls."""
    arm = kt.load(ROBOTS[0].path)
    over = {f"q.{joint.name}": kt.uniform(-3.0, 3.0) for joint in arm.joints}
    over |= {f"qd.{joint.name}": kt.normal(0.0, 1.0) for joint in arm.joints}
    options = {
        "samples": runs, "seed": 5, "keep": ["q"], "progress": False,
        "simulate": {"times": np.linspace(0.0, 1.0, 11), "method": "rk4", "dt": 1e-2},
        "measures": {"fastest": kt.peak(f"qd.{arm.joints[0].name}")},
    }  # fmt: skip
    return arm, over, options


def _shard() -> int:
    """Return the number of runs that take a core `SECONDS`; functions are compiled by the way."""
    spent = {}
    for runs in (64, 80_000, 20_000, 80_000):  # the first large one takes new memory
        arm, over, options = arms(runs)
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            kt.study(arm, over, store=Path(folder) / "s.zarr", shard=runs, **options)
        spent[runs] = time.process_time() - began
    return round(60_000 / (spent[80_000] - spent[20_000]) * SECONDS / 1000) * 1000  # without the start of a study
