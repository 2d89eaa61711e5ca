"""Studies with a store: shards that are missing are evaluated here, in processes or on Dask; the others are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._support.checks import whole
from ..errors import InputError
from .evaluating import Block
from .on_dask import OnDask, connect
from .plan import Plan, StudyOptions
from .processes import run_in_processes
from .progress import show_runs
from .shards import dump_plan, write_shard
from .store import STATUS, Store, prepare_store


def stored_results(
    plan: Plan, path: str | Path, options: StudyOptions, progress: bool | None = None
) -> tuple[Block, bool]:
    """Return the results of a plan from its store, after the evaluation of all shards that are missing.

    After Ctrl-C, the results cover the finished shards, and the second value is True.
    """
    workers, on, shard = options.workers, options.on, options.shard
    if workers is not None and on is not None:
        raise InputError("workers and on: give one of them, the number of processes or a Dask client")
    count, pressed = None if workers is None else whole(workers, "workers"), False
    with _cluster(plan, on) as cluster:
        store = prepare_store(plan, path, None if shard is None else whole(shard, "shard"))
        missing = store.missing()
        with show_runs(progress, store.runs) as show:
            finished = store.runs - sum(stop - start for start, stop in map(store.span, missing))
            show(finished)

            def done(k: int) -> None:
                nonlocal finished
                start, stop = store.span(k)
                finished += stop - start
                show(finished)

            try:
                _run(plan, store, missing, count, cluster, done)
            except KeyboardInterrupt:
                pressed = True
    if not store.missing():
        store.clean()
    return results_of(plan, store), pressed


@contextmanager
def _cluster(plan: Plan, on: Any) -> Iterator[OnDask | None]:
    """Yield the plan on a Dask cluster, or None without one; a client that was made here is closed."""
    if on is None:
        yield None
        return
    client = connect(on)
    made = OnDask(client, dump_plan(plan))
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
        run_in_processes(dump_plan(plan), store, missing, workers, done)
    else:
        for k in missing:
            write_shard(plan, store, k)
            done(k)


def results_of(plan: Plan, store: Store) -> Block:
    """Return the measures and statuses of all runs of a store; runs of missing shards are not evaluated."""
    found = store.read([*plan.measures, "failed_at", STATUS])
    status, failed_at = found.pop(STATUS), found.pop("failed_at")
    return Block(found, status, failed_at)
