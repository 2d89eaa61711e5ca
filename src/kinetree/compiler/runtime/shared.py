"""Functions that share the samples of a batch with the threads of the crew, by their gufunc's inner loop."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..targets.crew import STEPS, Share
from . import crew
from .direct import NativeKernel, direct_call, supported
from .gufunc import core_signature, loop_of, register
from .samples_last import LINE, ROWS, new

LEAST = 5e-5
"""The least work of each thread [s]: one that sleeps begins some 5 to 40 us later."""

PORTION = 3e-5
"""The time of a portion of work [s]: long compared with its start, short compared with the least work."""


def shared(function: Any, threads: int) -> Callable[..., Any]:
    """Return a function on a number of threads, which takes the arguments and the option `out` of its gufunc."""
    call = Shared(function, threads)
    if function.kernel is None:
        return call
    k = function.kernel
    kernel = NativeKernel(k.inputs, k.outputs, crew.code().find("loop"), k.counts, (k.code, crew.code()), call.words)
    return direct_call(kernel, function.gufunc, function.name, "", (), call) or call


class Shared:
    """A function on a number of threads, for all arguments that its gufunc takes."""

    def __init__(self, function: Any, threads: int) -> None:
        """Register the loop that shares samples; `function.gufunc` is native."""
        self.function = function
        self._vectors = None if function.layout == ROWS else function.gufunc
        self._gufunc = function.gufunc if self._vectors is None else self._vectors.gufunc
        self._cores = [a.shape for a in (*function.inputs, *function.outputs)]
        self._sweep = crew.sweep()
        self._can_sweep = supported() and len(self._cores) + sum(map(len, self._cores)) <= STEPS
        self._plain_axes = 1 + len(function.output.shape)
        self._long = 2e9 * LEAST * function.output.size
        self._dtype = np.dtype(function.request.dtype)
        self.words = self._words(threads)
        arrays = (function.inputs, function.outputs)
        arity = (len(function.inputs), len(function.outputs))
        self._loop = register(
            crew.code().find("loop"), self.words, function.name, "", core_signature(*arrays), arity, self._dtype.name,
            (self._gufunc, crew.code()),
        )  # fmt: skip

    def _words(self, threads: int) -> Any:
        words = (ctypes.c_int64 * Share.SIZE)()
        words[Share.KERNEL], words[Share.DATA] = loop_of(self._gufunc)
        words[Share.ARRAYS] = len(self.function.inputs) + len(self.function.outputs)
        words[Share.THREADS] = threads
        words[Share.GRAIN] = LINE // self._dtype.itemsize  # whole vectors, whose results are whole lines
        words[Share.COUNT], words[Share.POSTS] = crew.THREADS.count, crew.THREADS.posts
        self._pace, least, portion = (
            ctypes.c_double.from_buffer(words, 8 * place) for place in (Share.PACE, Share.LEAST, Share.PORTION)
        )
        least.value, portion.value = LEAST * 1e9, PORTION * 1e9
        return words

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Run the function; results are new arrays in its layout unless they are given."""
        if out is None:
            if self._vectors is None:
                results = self._swept(arguments, None) if self._is_long(arguments) else None
                return self._loop(*arguments) if results is None else results
            out = self._vectors.results(arguments)
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
        f, count = self.function, len(self._cores)
        places = f.places(out)
        if not self._can_sweep or len(arguments) + len(places) != count:
            return None
        lead = self._lead(arguments, places[0])
        shapes = [lead + core for core in self._cores]
        results = [new(f, lead, a) if x is None else x for x, a in zip(places, f.outputs, strict=True)]
        arrays = [
            x if type(x) is np.ndarray and x.shape == shape else np.broadcast_to(x, shape)
            for x, shape in zip(arguments, shapes, strict=False)
        ]
        every = arrays + results
        if not all(map(self._is_plain, every, shapes)) or not _are_apart(arrays, results) or 0 in lead:
            return None
        addresses = (ctypes.c_void_p * count)(*map(id, every))
        if self._sweep(ctypes.addressof(self.words), addresses, len(lead)):
            return None  # NumPy reports floating-point errors
        return f.returned(results)

    def _lead(self, arguments: tuple, result: Any) -> tuple[int, ...]:
        """Return the leading shape of a batch, that of the first result if it is given."""
        if result is not None:
            return result.shape[: result.ndim - len(self.function.output.shape)]
        inputs, shapes = self.function.inputs, map(np.shape, arguments)
        return np.broadcast_shapes(*(x[: len(x) - len(a.shape)] for x, a in zip(shapes, inputs, strict=True)))

    def _is_plain(self, x: Any, shape: tuple[int, ...]) -> bool:
        """Return whether native code can read and write an array."""
        return type(x) is np.ndarray and x.shape == shape and x.dtype == self._dtype and x.flags.aligned


def _are_apart(arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> bool:
    """Return whether results can be written without changing arguments."""
    return all(x.flags.writeable and not any(np.may_share_memory(a, x) for a in arrays) for x in results)
