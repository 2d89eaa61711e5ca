"""Numbers that users give: one, or one a degree of freedom; checked once, when an object is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..formats.numbers import shown
from ..model.parameters import Expression


def number(x: Any, what: str, *, least: float = -math.inf, infinite: bool = False) -> float:
    """Return a plain number, not NaN and not below `least`."""
    if isinstance(x, bool | np.bool_) or not isinstance(x, int | float | np.integer | np.floating):
        raise InputError(f"{what} is {shown(repr(x))}; give a number")
    value = float(x)
    if math.isnan(value) or (math.isinf(value) and not infinite):
        raise InputError(f"{what} is {value}; give a finite number")
    if value < least:
        raise InputError(f"{what} is {value:g}; give {least:g} or more")
    return value


def positive(x: Any, what: str) -> float:
    """Return a plain number above zero."""
    value = number(x, what)
    if value <= 0.0:
        raise InputError(f"{what} is {value:g}; give more than zero")
    return value


def numbers(x: Any, what: str, *, least: float = -math.inf, infinite: bool = False) -> tuple[float, ...]:
    """Return one number, or several, as a tuple of floats."""
    return tuple(number(item, what, least=least, infinite=infinite) for item in _items(x, what))


def coefficient(x: Any, what: str, *, least: float = -math.inf) -> Any:
    """Return a number of a mechanism: plain, or an expression of its parameters."""
    return x if isinstance(x, Expression) else number(x, what, least=least)


def coefficients(x: Any, what: str, *, least: float = -math.inf) -> tuple[Any, ...]:
    """Return one number of a mechanism, or several, as a tuple."""
    return tuple(coefficient(item, what, least=least) for item in _items(x, what))


def vector(x: Any, what: str) -> tuple[Any, Any, Any]:
    """Return three numbers of a mechanism."""
    items = coefficients(x, what)
    if len(items) != 3 or not isinstance(x, Sequence | np.ndarray):
        raise InputError(f"{what} has {len(items)} numbers; give 3")
    return items  # type: ignore[return-value]


def spread(values: Sequence[Any], count: int, what: str) -> tuple[Any, ...]:
    """Return `count` numbers out of one or `count`."""
    if len(values) not in (1, count):
        choice = "one" if count == 1 else f"one, or {count}"
        raise InputError(f"{what} has {len(values)} numbers; give {choice}")
    return tuple(values) * (count if len(values) == 1 else 1)


def together(named: dict[str, tuple[float, ...]], owner: str) -> dict[str, tuple[float, ...]]:
    """Return tuples of one common length: those of one number repeat it."""
    count = max(map(len, named.values()))
    return {name: spread(values, count, f"{name} of {owner}") for name, values in named.items()}


def _items(x: Any, what: str) -> Sequence[Any]:
    if isinstance(x, np.ndarray):
        if x.ndim > 1:
            raise InputError(f"{what} has shape {x.shape}; give one number, or one a degree of freedom")
        x = x.tolist()
    if isinstance(x, Sequence) and not isinstance(x, str):
        if not x:
            raise InputError(f"{what} is empty; give one number, or one a degree of freedom")
        return x
    return (x,)
