"""Views: the addresses, shapes and strides of arrays on a device, and the two strides that kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ...ir.program import Array


@dataclass(frozen=True)
class View:
    """An array in the memory of a device; strides are in numbers, not in bytes."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int

    def lead(self, array: Array) -> tuple[int, ...]:
        """Return the leading shape, without the dimensions of one sample."""
        return self.shape[: len(self.shape) - len(array.shape)]


class Layout(NamedTuple):
    """The arguments of a kernel for one array: address, stride between samples, stride between entries."""

    pointer: int
    sample: int
    entry: int


def layout(view: View, array: Array, lead: Sequence[int]) -> Layout | None:
    """Return the layout of a view that is broadcast to a leading shape; None if it has no such two strides."""
    count = len(view.shape) - len(array.shape)
    missing = len(lead) - count
    strides = (
        [0] * missing
        + [
            s if n == wide else 0  # an axis of length one is repeated
            for s, n, wide in zip(view.strides, view.shape, lead[missing:], strict=False)
        ]
    )
    sample = one_stride(lead, strides)
    entry = one_stride(array.shape, view.strides[count:])
    return None if sample is None or entry is None else Layout(view.pointer, sample, entry)


def one_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the stride between consecutive entries of some axes, the last running fastest; None if there is none."""
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if not axes:
        return 0
    for (_, outer), (n, inner) in pairwise(axes):
        if outer != n * inner:
            return None
    return axes[-1][1]


def overlaps(out: Layout, out_size: int, other: Layout, other_size: int, samples: int, itemsize: int) -> bool:
    """Return whether two arrays have a number in common, or could have; columns of one array have none."""
    if not out_size or not other_size:
        return False
    (a0, a1), (b0, b1) = (_extent(x, n, samples, itemsize) for x, n in ((out, out_size), (other, other_size)))
    if a1 < b0 or b1 < a0:
        return False
    if out.sample != other.sample or out.sample <= 0 or min(out.entry, other.entry) < 0:
        return True
    shift = (b0 - a0) % out.sample
    return shift <= (out_size - 1) * out.entry or shift + (other_size - 1) * other.entry >= out.sample


def _extent(at: Layout, size: int, samples: int, itemsize: int) -> tuple[int, int]:
    """Return the places of the first and the last number of an array in memory, counted in numbers."""
    ends = [(samples - 1) * at.sample, (size - 1) * at.entry]
    start = at.pointer // itemsize
    return start + sum(min(e, 0) for e in ends), start + sum(max(e, 0) for e in ends)
