"""The processor time of shards of a study, which workers write to a file."""

from __future__ import annotations

import os
import sys
import time
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

FILE = "KINETREE_SHARD_CLOCK"
"""The variable of the environment that names the file."""
SHARDS = "kinetree.studies.shards"
"""The module that evaluates shards."""


def clocked() -> None:
    """Let this process write the time of each of its shards; Kinetree is loaded as late as without the clock."""
    if SHARDS in sys.modules:
        from kinetree.studies import running, shards

        running.write_shard = _timed(shards.write_shard)
    else:
        sys.meta_path.insert(0, _Clocking())  # type: ignore[arg-type]


class _Clocking:
    """A finder that puts the clock into the module of shards when it is imported, before others import from it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != SHARDS:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = spec.loader  # type: ignore[union-attr]
        plain = loader.exec_module

        def exec_module(module: Any) -> None:
            plain(module)
            module.write_shard = _timed(module.write_shard)

        loader.exec_module = exec_module
        return spec


def _timed(plain: Any) -> Any:
    def timed(*given: Any) -> int:
        began = time.thread_time()
        done = plain(*given)
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{time.thread_time() - began}\n")
        return done

    return timed
