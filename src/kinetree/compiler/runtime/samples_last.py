"""Batches whose samples are next to each other in memory: new arrays, and the gufuncs that fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...errors import InputError
from ...joints.random_states import leading_shape
from ..ir.program import Array

ROWS, SAMPLES = "rows", "samples"
"""The layouts of arrays of results: the entries of a sample, or the samples of an entry, are next to each other."""

LINE = 64
"""The size of a cache line [bytes]."""

PAST = 2**20
"""The least size of the outputs of a call that bypass the caches [bytes]: a second cache holds about as much.

Smaller outputs stay in the caches, where the caller finds them."""

LONG = 128
"""The most entries of an output that is stored through the caches.

A block of more displaces the numbers of the function from the first cache, and takes many pages of memory at a time."""


def samples_last(self) -> Any:
    """Return the same function for batches whose samples are next to each other in memory.

    Results are the same to the last bit. They need not be transposed, which takes a large part of the time of functions
    with many results, such as derivatives. Arrays for `out` are made by `empty` of the returned function. Its code is
    compiled when it is first called.
    """
    if self.request.lowering == "rolled":
        raise InputError(
            f"{self.name} of {self.mechanism.name!r} is compiled with loops over its bodies, which store rows of "
            "samples; make the function with lowering='unrolled'"
        )
    if self._samples_last is None:
        self._samples_last = type(self)(self.mechanism, self.request, SAMPLES)
    return self._samples_last


def empty(self, batch: int | Iterable[int]) -> Any:
    """Return arrays without values for the results of a batch of a shape, for `out`: one, or a tuple of several.

    After `samples_last`, the samples along the last axis of the batch are next to each other. Their number should be a
    multiple of 8, of 16 in float32. Large batches are fastest with about 64 of them: 4,096 samples as (64, 64).
    """
    lead = leading_shape(batch)
    return self.returned([new(self, lead, a) for a in self.outputs])


def new(function: Any, lead: tuple[int, ...], a: Array) -> np.ndarray:
    """Return an array for an output of a function, in its layout."""
    if function.layout == ROWS:
        return np.empty(lead + a.shape, function.request.dtype)
    return sample_major(lead, a.shape, function.request.dtype)


def sample_major(batch: Sequence[int], core: Sequence[int], dtype: str) -> np.ndarray:
    """Return an array (*batch, *core) without values, with the samples of the last batch axis next to each other.

    Every entry of a sample begins a cache line. The distance between entries is an odd number of lines, because entries
    at a power of two from each other compete for the same places of a cache.
    """
    *outer, n = batch or (1,)
    size = np.dtype(dtype).itemsize
    lines = -(-n * size // LINE) | 1
    row = lines * LINE // size
    count = prod(outer) * prod(core) * row
    room = np.empty(count + LINE // size, dtype)
    begin = -room.ctypes.data % LINE // size
    entries = room[begin : begin + count].reshape(*outer, *core, row)[..., :n]
    found = np.moveaxis(entries, -1, len(outer))
    return found if batch else found[0, ...]


class SampleVectors:
    """The gufuncs of a function whose results have samples next to each other; it replaces a gufunc."""

    def __init__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], dtype: str, make: Callable[[bool], np.ufunc]
    ) -> None:
        """Keep `make`, which compiles the gufunc whose stores bypass the caches, or that whose stores do not."""
        self.inputs, self.outputs, self.dtype, self._make = inputs, outputs, dtype, make
        self._long = any(a.size > LONG for a in outputs)

    @cached_property
    def near(self) -> np.ufunc:
        """The gufunc whose results stay in the caches."""
        return self._make(False)

    @cached_property
    def past(self) -> np.ufunc:
        """The gufunc whose results bypass the caches."""
        return self._make(True)

    def __call__(self, *arguments: Any, out: Any = None, **options: Any) -> Any:
        """Run the gufunc for the size of the batch, with new arrays for results unless they are given."""
        if out is None:
            out = (None,) * len(self.outputs)
        places = out if isinstance(out, tuple) else (out,)
        for x in places:
            if x is None:
                batch = self._batch(arguments)
                if not batch:
                    return self.near(*arguments, out=places, **options)
                made = (sample_major(batch, a.shape, self.dtype) for a in self.outputs)
                places = tuple(new if x is None else x for x, new in zip(places, made, strict=True))
                break
        return self.chosen(places)(*arguments, out=places, **options)

    def _batch(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Return the common leading shape of the arguments."""
        arrays = (np.asarray(x) for x in arguments)
        leads = [x.shape[: x.ndim - len(a.shape)] for a, x in zip(self.inputs, arrays, strict=True)]
        return np.broadcast_shapes(*leads)

    def chosen(self, places: Sequence[Any]) -> np.ufunc:
        """Return the gufunc for arrays of results."""
        size = 0
        for x in places:
            if not isinstance(x, np.ndarray):
                return self.near  # which refuses it
            size += x.nbytes
        if size < PAST and not self._long:
            return self.near
        return self.past if all(map(_begins_lines, places)) else self.near


def _begins_lines(array: np.ndarray) -> bool:
    """Return whether every entry of an array begins a cache line in the first of the samples in memory."""
    size = array.dtype.itemsize
    return array.ctypes.data % LINE == 0 and all(x % LINE == 0 for x in array.strides if x != size)
