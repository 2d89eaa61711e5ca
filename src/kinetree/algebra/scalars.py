"""The types of arrays and scalars; elementary functions on any scalar: by `math` on floats, else by its own method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]
"""An array of real numbers, in double or single precision."""

Scalar = Any
"""A float, a traced value, an expression of parameters: anything with the operators + - * /."""

NOISE = 4 * 2.220446049250313e-16
"""Entries of a rotation below this are the rounding of a zero, as in cos(pi/2) = 6e-17."""


def is_number(x: Scalar) -> bool:
    """Return whether x is a plain number."""
    return isinstance(x, int | float)


def is_plain_zero(x: Scalar) -> bool:
    """Return whether x is the plain number 0, which costs nothing and stays zero for all inputs."""
    return is_number(x) and x == 0


def _function(name: str):
    plain = getattr(math, name)

    def apply(x: Scalar) -> Scalar:
        return plain(x) if isinstance(x, int | float) else getattr(x, name)()

    apply.__name__ = name
    apply.__doc__ = f"Return {name}(x)."
    return apply


sin = _function("sin")
cos = _function("cos")
tan = _function("tan")
sqrt = _function("sqrt")
asin = _function("asin")
acos = _function("acos")
atan = _function("atan")
exp = _function("exp")
log = _function("log")


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Return the angle of the point (x, y) in (-pi, pi]."""
    if is_number(y) and is_number(x):
        return math.atan2(y, x)
    return y.atan2(x) if not is_number(y) else x.ratan2(y)


def where(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """Return `yes` where the condition holds, else `no`; both are computed."""
    if isinstance(condition, bool | int | float):
        return yes if condition else no
    if isinstance(condition, np.ndarray | np.generic):
        return np.where(condition, yes, no)
    return condition.where(yes, no)


def absolute(x: Scalar) -> Scalar:
    """Return |x|."""
    return abs(x) if is_number(x) else where(x < 0.0, -x, x)


def maximum(first: Scalar, *others: Scalar) -> Scalar:
    """Return the largest of some values; of two, the first one if one is not a number."""
    for x in others:
        first = where(first < x, x, first)
    return first


def minimum(first: Scalar, *others: Scalar) -> Scalar:
    """Return the smallest of some values; of two, the first one if one is not a number."""
    for x in others:
        first = where(x < first, x, first)
    return first


def logical_and(a: Scalar, b: Scalar) -> Scalar:
    """Return whether two conditions hold, each a bool or the result of a comparison."""
    return a & b


def logical_or(a: Scalar, b: Scalar) -> Scalar:
    """Return whether one of two conditions holds, or both do."""
    return a | b


def logical_not(a: Scalar) -> Scalar:
    """Return whether a condition does not hold."""
    return not a if isinstance(a, bool) else ~a


def snap(x: Scalar) -> Scalar:
    """Clear the rounding noise of entries that are -1, 0 or 1 in exact arithmetic."""
    if not isinstance(x, int | float):
        return x
    for exact in (0.0, 1.0, -1.0):
        if abs(x - exact) <= NOISE:
            return exact
    return float(x)
