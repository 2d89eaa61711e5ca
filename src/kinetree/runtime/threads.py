"""Batches on several threads: by the crew, or in parts by Python where native code cannot share them."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..compiler.ir.program import Array
from ..errors import InputError
from ..targets import Loaded
from ..targets.abi import CORE, CREW_STEPS, MOST, Crew, Post, Share, streaming_threshold
from .arguments import one_or_tuple, places_of
from .native import NativeKernel, core_signature, direct_call, is_supported, loaded_text, loop_of, register

if TYPE_CHECKING:
    from .function import Function


# --- The crew of this process: threads that wait in native code for portions of batches, without Python and its lock
#
# Starting one takes long, so they are kept. They sleep while there is no work, and end with the process.

CACHE_LINE = 64
"""The size of a cache line [bytes], at which posts begin."""

POST = Post.SIZE * 8
"""The size of a post [bytes]."""


class Threads:
    """The threads of this process; `size` is the number of threads that share a batch, with the caller's own."""

    def __init__(self) -> None:
        """Begin without threads."""
        self.size = 1
        self._lock = threading.Lock()
        self._memory = (ctypes.c_char * (2 * CACHE_LINE + MOST * POST))()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))  # threads read it until the process ends
        self.count = -(-ctypes.addressof(self._memory) // CACHE_LINE) * CACHE_LINE
        """The address of the number of posts; posts follow in the next line."""
        self.posts = self.count + CACHE_LINE

    def start(self, threads: int) -> None:
        """Start threads until a batch can be shared by a number of them, or the system gives no more."""
        with self._lock:
            for k in range(self.size - 1, min(threads - 1, MOST)):
                post = self.posts + k * POST
                for semaphore in (Post.WAKE, Post.DONE):
                    if ctypes.CDLL(None).sem_init(ctypes.c_void_p(post + 8 * semaphore), 0, 0):
                        raise OSError("this system has no semaphores for threads")
                thread = threading.Thread(target=work(), args=(post,), daemon=True, name=f"kinetree {k + 1}")
                self._count(k + 1)  # before the start, which Ctrl-C may end: a post never gets a second thread
                try:
                    thread.start()
                except RuntimeError:  # a limit of the system, or the end of the process
                    self._count(k)
                    return

    def _count(self, posts: int) -> None:
        """Let callers offer work at a number of posts; offers that nobody takes are withdrawn."""
        ctypes.c_int64.from_address(self.count).value = posts
        self.size = posts + 1

    def forked(self) -> None:
        """Begin again in a child process, in which the threads of the parent process do not exist."""
        ctypes.memset(self._memory, 0, len(self._memory))
        self.size, self._lock = 1, threading.Lock()


@cache
def code() -> Loaded:
    """Return the code of the crew, which stays in memory until the process ends: threads wait in it."""
    found = loaded_text(Crew(), "float64")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))
    return found


@cache
def work() -> Callable[..., None]:
    """Return the native function of a thread; found once, since a search waits for llvmlite's lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code().find("work"))


@cache
def sweep() -> Callable[..., int]:
    """Return the native function that shares arrays with several leading axes."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code().find("sweep"))


THREADS = Threads()
SUPPORTED = sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8 and sys.implementation.name == "cpython"
"""Whether threads can wait in native code, which needs semaphores without names, 64 bits, and CPython."""

if SUPPORTED:
    os.register_at_fork(after_in_child=THREADS.forked)

# --- Functions that share the samples of a batch with the threads of the crew, by their gufunc's inner loop ---

LEAST_SHARE = 5e-5
"""The least work of each thread [s]: one that sleeps begins some 5 to 40 us later."""

PORTION = 3e-5
"""The time of a portion of work [s]: long compared with its start, short compared with the least work."""


def share_on_threads(function: Function, threads: int) -> Callable[..., Any]:
    """Return a function on a number of threads, which takes the arguments and the option `out` of its gufunc."""
    call = Shared(function, threads)
    k = function.executor.kernel
    if k is None:
        return call
    kernel = NativeKernel(k.inputs, k.outputs, code().find("loop"), k.counts, (k.code, code()), call.words)
    return direct_call(kernel, function.gufunc, function.name, "", (), call) or call


