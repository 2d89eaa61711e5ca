"""Layouts of an array in memory: the same numbers at other addresses, to be read or written."""

from __future__ import annotations

import numpy as np


def fortran(a):
    """Return the same numbers with the first axis running fastest."""
    return np.asfortranarray(a)


def sliced(a):
    """Return the same numbers as a slice of a larger array, with gaps between entries and samples."""
    room = np.full((*(2 * n + 1 for n in a.shape[:-1]), 3 * a.shape[-1]), 7.0, dtype=a.dtype)
    view = room[tuple(slice(1, None, 2) for _ in a.shape[:-1])][..., ::3]
    view[...] = a
    return view


def backwards(a):
    """Return the same numbers stored in reverse, read with negative strides."""
    return np.ascontiguousarray(a[::-1, ..., ::-1])[::-1, ..., ::-1]


def unaligned(a):
    """Return the same numbers at an unaligned address."""
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)[1:]
    view = np.frombuffer(raw.data, dtype=a.dtype).reshape(a.shape)
    view[...] = a
    return view


LAYOUTS = (fortran, sliced, backwards, unaligned)
