"""Functions that share the samples of a batch with the threads of the crew, by their gufunc's inner loop."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..targets.arrays import streamed
from ..targets.crew import CORE, STEPS, Share
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
        ranks = [len(core) for core in self._cores]
        self._can_sweep = supported() and len(ranks) + sum(ranks) <= STEPS and max(ranks) < CORE
        self._table = np.zeros((len(ranks), CORE), np.int64)
        self._addresses = ctypes.c_void_p * len(ranks)
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
        f, words, item = self.function, (ctypes.c_int64 * Share.SIZE)(), self._dtype.itemsize
        grain = LINE // item  # whole vectors, whose results are whole lines
        for k, core in enumerate(self._cores if self._can_sweep else ()):
            self._table[k, : 1 + len(core)] = [len(core), *core]
        kernel, data = loop_of(self._gufunc)
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
            (Share.STREAMED, -(-streamed(f.outputs, item) // grain) * grain),
            (Share.GRAIN, grain),
            (Share.COUNT, crew.THREADS.count),
            (Share.POSTS, crew.THREADS.posts),
        ):
            words[place] = value
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
        f, places = self.function, self.function.places(out)
        if not self._can_sweep or (len(arguments), len(places)) != (len(f.inputs), len(f.outputs)):
            return None
        lead = self._lead(arguments, places[0])
        results = [new(f, lead, a) if x is None else x for x, a in zip(places, f.outputs, strict=True)]
        arrays = [
            x if type(x) is np.ndarray and x.shape[: len(lead)] == lead else np.broadcast_to(x, lead + a.shape)
            for x, a in zip(arguments, f.inputs, strict=True)
        ]
        addresses = self._addresses(*map(id, arrays), *map(id, results))
        if self._sweep(ctypes.addressof(self.words), addresses, len(lead)):
            return None  # arrays are unsuitable, or NumPy has to report floating-point errors
        return f.returned(results)

    def _lead(self, arguments: tuple, result: Any) -> tuple[int, ...]:
        """Return the leading shape of a batch, that of the first result if it is given."""
        if result is not None:
            return result.shape[: result.ndim - len(self.function.output.shape)]
        inputs, shapes = self.function.inputs, map(np.shape, arguments)
        return np.broadcast_shapes(*(x[: len(x) - len(a.shape)] for x, a in zip(shapes, inputs, strict=True)))
