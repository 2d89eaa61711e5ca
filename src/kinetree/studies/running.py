"""Studies with a store: shards that are missing are evaluated here, in processes or on Dask; the others are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..numbers import whole
from .evaluating import Block
from .on_dask import OnDask, connected
from .plan import Plan
from .processes import run_in_processes
from .progress import shown
from .shards import dumped, write_shard
from .store import STATUS, Store
from .store_creation import prepared


def stored_results(
    plan: Plan,
    path: str | Path,
    *,
    shard: int | None = None,
    workers: int | None = None,
    on: Any = None,
    progress: bool | None = None,
) -> Block:
    """Return the results of a plan from its store, after the evaluation of all shards that are missing.

    After Ctrl-C, the results are those of the shards that are finished.
    """
    if workers is not None and on is not None:
        raise InputError("workers and on: give one of them, the number of processes or a Dask client")
    count = None if workers is None else whole(workers, "workers")
    with _cluster(plan, on) as cluster:
        store = prepared(plan, path, None if shard is None else whole(shard, "shard"))
        missing = store.missing()
        with shown(progress, store.runs) as show:
            finished = store.runs - sum(stop - start for start, stop in map(store.span, missing))
            show(finished)

            def done(k: int) -> None:
                nonlocal finished
                start, stop = store.span(k)
                finished += stop - start
                show(finished)

            with suppress(KeyboardInterrupt):
                _run(plan, store, missing, count, cluster, done)
    if not store.missing():
        store.clean()
    return results_of(plan, store)


@contextmanager
def _cluster(plan: Plan, on: Any) -> Iterator[OnDask | None]:
    """Yield the plan on a Dask cluster, or None without one; a client that was made here is closed."""
    if on is None:
        yield None
        return
    client = connected(on)
    made = OnDask(client, dumped(plan))
    try:
        yield made
    finally:
        made.end()
        if client is not on:
            client.close()


def _run(
    plan: Plan,
    store: Store,
    missing: list[int],
    workers: int | None,
    cluster: OnDask | None,
    done: Callable[[int], None],
) -> None:
    if not missing:
        return
    if cluster is not None:
        cluster.run(store, missing, done)
    elif workers is not None and workers > 1:
        run_in_processes(dumped(plan), store, missing, workers, done)
    else:
        for k in missing:
            write_shard(plan, store, k)
            done(k)


def results_of(plan: Plan, store: Store) -> Block:
    """Return the measures and statuses of all runs of a store; runs of missing shards are not evaluated."""
    found = store.read([*plan.measures, "failed_at", STATUS])
    status, failed_at = found.pop(STATUS), found.pop("failed_at")
    return Block(found, status, failed_at)
