"""Views: the addresses, shapes and strides of arrays on a device, and the two strides that kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ....errors import InputError
from ...ir.program import Array

DTYPES = ("float64", "float32")


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


def common(name: str, labels: Sequence[str], views: Sequence[View], index: int | None) -> tuple[int, str]:
    """Return the device and the precision of all arrays of a call; InputError if they differ, or are not suitable.

    `index` is the device on which they must be; None stands for any.
    """
    first = views[0]
    for label, view in zip(labels, views, strict=True):
        if view.dtype not in DTYPES:
            raise InputError(f"{name}: {label} has dtype {view.dtype}; expected float64 or float32")
        if view.dtype != first.dtype:
            raise InputError(
                f"{name}: {labels[0]} has dtype {first.dtype} and {label} has {view.dtype}; give all arrays of one "
                "dtype"
            )
        if view.device != first.device:
            raise InputError(
                f"{name}: {labels[0]} is on cuda:{first.device} and {label} on cuda:{view.device}; give all arrays on "
                "one device"
            )
    if index is not None and first.device != index:
        raise InputError(
            f"{name}: {labels[0]} is on cuda:{first.device}; this function is for cuda:{index}, and that of on('cuda') "
            "for arrays on any GPU"
        )
    return first.device, first.dtype


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
    (a0, a1), (b0, b1) = (extent(x, n, samples, itemsize) for x, n in ((out, out_size), (other, other_size)))
    if out.pointer + a0 >= other.pointer + b1 or other.pointer + b0 >= out.pointer + a1:
        return False
    if out.sample != other.sample or out.sample <= 0 or min(out.entry, other.entry) < 0:
        return True
    shift = (other.pointer - out.pointer) // itemsize % out.sample
    return shift <= (out_size - 1) * out.entry or shift + (other_size - 1) * other.entry >= out.sample


def extent(at: Layout, size: int, samples: int, itemsize: int) -> tuple[int, int]:
    """Return the first byte of an array and its end, relative to its address."""
    if not size or not samples:
        return 0, 0
    ends = ((samples - 1) * at.sample, (size - 1) * at.entry)
    return sum(min(e, 0) for e in ends) * itemsize, (sum(max(e, 0) for e in ends) + 1) * itemsize
