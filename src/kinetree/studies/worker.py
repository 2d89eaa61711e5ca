"""A worker process of a study, started by `processes`.

It reads the plan and the store from its standard input, then numbers of shards, a line each. For each shard it writes a
line of JSON. It ends with its input, and thus with the process that started it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import sys
from pathlib import Path

from ..errors import KinetreeError, WriteError
from .shards import keep_memory, load_plan, write_shard
from .store import Store

HEAD = struct.Struct("<Q")
"""The length of the first message."""


def main() -> None:
    """Serve shards until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the process that started this one
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # measures may print
    source = sys.stdin.buffer
    blob, path, runs, shard = pickle.loads(source.read(HEAD.unpack(source.read(HEAD.size))[0]))
    store = Store(Path(path), runs, shard)
    keep_memory()
    for line in source:
        answers.write(json.dumps(_answer(blob, store, int(line))) + "\n")
        answers.flush()


def _answer(blob: bytes, store: Store, k: int) -> dict[str, object]:
    try:
        return {"shard": write_shard(load_plan(blob), store, k)}
    except KinetreeError as error:
        return {"shard": k, "error": str(error), "writing": isinstance(error, WriteError)}
    except Exception as error:  # of a measure, say: it is reported by the process that started this one
        return {"shard": k, "error": f"{type(error).__name__}: {error}", "writing": False}
