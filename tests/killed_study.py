"""A study for tests that kill it: called as a script with a store, the way to run it, and an address of Dask."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import kinetree as kt
from kinetree.studies.store import PARTIAL

OPTIONS = {
    "samples": 400,
    "seed": 9,
    "motion": {"main_bearing": kt.Cycloid(0.3, 1.3, 0.5)},
    "duration": 0.5,
    "steps": 20,
    "shard": 10,
    "keep": ["q", "control.main_bearing"],
}


def slowest(run):
    """Return the smallest speed of the ram."""
    return abs(run["qd.guide"]).min(axis=1)


def study(store: Path, **options) -> kt.Study:
    """Run the study; some designs fail."""
    return kt.study(
        kt.load("press"),
        {"r": kt.latin(0.03, 0.3), "m_c": kt.uniform(0.0, 9.0), "k": kt.sobol(0.0, 900.0)},
        measures={"rms": kt.rms("control.main_bearing"), "pin": "peak qd.crank_pin", "slowest": slowest},
        store=store,
        progress=False,
        **OPTIONS | options,
    )


def contents(path: Path) -> dict[str, bytes]:
    """Return all files of a folder by their relative names."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def settled(store: Path) -> None:
    """Wait until workers without a client have ended their shard."""
    for _ in range(300):
        if not (store / PARTIAL).exists():
            return
        time.sleep(0.1)


if __name__ == "__main__":
    way = sys.argv[2]
    options = {"workers": int(way)} if way.isdigit() else {"on": way}
    try:
        print(study(Path(sys.argv[1]), **options), flush=True)
    except KeyboardInterrupt as error:
        print(error.study, flush=True)
        raise
