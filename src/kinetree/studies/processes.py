"""A pool of worker processes for the shards of a study; the shard of a worker that dies is given to another."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from ..errors import InputError, WriteError
from .shards import ATTEMPTS, store_arguments
from .store import Store
from .worker import HEAD

LOOK = 0.1
"""The time between two checks for Ctrl-C [s]."""

START = "from kinetree.studies.worker import main; main()"
"""The code of a worker process."""


def run_in_processes(
    blob: bytes, store: Store, shards: Sequence[int], workers: int, done: Callable[[int], None]
) -> None:
    """Evaluate shards in processes; `done` is called with the number of each finished one."""
    open_, answers, stop = SimpleQueue(), SimpleQueue(), Event()
    for k in shards:
        open_.put(k)
    first = pickle.dumps((blob, *store_arguments(store)))
    serving = [_Serving(first, open_, answers, stop) for _ in range(min(workers, len(shards)))]
    for one in serving:
        one.start()
    try:
        _collect(len(shards), open_, answers, done)
    finally:
        stop.set()
        for one in serving:
            one.end()


def _collect(count: int, open_: SimpleQueue, answers: SimpleQueue, done: Callable[[int], None]) -> None:
    """Wait for all shards; give those of dead workers to others, and raise the error of any other failure."""
    attempts: dict[int, int] = {}
    while count:
        try:
            answer = answers.get(timeout=LOOK)
        except Empty:
            continue
        k = answer["shard"]
        if "died" in answer:
            attempts[k] = attempts.get(k, 0) + 1
            if attempts[k] == ATTEMPTS:
                raise InputError(
                    f"shard {k} of the study: {ATTEMPTS} workers died on it, the last with exit status "
                    f"{answer['died']}; they may lack memory: give a smaller shard, or fewer workers"
                )
            open_.put(k)
        elif "error" in answer:
            kind = WriteError if answer["writing"] else InputError
            raise kind(f"shard {k} of the study: {answer['error']}")
        else:
            count -= 1
            done(k)


class _Serving(Thread):
    """A thread that gives shards to a worker process, and starts another if it dies."""

    def __init__(self, first: bytes, open_: SimpleQueue, answers: SimpleQueue, stop: Event) -> None:
        super().__init__(daemon=True)
        self._first, self._open, self._answers, self._ending = first, open_, answers, stop
        self._process: Any = None

    def run(self) -> None:
        while not self._ending.is_set():
            try:
                k = self._open.get(timeout=LOOK)
            except Empty:
                continue
            answer = self._ask(k)
            if not self._ending.is_set():
                self._answers.put(answer)

    def _ask(self, k: int) -> dict[str, Any]:
        """Return the answer of the worker to a shard, or its exit status if it died."""
        message = b"%d\n" % k
        if self._process is None:
            self._process, message = _started(), HEAD.pack(len(self._first)) + self._first + message
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:  # a closed pipe
            line = b""
        if line.endswith(b"\n"):
            return json.loads(line)
        status, self._process = _ended(self._process), None
        return {"shard": k, "died": status}

    def end(self) -> None:
        """End the worker process."""
        if (process := self._process) is not None:
            process.kill()
        self.join()
        if process is not None:
            _ended(process)


def _ended(process: Any) -> int:
    """Return the exit status of a process that is killed, unless it died before, with its pipes closed."""
    process.kill()
    status = process.wait()
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):  # a message under way is lost
            stream.close()
    return status


def _started() -> Any:
    """Return a worker process that finds the same modules as this one."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-c", START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )
