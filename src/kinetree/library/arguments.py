"""Numbers that users give to builders of mechanisms: checked once, with errors that say what was expected."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from ..algebra.vectors import Vector
from ..errors import InputError

MOST = 2_000_000
"""A body takes some kilobytes of Python: more of them than this would use up the memory before anything is said."""


def whole(n: Any, label: str, what: str, *, least: int = 1) -> int:
    """Return a whole number of what is counted, 1 or 0 at least."""
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"{label} is {n!r}; expected a whole number of {what}s") from None
    if count > MOST:
        raise InputError(f"{label} is {count:,}; expected no more than {MOST:,} {what}s")
    if count < least:
        raise InputError(f"{label} is {count}; expected " + (f"at least one {what}" if least else "0 or more"))
    return count


def positive(x: Any, label: str) -> float:
    """Return a finite number above 0."""
    if not isinstance(x, float | int) or not 0 < x < math.inf:
        raise InputError(f"the {label} is {x!r}; expected a number above 0")
    return float(x)


def not_negative(x: Any, label: str) -> float:
    """Return a finite number, 0 or more."""
    if not isinstance(x, float | int) or not 0 <= x < math.inf:
        raise InputError(f"the {label} is {x!r}; expected a number, 0 or more")
    return float(x)


def vector(values: Sequence[float], label: str) -> Vector:
    """Return three finite numbers."""
    try:
        numbers = tuple(float(x) for x in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
        raise InputError(f"the {label} is {values!r}; expected three finite numbers")
    return numbers  # type: ignore[return-value]
