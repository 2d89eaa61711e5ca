"""Processes that evaluate the shards of a study: `run_in_processes` gives them shards, `main` is what they run.

A worker reads the plan and the store from its standard input, then numbers of shards, a line each. It answers each with
a line of JSON. It ends with its input, and thus with the process that started it. Python's ProcessPoolExecutor promises
less: a worker that dies ends the pool, workers outlive a process that is killed, and scripts must guard their code.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from ..errors import InputError, KinetreeError, WriteError
from .shards import ATTEMPTS, keep_memory, load_plan, store_arguments, write_shard
from .store import Store

LOOK = 0.1
"""The longest wait without a check for Ctrl-C [s]: on Windows, Python looks for it between waits only."""

HEAD = struct.Struct("<Q")
"""The length of the first message."""

START = "from kinetree.studies.processes import main; main()"
"""The code of a worker process."""


def run_in_processes(
    blob: bytes, store: Store, shards: Sequence[int], workers: int, done: Callable[[int], None]
) -> None:
    """Evaluate shards in processes; `done` is called with the number of each finished one."""
    first = pickle.dumps((blob, *store_arguments(store)))
    made = [_Worker(HEAD.pack(len(first)) + first) for _ in range(min(workers, len(shards)))]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in made:
        idle.put(worker)

    def evaluate(k: int) -> int:
        worker = idle.get()
        try:
            return worker.evaluate(k)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(len(made)) as threads:
        waiting = {threads.submit(evaluate, k) for k in shards}
        try:
            while waiting:
                finished, waiting = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
                for future in finished:
                    done(future.result())
        finally:  # also after Ctrl-C: the threads end with their processes
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in made:
                worker.end()


class _Worker:
    """A worker process, which is started when it gets a shard, and again if it dies."""

    def __init__(self, first: bytes) -> None:
        self._first, self._lock, self._over = first, Lock(), False
        self._process: subprocess.Popen[bytes] | None = None

    def evaluate(self, k: int) -> int:
        """Evaluate a shard, and return its number."""
        status = 0
        for _ in range(ATTEMPTS):
            answer = self._ask(b"%d\n" % k)
            if isinstance(answer, int):
                status = answer
            elif "error" in answer:
                kind = WriteError if answer["writing"] else InputError
                raise kind(f"shard {k} of the study: {answer['error']}")
            else:
                return k
        raise InputError(
            f"shard {k} of the study: {ATTEMPTS} workers died on it, the last with exit status {status}; they may lack "
            "memory: give a smaller shard, or fewer workers"
        )

    def _ask(self, message: bytes) -> dict[str, object] | int:
        """Return the answer of the process to a message, or its exit status if it died."""
        with self._lock:
            if self._over:
                raise CancelledError
            if (process := self._process) is None:
                process = self._process = _start_process()
                message = self._first + message
        assert process.stdin is not None and process.stdout is not None
        line = b""
        with suppress(OSError):  # a closed pipe
            process.stdin.write(message)
            process.stdin.flush()
            line = process.stdout.readline()
        if line.endswith(b"\n"):
            return json.loads(line)
        self._process = None
        return _end_process(process)

    def end(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._over, process = True, self._process
        if process is not None:
            _end_process(process)


def _start_process() -> subprocess.Popen[bytes]:
    """Return a worker process that finds the same modules as this one."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-c", START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )


def _end_process(process: subprocess.Popen[bytes]) -> int:
    """Return the exit status of a process that is killed, unless it died before, with its pipes closed."""
    process.kill()
    status = process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # a message under way is lost
                stream.close()
    return status


# --- In a worker process ---


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
        write_shard(load_plan(blob), store, k)
    except KinetreeError as error:
        return {"error": str(error), "writing": isinstance(error, WriteError)}
    except Exception as error:  # of a measure, say: it is reported by the process that started this one
        return {"error": f"{type(error).__name__}: {error}", "writing": False}
    return {}
