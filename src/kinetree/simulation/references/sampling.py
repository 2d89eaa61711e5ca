"""The protocol of references, and their values as arrays."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Lists = tuple[list[Any], list[Any], list[Any]]
"""q, qd and qdd, each a list with one scalar per coordinate."""


class Reference(Protocol):
    """A motion in time."""

    def __call__(self, t: Any) -> Lists:
        """Return q, qd, qdd at a time: lists of scalars of the same kind as t."""
        ...


def as_time(t: Any) -> Any:
    """Return t in the form that references require: integers and lists become floats."""
    if isinstance(t, list | tuple) or (isinstance(t, np.ndarray | np.generic) and t.dtype.kind in "iub"):
        return np.asarray(t, dtype=float)
    return float(t) if isinstance(t, int | float) else t


def sampled(reference: Reference, times: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """Return q, qd and qdd of a reference at times of any shape, each an array [..., n]."""
    t = np.asarray(times, dtype=float)
    q, qd, qdd = (
        np.stack([np.broadcast_to(np.asarray(x, dtype=float), t.shape) for x in entries], axis=-1)
        if len(entries)
        else np.zeros((*t.shape, 0))
        for entries in reference(t)
    )
    return q, qd, qdd
