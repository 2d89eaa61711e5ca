"""Arrays of a run that are given, or computed from its states at their first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
from ..errors import InputError

Source = Callable[[str, Any], Numbers]
"""A function (name of the field, run) -> array, for a run or any part of it."""


class Recorded:
    """A field of a Trajectory that holds an array, None, or the Source of an array.

    Batches of runs are large: an array with a Source takes no memory until it is used.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, run: None, owner: type) -> None: ...
    @overload
    def __get__(self, run: object, owner: type) -> Numbers | None: ...
    def __get__(self, run, owner):
        """Return the array, computed at its first use; for the class None, the default of the field."""
        if run is None:
            return None
        value = vars(run)[self._name]
        if callable(value):
            value = vars(run)[self._name] = array(self._name, value(self._name, run))
        return value

    def __set__(self, run: object, value: ArrayLike | Source | None) -> None:
        """Keep an array or a Source."""
        vars(run)[self._name] = value


def array(name: str, values: Any, shape: tuple[int, ...] | None = None) -> Numbers:
    """Return real numbers as a read-only view, or raise an InputError."""
    try:
        found = np.asarray(values, dtype=np.float64).view()
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of real numbers") from None
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} has shape {found.shape}; expected {shape}")
    found.flags.writeable = False
    return found


def is_zeros(values: Numbers) -> bool:
    """Return whether an array is a single zero repeated by broadcasting, without reading all entries."""
    return values.size > 0 and not any(values.strides) and not values.flat[0]
