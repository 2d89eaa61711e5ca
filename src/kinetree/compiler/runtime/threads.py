"""Execution of a batch in parts on several threads, which are reused because starting one takes long."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def in_parts(count: int, parts: int, run: Callable[[slice], T], *, grain: int = 1) -> list[T]:
    """Run a function on equal parts of a number of samples, the first in this thread; return the results in order.

    Parts begin at multiples of `grain`.
    """
    cuts = [count * k // parts // grain * grain for k in range(parts)] + [count]
    slices = [slice(cuts[k], cuts[k + 1]) for k in range(parts)]
    if parts == 1:
        return [run(slices[0])]
    pool = _pool(parts - 1)
    others = [pool.submit(run, one) for one in slices[1:]]
    try:
        first = run(slices[0])
    finally:
        done = [other.exception() for other in others]  # waits for all parts
    for error in done:
        if error is not None:
            raise error
    return [first, *(other.result() for other in others)]


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool of this process; after a fork, the threads of the parent process do not exist."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and rarely needed

    key = os.getpid(), threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(threads, thread_name_prefix="kinetree")
    return _pools[key]
