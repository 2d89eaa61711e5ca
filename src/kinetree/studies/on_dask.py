"""Shards of a study on a Dask cluster, whose workers share the file system of the store."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._support.optional import optional
from .._support.version import VERSION
from ..errors import InputError, WriteError
from .shards import WORDS, remote_shard, store_arguments, warm_up
from .store import Store

RETRIES = 3
"""The number of times that a failed shard is tried again, on other workers."""

TIMEOUT = 10
"""The time to wait for a scheduler [s]."""

ARRIVAL = 60.0
"""The time to wait for the files of other machines [s]: network file systems show them late, by default within 60 s."""

LOOK = 0.05
"""The time between two checks for finished shards, or for files of other machines [s]."""

PATIENCE = 30.0
"""The time without a finished shard after which the absence of workers is reported [s]."""

PASSES = 3
"""The number of times that shards are sent which Dask gave up; those that kill workers are found by then."""


def connect(on: Any) -> Any:
    """Return a Dask client: the given one, or one connected to the address of a scheduler."""
    if not isinstance(on, str):
        if not hasattr(on, "submit") or not hasattr(on, "scheduler_info"):
            raise InputError(
                f"on is {on!r}; give a Dask client, or the address of a scheduler such as 'tcp://host:8786'"
            )
        return on
    distributed = optional("distributed", "Studies on Dask", "studies")
    try:
        return distributed.Client(on, timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"the Dask scheduler at {on!r} cannot be reached ({error or type(error).__name__}); start one with the "
            "command dask scheduler, and give its address"
        ) from None


class OnDask:
    """A plan on a cluster. Its workers load it while the store is prepared here."""

    def __init__(self, client: Any, blob: bytes) -> None:
        """Send the plan to a worker, and let all workers load it."""
        self._client, self._blob, self._token = client, blob, os.urandom(4).hex()
        self._plan = self._send_plan()
        self._warm = [client.submit(warm_up, self._plan, workers=[x], pure=False) for x in client.nthreads()]

    def run(self, store: Store, shards: Sequence[int], done: Callable[[int], None]) -> None:
        """Evaluate shards; `done` is called with the number of each finished one.

        If workers die, Dask also gives up shards that only waited there. Those are sent again.
        """
        left = list(shards)
        for _ in range(PASSES):
            left = self._evaluate_once(store, left, done)
            if not left:
                break
            self._plan = self._send_plan()
        else:
            raise InputError(f"shard {left[0]} of the study: Dask gave it up, because {WORDS}")
        _wait_for(store, shards)

    def _evaluate_once(self, store: Store, shards: Sequence[int], done: Callable[[int], None]) -> list[int]:
        """Evaluate shards, and return those that Dask gave up, because workers that had them died."""
        distributed = optional("distributed", "Studies on Dask", "studies")
        given = dict(zip(("path", "runs", "shard"), store_arguments(store), strict=True))
        # one graph for all, so that the scheduler keeps them in a queue, and gives the next one to any free worker
        tasks = self._client.map(
            remote_shard, list(shards), blob=self._plan, version=VERSION, token=self._token, **given, pure=False,
            retries=RETRIES,
        )  # fmt: skip
        futures, found = dict(zip(tasks, shards, strict=True)), []
        try:
            for future in self._wait_in_turn(distributed.as_completed(tasks), store):
                try:
                    future.result()
                except distributed.KilledWorker:
                    found.append(futures.pop(future))
                    continue
                except Exception as error:  # of the task, or of the cluster
                    kind = WriteError if isinstance(error, WriteError) else InputError
                    raise kind(f"shard {futures[future]} of the study failed on Dask: {error}") from None
                done(futures.pop(future))
        finally:
            self._client.cancel(list(futures))
        return found

    def _wait_in_turn(self, waiting: Any, store: Store) -> Iterator[Any]:
        """Yield tasks as they end; warn once if there has been no worker for a while."""
        idle, warned = time.monotonic(), False
        while not waiting.is_empty():
            if waiting.has_ready():
                yield from waiting.next_batch(block=False)
                idle = time.monotonic()
                continue
            time.sleep(LOOK)
            if not warned and time.monotonic() - idle > PATIENCE:
                idle = time.monotonic()
                if not self._client.nthreads():
                    warned = True
                    died = ", ".join(f"shard {k}" for k in store.marked(self._token))
                    cause = f" (workers had {died} when they died)" if died else ""
                    warnings.warn(f"the Dask cluster has no workers{cause}; the study waits for some", stacklevel=2)

    def _send_plan(self) -> Any:
        """Return the plan on a worker: a task, which is computed again if the worker that has its result dies."""
        with warnings.catch_warnings():  # advice on large graphs, to scatter data, which would be lost with a worker
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            return self._client.submit(_same, self._blob, pure=False)

    def end(self) -> None:
        """Forget the plan; tasks that are under way end by themselves."""
        self._client.cancel([*self._warm, self._plan])


def _wait_for(store: Store, shards: Sequence[int]) -> None:
    """Wait until the files of all shards are visible here; workers may have another folder of the same name."""
    until = time.monotonic() + ARRIVAL
    while absent := set(shards) & set(store.missing()):
        if time.monotonic() > until:
            raise InputError(
                f"{store.path}: {len(absent)} shards that workers of Dask wrote are not here, such as shard "
                f"{min(absent)}; the workers must share this folder: give a path on a shared file system"
            )
        time.sleep(LOOK)


def _same(blob: bytes) -> bytes:
    return blob
