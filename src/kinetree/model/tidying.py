"""Conversion of given parts, with lists and NumPy numbers, to plain tuples and floats; other types are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from .._support.checks import plain
from ..algebra.scalars import Scalar
from ..errors import ModelError, Where, at, below, brief, part_at
from .parameters import Expression
from .part_fields import NUMBERS, VECTORS, as_list, check_count, formula, not_a_number
from .parts import Body, Joint, Limits, Placement

LISTS = ("lower", "upper", "velocity", "effort", "damping", "friction", "armature", "size", "color")
TEXTS = ("name", "kind", "parent", "child", "body", "body_a", "body_b", "joint", "sequence", "role", "file")
PLACEMENTS = ("placement", "placement_a", "placement_b", "child_placement")
PARTS = {**dict.fromkeys(PLACEMENTS, Placement), "limits": Limits}
"""Fields that are parts themselves, and their types."""
OMITTED = ("flexible", "axis2", "child_placement", "color", "ratio", "elastic")
"""Fields that may be None."""


def tidy_list(given: object, kind: type, sort: str) -> tuple[Any, ...]:
    """Return an iterable of parts of one kind as a tuple of tidy parts, or raise ModelError."""
    if isinstance(given, kind | str) or not isinstance(given, Iterable):
        raise ModelError(
            f"{brief(given)} where a list of kt.{kind.__name__} belongs",
            where=at(sort),
            remedy="put the parts in brackets",
        )
    parts = []
    for i, part in enumerate(given):
        if not isinstance(part, kind):
            raise ModelError(
                f"{brief(part)} is not a kt.{kind.__name__}",
                where=_numbered(sort, i),
                remedy=f"give a list of kt.{kind.__name__}",
            )
        if not _is_tidy(part):
            part = tidy(part, part_at(sort, part.name) if isinstance(part.name, str) else _numbered(sort, i))
        parts.append(part)
    return tuple(parts)


def _numbered(sort: str, i: int) -> Where:
    return Where(f"{sort} {i + 1}", (sort, i))


def tidy(part: Any, where: str) -> Any:
    """Return a part whose numbers are floats or expressions in tuples of the right length, or raise ModelError."""
    if _is_tidy(part):
        return part
    return replace(part, **{f.name: _tidied(f.name, getattr(part, f.name), where) for f in fields(part)})


def _tidied(name: str, value: object, where: str) -> Any:
    """Return the tidy value of a field of a part, or raise ModelError."""
    label = below(where, name)
    if value is None and name in OMITTED:
        return None
    if name in TEXTS and not isinstance(value, str):
        raise ModelError(f"{brief(value)} is not a text", where=label, remedy="give a name in quotes")
    if name in PARTS and not isinstance(value, PARTS[name]):
        kind = f"kt.{PARTS[name].__name__}"
        raise ModelError(f"{brief(value)} is not a {kind}", where=label, remedy=f"leave it out, or give {kind}()")
    if name in VECTORS:
        return tuple(number(x, label) for x in check_count(value, name, where))
    if name in NUMBERS:
        return number(value, label)
    if name in LISTS:
        return vector(value, None, label)
    if name == "rotation":
        rows = as_list(value, label)
        if len(rows) != 3:
            raise _count(rows, 3, label, "rows")
        return tuple(vector(row, 3, label) for row in rows)
    if name in ("terms", "coefficients"):
        return tuple((str(key), number(x, label)) for key, x in as_list(value, label))
    if name == "shapes":
        return tuple(tidy(shape, below(where, "shape")) for shape in as_list(value, label))
    if is_dataclass(value) and name not in ("flexible", "elastic") and not isinstance(value, Expression):
        return tidy(value, where if isinstance(value, Placement) else label)
    return value


def _is_tidy(part: object) -> bool:
    """Return whether a body, joint or placement is already tidy: a fast check for mechanisms of very many parts."""
    return type(part) in (Body, Joint, Placement, Limits) and all(map(_is_tidy_field, vars(part), vars(part).values()))


def _is_tidy_field(name: str, value: Any) -> bool:
    if value is None:
        return name in OMITTED
    if name in VECTORS:
        return _floats(value) and len(value) == VECTORS[name]
    if name in LISTS:
        return _floats(value)
    if name in NUMBERS:
        return type(value) is float
    if name == "rotation":
        return type(value) is tuple and len(value) == 3 and all(_floats(row) and len(row) == 3 for row in value)
    if name == "shapes":
        return value == ()
    return type(value) is str or _is_tidy(value)


def _floats(values: object) -> bool:
    return type(values) is tuple and all(type(x) is float for x in values)


def vector(value: object, count: int | None, where: str) -> tuple:
    """Return numbers as a tuple; their count is checked if `count` is given."""
    items = as_list(value, where)
    if count is not None and len(items) != count:
        raise _count(items, count, where, "numbers")
    return tuple(number(x, where) for x in items)


def tidy_guess(guess: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return guessed coordinates, given by joint name or as pairs, as pairs (name, tuple of plain numbers)."""
    pairs = guess.items() if isinstance(guess, Mapping) else guess
    return tuple(
        (str(name), _coordinates(value, Where(f"guess of joint {name!r}", ("guess", name)))) for name, value in pairs
    )


def _coordinates(value: object, where: str) -> tuple[float, ...]:
    items = value if isinstance(value, list | tuple | np.ndarray) else [value]
    if texts := [x for x in items if isinstance(x, str)]:
        raise ModelError(f"{brief(texts[0])} is not a number", where=where, remedy="give plain numbers")
    numbers = vector(items, None, where)
    if any(isinstance(x, Expression) for x in numbers):
        raise ModelError("a guess depends on parameters", where=where, remedy="give plain numbers")
    return numbers


def number(value: object, where: str) -> Scalar:
    """Return a number as a float, or an expression unchanged."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return formula(value, where)
    found = plain(value)
    if found is not None:
        return found
    raise not_a_number(value, where)


def _count(items: list, count: int, where: str, what: str) -> ModelError:
    return ModelError(f"{len(items)} {what}", where=where, remedy=f"give {count}")
