"""Batches for Python functions that replace a gufunc and run one state after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.program import Array


def spread(
    inputs: Sequence[Array], output: Array, dtype: str, arguments: tuple, out: Any
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments broadcast to their common leading shape, and the array for results of that shape.

    Like a gufunc, it raises ValueError or TypeError for unsuitable arguments, and takes `out` alone or in a tuple.
    """
    if len(arguments) != len(inputs):
        raise TypeError(f"{len(inputs)} arrays are expected")
    arrays = []
    for a, given in zip(inputs, arguments, strict=True):
        array = np.asarray(given)
        if array.shape[array.ndim - len(a.shape) :] != a.shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"{a.name} has shape {array.shape} and type {array.dtype}")
        arrays.append(array)
    lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(a.shape)] for a, x in zip(inputs, arrays, strict=True)))
    wide = [np.broadcast_to(x, lead + a.shape) for a, x in zip(inputs, arrays, strict=True)]
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        out = np.empty(lead + output.shape, dtype)
    if out.shape != lead + output.shape or not np.can_cast(dtype, out.dtype, "same_kind"):
        raise ValueError(f"out has shape {out.shape} and type {out.dtype}")
    return wide, out
