"""The processor time of shards of a study, which workers write to a file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

FILE = "KINETREE_SHARD_CLOCK"
"""The variable of the environment that names the file."""


def clocked() -> float:
    """Let this process write the time of each of its shards; return the time in which it loads Kinetree [s]."""
    began = time.perf_counter()
    from kinetree.studies import running, shards, worker

    loading, plain = time.perf_counter() - began, shards.write_shard

    def timed(*given: Any) -> int:
        began = time.thread_time()
        done = plain(*given)
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{time.thread_time() - began}\n")
        return done

    for module in (running, shards, worker):
        module.write_shard = timed
    return loading
