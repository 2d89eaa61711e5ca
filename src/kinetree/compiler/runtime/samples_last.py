"""Batches whose samples are next to each other in memory: new arrays, and the gufuncs that fill them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import InputError
from ...joints.random_states import leading_shape
from ..ir.program import Array

ROWS, SAMPLES, PAST = "rows", "samples", "past"
"""The layouts of results: the entries of a sample, or the samples of an entry, are next to each other.

The last one is the second with stores that bypass the caches."""

LINE = 64
"""The size of a cache line [bytes]."""

LONG_BLOCK = 64
"""The samples in a block of results that bypass the caches: the end of a block waits for its stores."""


LONG = 128
"""The most entries of an output that is stored through the caches by default.

A block of more displaces the numbers of the function from the first cache: for a humanoid, that took twice as long."""


def samples_last(self, *, past: bool | None = None) -> Any:
    """Return the same function for batches whose samples are next to each other in memory.

    Results are the same to the last bit. They need not be transposed, which takes a large part of the time of functions
    with many results, such as derivatives. Arrays for `out` are made by `empty` of the returned function, for blocks of
    `block` samples. With `past`, results bypass the caches: large ones are stored faster, and read from memory by the
    next operation. The default is True for functions with an output of more than 128 entries.
    """
    if self.request.lowering == "rolled":
        raise InputError(
            f"{self.name} of {self.mechanism.name!r} is compiled with loops over its bodies, which store rows of "
            "samples; make the function with lowering='unrolled'"
        )
    if past is None:
        past = any(a.size > LONG for a in self.outputs)
    layout = PAST if past else SAMPLES
    if layout not in self.layouts:
        self.layouts[layout] = type(self)(self.mechanism, self.request, layout)
    return self.layouts[layout]


def empty(self, batch: int | Iterable[int]) -> Any:
    """Return arrays without values for the results of a batch of a shape, for `out`: one, or a tuple of several.

    After `samples_last`, the samples along the last axis of the batch are next to each other. That axis should have
    `block` samples: with f = function.samples_last(), those of 4,096 samples are f.empty((4096 // f.block, f.block)).
    """
    lead = leading_shape(batch)
    return self.returned([new(self, lead, a) for a in self.outputs])


def block(self) -> int:
    """The number of samples along the last axis of a batch for which a function with samples last is fastest.

    For results in the caches this is the number of samples in a vector.
    """
    return LONG_BLOCK if self.layout == PAST else LINE // np.dtype(self.request.dtype).itemsize


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
    """A gufunc whose new arrays of results have samples next to each other; it replaces a gufunc."""

    def __init__(self, inputs: Sequence[Array], outputs: Sequence[Array], dtype: str, gufunc: np.ufunc) -> None:
        """Keep a gufunc, which has an output at least."""
        self.inputs, self.outputs, self.dtype, self.gufunc = inputs, outputs, dtype, gufunc

    def __call__(self, *arguments: Any, out: Any = None, **options: Any) -> Any:
        """Run the gufunc, with new arrays for results unless they are given."""
        if out is None:
            batch = self._batch(arguments)
            out = tuple(sample_major(batch, a.shape, self.dtype) if batch else None for a in self.outputs)
        return self.gufunc(*arguments, out=out, **options)

    def _batch(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Return the common leading shape of the arguments; NumPy refuses a wrong number of them."""
        arrays = (np.asarray(x) for x in arguments)
        leads = [x.shape[: x.ndim - len(a.shape)] for a, x in zip(self.inputs, arrays, strict=False)]
        return np.broadcast_shapes(*leads)
