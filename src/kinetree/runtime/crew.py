"""The crew of this process: threads that wait in native code for portions of batches, without Python and its lock.

Starting one takes long, so they are kept. They sleep while there is no work, and end with the process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..targets.abi import CORE, CREW_STEPS, MOST, Crew, Post, Share, streaming_threshold
from ..targets.protocol import Loaded
from .arguments import places_of, returned
from .native import NativeKernel, core_signature, direct_call, is_supported, loaded_text, loop_of, register

if TYPE_CHECKING:
    from .function import Function

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
def work() -> Any:
    """Return the native function of a thread; found once, since a search waits for llvmlite's lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code().find("work"))


@cache
def sweep() -> Any:
    """Return the native function that shares arrays with several leading axes."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code().find("sweep"))


THREADS = Threads()
SUPPORTED = sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8 and sys.implementation.name == "cpython"
"""Whether threads can wait in native code, which needs semaphores without names, 64 bits, and CPython."""

if SUPPORTED:
    os.register_at_fork(after_in_child=THREADS.forked)

# --- Functions that share the samples of a batch with the threads of the crew, by their gufunc's inner loop ---

LEAST = 5e-5
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

    def __init__(self, function: Function, threads: int) -> None:
        """Register the loop that shares samples; `function.gufunc` is native."""
        self.function = function
        self._cores = [a.shape for a in (*function.inputs, *function.outputs)]
        self._sweep = sweep()
        ranks = [len(core) for core in self._cores]
        self._can_sweep = is_supported() and len(ranks) + sum(ranks) <= CREW_STEPS and max(ranks) < CORE
        self._table = np.zeros((len(ranks), CORE), np.int64)
        self._addresses = ctypes.c_void_p * len(ranks)
        self._plain_axes = 1 + len(function.output.shape)
        self._long = 2e9 * LEAST * function.output.size
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
            self._dtype.name,
            (function.gufunc, code()),
        )

    def _words(self, threads: int) -> Any:
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
        least.value, portion.value = LEAST * 1e9, PORTION * 1e9
        return words

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
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
        return max(np.size(x) / a.size for x, a in pairs) * self._pace.value >= 2e9 * LEAST

    def _swept(self, arguments: tuple, out: Any) -> Any:
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
        return returned(results)

    def _lead(self, arguments: tuple, result: Any) -> tuple[int, ...]:
        """Return the leading shape of a batch: that of the first result, if it is given."""
        if result is not None:
            return result.shape[: result.ndim - len(self.function.output.shape)]
        inputs, shapes = self.function.inputs, map(np.shape, arguments)
        return np.broadcast_shapes(*(x[: len(x) - len(a.shape)] for x, a in zip(shapes, inputs, strict=True)))
