"""Studies with a store: shards that are missing are evaluated here, in processes or on Dask; the others are kept."""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from .._support import VERSION
from .._support.checks import whole
from .._support.optional import optional
from .._support.progress import show_runs
from ..errors import InputError, KinetreeError, WriteError
from .evaluating import Block
from .plan import Plan, StudyOptions
from .shards import (
    ATTEMPTS,
    WORDS,
    dump_plan,
    keep_memory,
    load_plan,
    remote_shard,
    store_arguments,
    warm_up,
    write_shard,
)
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
def _cluster(plan: Plan, on: object) -> Iterator[OnDask | None]:
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


# --- Processes that evaluate the shards of a study: `run_in_processes` gives them shards, `main` is what they run ---
#
# A worker reads the plan and the store from its standard input, then numbers of shards, a line each. It answers each
# with a line of JSON. It ends with its input, and thus with the process that started it. Python's ProcessPoolExecutor
# promises less: a worker that dies ends the pool, workers outlive a process that is killed, and scripts must guard
# their code.

LOOK = 0.1
"""The longest wait without a check for Ctrl-C [s]: on Windows, Python looks for it between waits only."""

HEAD = struct.Struct("<Q")
"""The length of the first message."""

START = "from kinetree.studies.running import main; main()"
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


# --- Shards of a study on a Dask cluster, whose workers share the file system of the store ---

RETRIES = 3
"""The number of times that a failed shard is tried again, on other workers."""

TIMEOUT = 10
"""The time to wait for a scheduler [s]."""

ARRIVAL = 60.0
"""The time to wait for the files of other machines [s]: network file systems show them late, by default within 60 s."""

POLL = 0.05
"""The time between two checks for finished shards, or for files of other machines [s]."""

PATIENCE = 30.0
"""The time without a finished shard after which the absence of workers is reported [s]."""

PASSES = 3
"""The number of times that shards are sent which Dask gave up; those that kill workers are found by then."""


def connect(on: object) -> Any:
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
            remote_shard,
            list(shards),
            blob=self._plan,
            version=VERSION,
            token=self._token,
            **given,
            pure=False,
            retries=RETRIES,
        )
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
            time.sleep(POLL)
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
        time.sleep(POLL)


def _same(blob: bytes) -> bytes:
    return blob
