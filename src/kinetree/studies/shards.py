"""The task of a worker: evaluate one shard of a study and write it to its store."""

from __future__ import annotations

import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InputError
from .evaluating import evaluate
from .plan import Plan
from .store import Store, shard_arrays


def dumped(plan: Plan) -> bytes:
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
def loaded(blob: bytes) -> Plan:
    """Return a plan that `dumped` returned; a worker compiles its functions once."""
    return pickle.loads(blob)


def write_shard(plan: Plan, store: Store, k: int) -> int:
    """Evaluate a shard and write it; return its number."""
    start, stop = store.span(k)
    store.write(k, shard_arrays(plan, evaluate(plan, start, stop), start, stop))
    return k


def remote_shard(blob: bytes, path: str, runs: int, shard: int, k: int) -> int:
    """Evaluate a shard on another machine that shares the file system; return its number."""
    return write_shard(loaded(blob), Store(Path(path), runs, shard), k)


def store_arguments(store: Store) -> tuple[Any, ...]:
    """Return the arguments of `remote_shard` that describe a store."""
    return str(store.path.resolve()), store.runs, store.shard
