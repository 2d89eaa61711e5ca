"""The task of a worker: evaluate one shard of a study and write it to its store."""

from __future__ import annotations

import ctypes
import pickle
import sys
from functools import cache, lru_cache
from pathlib import Path
from socket import gethostname

import numpy as np

from .._support import VERSION
from ..errors import InputError
from .evaluating import Block, evaluate
from .plan import Plan
from .store import STATUS, Store, package

# --- The memory of worker processes: what a shard used is kept for the next one ---

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt: unused memory that goes back to the system, and arrays that have memory of their own."""

KEPT = 1 << 30
"""Their new value [bytes], above the memory of a shard."""


@cache
def keep_memory() -> None:
    """Let the C library keep the memory of a shard for the next one.

    Otherwise each large array is new memory, which the system clears page by page: up to a fifth of the time of a shard
    in a virtual machine. Only glibc, on Linux, has these options.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            library.mallopt(option, KEPT)


ATTEMPTS = 3
"""The number of workers that may die on one shard: more would not help, since the shard is the cause."""

WORDS = "workers died on it; they may lack memory: give a smaller shard, or fewer workers per machine"
"""The end of a message on such a shard."""


def dump_plan(plan: Plan) -> bytes:
    """Return a plan for other processes; functions of scripts and notebooks need cloudpickle, a part of Dask."""
    try:
        import cloudpickle as pickler  # type: ignore[import-not-found]
    except ImportError:
        pickler = pickle
    try:
        return pickler.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"the study cannot be sent to other processes ({error}); put its functions into a module, or install "
            "cloudpickle: pip install 'kinetree[studies]'"
        ) from None


@lru_cache(maxsize=2)
def load_plan(blob: bytes) -> Plan:
    """Return a plan that `dump_plan` returned; a worker compiles its functions once."""
    return pickle.loads(blob)


def write_shard(plan: Plan, store: Store, k: int) -> int:
    """Evaluate a shard and write it; return its number."""
    start, stop = store.span(k)
    store.write(k, _arrays(plan, evaluate(plan, start, stop), start, stop))
    return k


def _arrays(plan: Plan, block: Block, start: int, stop: int) -> dict[str, np.ndarray]:
    """Return all arrays of a shard by name: quantities, measures, stored columns, and statuses."""
    arrays: dict[str, np.ndarray] = {**plan.space.values(start, stop), **block.measures, **block.kept}
    return arrays | {"failed_at": block.failed_at, STATUS: block.status}


def remote_shard(k: int, *, blob: bytes, path: str, runs: int, shard: int, version: str, token: str) -> int:
    """Evaluate a shard on another machine that shares the file system; return its number.

    The `token` identifies a call of the study: a shard on which workers of the same call died is refused at last.
    """
    if version != VERSION:
        raise InputError(
            f"{gethostname()} has version {VERSION} of Kinetree, and the study was planned by {version}; install the "
            "same version on all machines"
        )
    store = Store(Path(path), runs, shard)
    if not store.exists:  # a new folder would be on the disk of this machine alone
        raise InputError(f"{path}: is not on {gethostname()}; give a path on a file system that all workers share")
    keep_memory()
    with store.attempt(k, token) as dead:
        if dead >= ATTEMPTS:
            raise InputError(f"{dead} {WORDS}")
        return write_shard(load_plan(blob), store, k)


def warm_up(blob: bytes) -> None:
    """Load a plan, and the packages of its samplings and of stores, for the shards that follow.

    No run is evaluated, since one may take long.
    """
    plan = load_plan(blob)
    package("zarr")
    _ = plan.space.values(0, 1), plan.evaluation


def store_arguments(store: Store) -> tuple[str, int, int]:
    """Return the arguments of `remote_shard` that describe a store."""
    return str(store.path.resolve()), store.runs, store.shard
