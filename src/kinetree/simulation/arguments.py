"""Arguments of forces and references: mechanisms, and one number or one per degree of freedom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from .._support.checks import items, number
from ..errors import InputError, ModelError, argument, brief, path_of
from ..model.mechanism import Mechanism
from ..model.parameters import Expression, Number
from ..model.part_fields import formula
from ..system import System

if TYPE_CHECKING:
    from ..algebra.scalars import Scalar
    from ..algebra.vectors import Vector

Coefficient = Number | str
"""A number, an expression of the parameters of a mechanism, or a formula of them as text."""

M = TypeVar("M", bound="Mechanism | System")
"""A Mechanism or a System, whichever was given."""


def coefficient(x: object, what: str, *, least: float = -math.inf) -> Scalar:
    """Return a checked number, or an expression of the parameters of a mechanism, which may be a formula in text."""
    try:
        x = formula(x, what)
    except ModelError as error:
        raise InputError(str(error), path=path_of(what)) from None
    return x if isinstance(x, Expression) else number(x, what, least=least)


def coefficients(x: object, what: str, *, least: float = -math.inf) -> tuple[Scalar, ...]:
    """Return one number or expression, or several, as a tuple."""
    return tuple(coefficient(item, what, least=least) for item in items(x, what))


def vector(x: object, what: str) -> Vector:
    """Return three numbers or expressions."""
    found = coefficients(x, what)
    if len(found) != 3:
        raise InputError(f"{what} has {len(found)} numbers; give 3", path=path_of(what))
    return found[0], found[1], found[2]


def spread(values: Sequence[Scalar], count: int, what: str) -> tuple[Scalar, ...]:
    """Return `count` numbers: those given, or one repeated."""
    if len(values) not in (1, count):
        choice = "one" if count == 1 else f"one, or {count}"
        raise InputError(f"{what} has {len(values)} numbers; give {choice}", path=path_of(what))
    return tuple(values) * (count if len(values) == 1 else 1)


def together(named: dict[str, tuple[float, ...]], owner: str) -> dict[str, tuple[float, ...]]:
    """Return tuples of one common length; a single number is repeated."""
    count = max(map(len, named.values()))
    return {name: spread(values, count, argument(name, owner, "")) for name, values in named.items()}


def mechanism_of(x: object) -> Mechanism:
    """Return a Mechanism, also from a System; refuse other objects."""
    found = getattr(x, "mechanism", x)
    if not isinstance(found, Mechanism):
        raise InputError(f"mechanism is {brief(x)}; give a System or a Mechanism, such as kt.load(name or file)")
    return found


def like(given: M, mechanism: Mechanism) -> M:
    """Return a mechanism in the form in which another one was given, as a System or a Mechanism."""
    if isinstance(given, Mechanism):
        return mechanism  # type: ignore[return-value]
    return type(given)(mechanism, given.report)
