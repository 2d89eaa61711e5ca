"""Shards of a study on a Dask cluster, whose workers share the file system of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InputError
from ..results.files.atomic import optional
from .shards import remote_shard, store_arguments
from .store import Store

RETRIES = 3
"""The number of times that a failed shard is tried again, on other workers."""

TIMEOUT = 10
"""The time to wait for a scheduler [s]."""


def connected(on: Any) -> Any:
    """Return a Dask client: the given one, or that of the address of a scheduler."""
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


def run_on_dask(client: Any, blob: bytes, store: Store, shards: Sequence[int], done: Callable[[int], None]) -> None:
    """Evaluate shards on a cluster; `done` is called with the number of each finished one."""
    distributed = optional("distributed", "Studies on Dask", "studies")
    plan = client.submit(_same, blob, pure=False)
    futures = {
        client.submit(remote_shard, plan, *store_arguments(store), k, pure=False, retries=RETRIES): k for k in shards
    }  # fmt: skip
    try:
        for future in distributed.as_completed(list(futures)):
            try:
                future.result()
            except Exception as error:  # of the task, or of the cluster
                raise InputError(f"shard {futures[future]} of the study failed on Dask: {error}") from None
            done(futures.pop(future))
    finally:
        client.cancel([*futures, plan])


def _same(blob: bytes) -> bytes:
    return blob