class Shared:
    """A function on a number of threads, for all arguments that its gufunc takes."""

    def __init__(self, function: Function, threads: int, dtypes: Sequence[str] = ()) -> None:
        """Register the loop that shares samples; `function.gufunc` is native, with `dtypes` if it has several."""
        self.function = function
        self._cores = [a.shape for a in (*function.inputs, *function.outputs)]
        self._sweep = sweep()
        ranks = [len(core) for core in self._cores]
        self._can_sweep = is_supported() and len(ranks) + sum(ranks) <= CREW_STEPS and max(ranks) < CORE
        self._table = np.zeros((len(ranks), CORE), np.int64)
        self._addresses = ctypes.c_void_p * len(ranks)
        self._plain_axes = 1 + len(function.output.shape)
        self._long = 2e9 * LEAST_SHARE * function.output.size
        self._dtype = np.dtype(function.request.dtype)
        self.words = self._words(threads)
        arrays = (function.inputs, function.outputs)
        arity = (len(function.inputs), len(function.outputs))
        self._loop = register(
            code().find("loop"),
            self.words,
            function.name,
            "",
            core_signature(*arrays),
            arity,
            dtypes or self._dtype.name,
            (function.gufunc, code()),
        )

    def _words(self, threads: int) -> ctypes.Array[ctypes.c_int64]:
        f, words, item = self.function, (ctypes.c_int64 * Share.SIZE)(), self._dtype.itemsize
        grain = CACHE_LINE // item  # whole vectors, whose results are whole lines
        for k, core in enumerate(self._cores if self._can_sweep else ()):
            self._table[k, : 1 + len(core)] = [len(core), *core]
        kernel, data = loop_of(f.gufunc)
        for place, value in (
            (Share.KERNEL, kernel),
            (Share.DATA, data),
            (Share.ARRAYS, len(self._cores)),
            (Share.THREADS, threads),
            (Share.INPUTS, len(f.inputs)),
            (Share.ARRAY_TYPE, id(np.ndarray)),
            (Share.DTYPE, id(self._dtype)),
            (Share.ITEM, item),
            (Share.CORES, self._table.ctypes.data),
            (Share.STREAMED, -(-streaming_threshold(f.outputs, item) // grain) * grain),
            (Share.GRAIN, grain),
            (Share.COUNT, THREADS.count),
            (Share.POSTS, THREADS.posts),
        ):
            words[place] = value
        self._pace, least, portion = (
            ctypes.c_double.from_buffer(words, 8 * place) for place in (Share.PACE, Share.LEAST, Share.PORTION)
        )
        least.value, portion.value = LEAST_SHARE * 1e9, PORTION * 1e9
        return words

    @property
    def once(self) -> Callable[..., Any]:
        """The gufunc of the function on threads, which computes each sample once even if NumPy reports an error."""
        return self._loop

    def __call__(self, *arguments: object, out: object = None) -> Any:
        """Run the function; results are new arrays unless they are given."""
        if out is None:
            results = self._swept(arguments, None) if self._is_long(arguments) else None
            return self._loop(*arguments) if results is None else results
        # Results have the leading axes of the batch. Batches with several of them are swept if that is worth it.
        x = out[0] if type(out) is tuple else out
        if type(x) is np.ndarray and x.ndim > self._plain_axes and x.size * self._pace.value >= self._long:
            results = self._swept(arguments, out)
            if results is not None:
                return results
        return self._loop(*arguments, out=out)

    def _is_long(self, arguments: tuple) -> bool:
        """Return whether a batch has several leading axes, and its largest argument alone is worth several threads."""
        pairs = [*zip(arguments, self.function.inputs, strict=False)]
        if all(np.ndim(x) <= 1 + len(a.shape) for x, a in pairs):
            return False
        return max(np.size(x) / a.size for x, a in pairs) * self._pace.value >= 2e9 * LEAST_SHARE

    def _swept(self, arguments: tuple, out: object) -> Any:
        """Return the results of a batch with several leading axes, shared along all; None if NumPy must prepare it."""
        f, places = self.function, places_of(out, len(self.function.outputs))
        if not self._can_sweep or (len(arguments), len(places)) != (len(f.inputs), len(f.outputs)):
            return None
        lead = self._lead(arguments, places[0])
        results = [
            np.empty(lead + a.shape, self._dtype) if x is None else x for x, a in zip(places, f.outputs, strict=True)
        ]
        arrays = [
            x if type(x) is np.ndarray and x.shape[: len(lead)] == lead else np.broadcast_to(x, lead + a.shape)
            for x, a in zip(arguments, f.inputs, strict=True)
        ]
        addresses = self._addresses(*map(id, arrays), *map(id, results))
        if self._sweep(ctypes.addressof(self.words), addresses, len(lead)):
            return None  # arrays are unsuitable, or NumPy has to report floating-point errors
        return one_or_tuple(results)

    def _lead(self, arguments: tuple, result: Any) -> tuple[int, ...]:
        """Return the leading shape of a batch: that of the first result, if it is given."""
        if result is not None:
            return result.shape[: result.ndim - len(self.function.output.shape)]
        inputs, shapes = self.function.inputs, map(np.shape, arguments)
        return np.broadcast_shapes(*(x[: len(x) - len(a.shape)] for x, a in zip(shapes, inputs, strict=True)))


T = TypeVar("T")


def in_parts(count: int, parts: int, run: Callable[[slice], T], *, grain: int = 1) -> list[T]:
    """Run a function on equal parts of a number of samples, the first in this thread; return the results in order.

    Parts begin at multiples of `grain`. The other threads end with the call: they take 0.1 ms to start, and parts take
    a millisecond or more.
    """
    cuts = [count * k // parts // grain * grain for k in range(parts)] + [count]
    slices = [slice(cuts[k], cuts[k + 1]) for k in range(parts)]
    if parts == 1:
        return [run(slices[0])]
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and rarely needed

    with ThreadPoolExecutor(parts - 1, thread_name_prefix="kinetree part") as threads:
        others = [threads.submit(run, one) for one in slices[1:]]
        first = run(slices[0])
    return [first, *(other.result() for other in others)]


# --- Division of a batch among threads of Python, as many as shorten its time, which is measured in the calls.
#
# This is for functions in Python around native code, and for systems on which threads cannot wait in native code.

LEAST = 1e-3
"""The least time that each thread computes [s]: on an idle machine, another thread begins up to 0.8 ms later."""

BRIEF = 5e-5
"""The longest call from which the time of a sample is not estimated [s]: most of it may be the call itself."""

FEWEST, GROWTH = 8, 8
"""The samples that are not worth a measurement, which fill a vector, and the factor by which a trial is longer."""

WHOLE = 16
"""Parts begin at multiples of this number of samples: whole vectors, whose results are whole lines."""


class Pace:
    """The shortest time per sample that a function took so far [s], None before the first measurement.

    `few` is the largest number of samples whose call was brief.
    """

    def __init__(self) -> None:
        """Begin without a measurement."""
        self.seconds: float | None = None
        self.few = FEWEST

    def timed(self, samples: int, run: Callable[[], T]) -> T:
        """Return the result of a call on some samples, and note the time that it takes unless it is brief."""
        start = time.perf_counter()
        result = run()
        taken = time.perf_counter() - start
        if taken <= BRIEF:
            self.few = max(self.few, samples)
        elif samples:
            self.seconds = min(taken / samples, self.seconds or taken)
        return result

    def parts(self, samples: int, threads: int) -> int:
        """Return the number of threads that are worth their start, at most `threads`."""
        work = samples * (self.seconds or 0.0)
        return max(1, min(threads, int(work / LEAST)))


def divide_batch(function: Function, arguments: tuple, out: object, threads: int) -> Any:
    """Run a batch of a compiled function on threads; no bit of the results depends on them."""
    pace = function.pace
    count = _count(function.inputs, arguments)
    if count is not None and count <= pace.few:
        return function.alone(arguments, out)
    if count is not None and pace.seconds is not None and pace.parts(count, threads) == 1:
        return pace.timed(count, lambda: function.alone(arguments, out))
    arrays = [np.asarray(a) for a in arguments]
    leads = [a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, function.inputs, strict=True)]
    lead = np.broadcast_shapes(*leads)
    samples, rows = prod(lead), lead[0] if lead else 1
    places = places_of(out, len(function.outputs))
    if samples <= pace.few or rows == 1 or _overlap(arrays, places) or not _fit(places, function.outputs, lead):
        return function.alone(arguments, out)
    results = [
        np.empty(lead + a.shape, function.request.dtype) if place is None else place
        for a, place in zip(function.outputs, places, strict=True)
    ]
    cores = [a.shape[len(mine) :] for a, mine in zip(arrays, leads, strict=True)]
    arrays = [np.broadcast_to(a, lead + core) for a, core in zip(arrays, cores, strict=True)]
    inner = samples // rows
    grain = WHOLE if inner == 1 else 1

    def run(begin: int, end: int) -> None:
        given, places = [a[begin:end] for a in arrays], tuple(x[begin:end] for x in results)
        pace.timed((end - begin) * inner, lambda: function.gufunc(*given, out=places))

    done = _tried(pace, rows, inner, run)
    if done < rows:
        parts = min(pace.parts((rows - done) * inner, threads), max(1, (rows - done) // grain))
        in_parts(rows - done, parts, lambda part: run(done + part.start, done + part.stop), grain=grain)
    return one_or_tuple(results)


def _tried(pace: Pace, rows: int, inner: int, run: Callable[[int, int], None]) -> int:
    """Run the first samples of a batch until their time is known, at most all; return the number of finished rows."""
    done = 0
    while pace.seconds is None and done < rows:
        end = min(rows, done + max(WHOLE if inner == 1 else 1, -(-pace.few * GROWTH // inner)))
        run(done, end)
        done = end
    return done


def _count(inputs: Sequence[Array], arguments: tuple) -> int | None:
    """Return the number of samples of plain arrays with the same leading shape; None for others."""
    lead = None
    for a, x in zip(inputs, arguments, strict=False):
        if not isinstance(x, np.ndarray):
            return None
        own = x.shape[: x.ndim - len(a.shape)]
        if own != (own if lead is None else lead):
            return None
        lead = own
    return prod(lead or ())


def _overlap(arrays: Sequence[np.ndarray], places: Sequence[object]) -> bool:
    """Return whether results may be written to the memory of arguments, which only one call for all samples permits."""
    return any(x is not None and np.may_share_memory(a, x) for a in arrays for x in places)


def _fit(places: Sequence[Any], outputs: Sequence[Array], lead: tuple[int, ...]) -> bool:
    """Return whether every array for results has exactly one row per row of the batch; NumPy decides on all others."""
    return len(places) == len(outputs) and all(
        x is None or np.shape(x) == lead + a.shape for x, a in zip(places, outputs, strict=True)
    )


# --- Calls of a compiled function on a number of threads ---


def on_threads(function: Function, arguments: tuple, out: object, threads: int) -> Any:
    """Run a batch on threads, 0 for all cores, if that shortens its time; no bit of the results depends on them."""
    threads = thread_count(threads)
    call = function.shares.get(threads)
    if call is None or threads > THREADS.size:
        if not _is_native(function):
            return divide_batch(function, arguments, out, threads)
        THREADS.start(threads)
        call = function.shares[threads] = call or share_on_threads(function, threads)
    return call(*arguments) if out is None else call(*arguments, out=out)


def _is_native(function: Function) -> bool:
    """Return whether native code runs all samples of a batch, and can share them with threads."""
    return SUPPORTED and isinstance(function.gufunc, np.ufunc)


def thread_count(threads: object) -> int:
    """Return a number of threads, all cores for 0; InputError for anything that is not a number of them."""
    if type(threads) is not int or threads < 0:
        threads = _number(threads)
    return threads or _cores()


def _number(threads: object) -> int:
    """Return a number of threads as an integer of Python; InputError for anything else."""
    if not isinstance(threads, int | np.integer) or threads < 0:
        raise InputError(f"threads is {threads!r}; expected 1 or more, or 0 for all cores")
    return int(threads)


@cache
def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
