"""The memory of worker processes: that of a shard is kept for the next one."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

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
