"""Batches whose samples are next to each other in memory: new arrays, and the gufuncs that fill them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...errors import InputError
from ...joints.random_states import leading_shape
from ..ir.program import Array


@dataclass(frozen=True)
class Layout:
    """A layout of results: the samples of an entry, or the entries of a sample, are next to each other in memory.

    With `past`, stores bypass the caches. Without `zeros`, entries that are zero whatever the inputs are not stored:
    arrays hold them from the beginning.
    """

    samples: bool = False
    past: bool = False
    zeros: bool = True


ROWS = Layout()
"""The entries of a sample are next to each other."""

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
    return in_layout(self, Layout(samples=True, past=past))


def in_layout(function: Any, layout: Layout) -> Any:
    """Return the same function with results in another layout; both are kept."""
    if layout not in function.layouts:
        function.layouts[layout] = type(function)(function.mechanism, function.request, layout)
    return function.layouts[layout]


def empty(self, batch: int | Iterable[int]) -> Any:
    """Return arrays without values for the results of a batch of a shape, for `out`: one, or a tuple of several.

    After `samples_last`, the samples along the last axis of the batch are next to each other. That axis should have
    `block` samples: with f = function.samples_last(), those of 4,096 samples are f.empty((4096 // f.block, f.block)).
    """
    lead = leading_shape(batch)
    if self.layout.samples:
        cores = [a.shape for a in self.outputs]
        return self.returned(sample_majors(lead, cores, self.request.dtype, zeros=not self.layout.zeros))
    return self.returned([new(self, lead, a) for a in self.outputs])


def block(self) -> int:
    """The number of samples along the last axis of a batch for which a function with samples last is fastest.

    For results in the caches this is the number of samples in a vector.
    """
    return LONG_BLOCK if self.layout.past else LINE // np.dtype(self.request.dtype).itemsize


def new(function: Any, lead: tuple[int, ...], a: Array) -> np.ndarray:
    """Return an array for an output of a function, in its layout."""
    if function.layout.samples:
        return sample_major(lead, a.shape, function.request.dtype, zeros=not function.layout.zeros)
    return np.empty(lead + a.shape, function.request.dtype)


def sample_major(batch: Sequence[int], core: Sequence[int], dtype: str, *, zeros: bool = False) -> np.ndarray:
    """Return an array (*batch, *core) of zeros or without values, with samples of the last axis next to each other.

    Every entry of a sample begins a cache line. The distance between entries is an odd number of lines, because entries
    at a power of two from each other compete for the same places of a cache.
    """
    return sample_majors(batch, [core], dtype, zeros=zeros)[0]


def sample_majors(batch: Sequence[int], cores: Sequence[Sequence[int]], dtype: str, *, zeros: bool) -> list[np.ndarray]:
    """Return such arrays in one piece of memory: NumPy asks for large pages of memory from 4 MiB on."""
    *outer, n = batch or (1,)
    size = np.dtype(dtype).itemsize
    lines = -(-n * size // LINE) | 1
    row = lines * LINE // size
    counts = [prod(outer) * prod(core) * row for core in cores]
    room = (np.zeros if zeros else np.empty)(sum(counts) + LINE // size, dtype)
    begin = -room.ctypes.data % LINE // size
    found = []
    for core, count in zip(cores, counts, strict=True):
        entries = room[begin : begin + count].reshape(*outer, *core, row)[..., :n]
        found.append(np.moveaxis(entries, -1, len(outer)))
        begin += count
    return found if batch else [x[0, ...] for x in found]


class SampleVectors:
    """A gufunc whose new arrays of results have samples next to each other; it replaces a gufunc."""

    def __init__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], dtype: str, layout: Layout, gufunc: np.ufunc
    ) -> None:
        """Keep a gufunc, which has an output at least."""
        self.inputs, self.outputs, self.dtype, self.gufunc = inputs, outputs, dtype, gufunc
        self.zeros = not layout.zeros

    def __call__(self, *arguments: Any, out: Any = None, **options: Any) -> Any:
        """Run the gufunc, with new arrays for results unless they are given."""
        return self.gufunc(*arguments, out=self.results(arguments) if out is None else out, **options)

    def results(self, arguments: Sequence[Any]) -> tuple[np.ndarray | None, ...]:
        """Return new arrays for the results of a batch; for a single sample, None for those that NumPy can make.

        NumPy refuses a wrong number of arguments.
        """
        arrays = (np.asarray(x) for x in arguments)
        leads = [x.shape[: x.ndim - len(a.shape)] for a, x in zip(self.inputs, arrays, strict=False)]
        batch = np.broadcast_shapes(*leads)
        return tuple(
            sample_major(batch, a.shape, self.dtype, zeros=self.zeros) if batch or self.zeros else None
            for a in self.outputs
        )
