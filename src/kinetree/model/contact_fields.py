"""Fields of contacts: placements and lists of numbers, read as soon as a contact is created."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..algebra.vectors import Vector
from ..errors import ModelError, brief
from .parameters import Expression
from .part_fields import not_a_number
from .parts import Placement
from .tidying import tidy

MOST = {"heights": 10_000, "edges": 1000}
"""The largest numbers of heights and edges of a surface: all are in the compiled code, which then takes a minute."""


def placement_of(x: Any, where: str) -> Placement:
    """Return a placement; three numbers are its translation."""
    if isinstance(x, Placement):
        return tidy(x, where)
    shift: Vector = numbers_of(x, where, expressions=True)  # type: ignore[assignment]
    if len(shift) != 3:
        raise ModelError(f"{len(shift)} numbers", where=where, remedy="give three, or a Placement")
    return Placement(shift)


def is_list(x: Any) -> bool:
    """Return whether a value is a list, a tuple or an array."""
    return (isinstance(x, Sequence) and not isinstance(x, str)) or hasattr(x, "tolist")


def list_of(x: Any, where: str) -> list:
    """Return a list, tuple or array as a list, or raise ModelError."""
    if not is_list(x):
        raise ModelError(f"{brief(x)} is not a list of numbers", where=where, remedy="give a tuple of numbers")
    return list(x.tolist() if hasattr(x, "tolist") else x)


def numbers_of(x: Any, where: str, *, expressions: bool = False) -> tuple[Any, ...]:
    """Return a list of finite numbers as a tuple, or raise ModelError; `expressions` of parameters may be allowed."""
    out = []
    for value in list_of(x, where):
        if expressions and (isinstance(value, Expression) or _is_traced(value)):
            out.append(value)
            continue
        if isinstance(value, Expression):
            raise ModelError(f"'{value}' is a formula of parameters", where=where, remedy="give a number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise not_a_number(value, where)
        if not math.isfinite(value):
            raise ModelError(f"a number is {value}", where=where, remedy="give a finite number")
        out.append(float(value))
    return tuple(out)


def _is_traced(x: Any) -> bool:
    """Return whether a value stands for a number in code that is being compiled: it has a sign but no value."""
    return hasattr(x, "__neg__") and not hasattr(x, "__float__") and not isinstance(x, complex)


def refuse_many(x: Any, name: str, where: str) -> None:
    """Raise a ModelError if a surface has more heights or edges than its code can have."""
    count = sum(len(row) if is_list(row) else 1 for row in list_of(x, where))
    if count > MOST[name]:
        raise ModelError(f"{count} {name}", where=where, remedy=f"give no more than {MOST[name]}, of a coarser surface")
