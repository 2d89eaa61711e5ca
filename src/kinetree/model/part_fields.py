"""Fields of parts: their counts of numbers, and the checks made as soon as a part is created."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ModelError, below, brief, part_at

MAX_NAME = 1000
"""Longest name [characters]: no real name is longer, and messages stay readable."""
VECTORS = {"com": 3, "translation": 3, "axis": 3, "axis2": 3, "inertia": 6, "point_a": 3, "point_b": 3, "gravity": 3}
"""Fields with a fixed count of numbers, and the count."""
NUMBERS = ("mass", "pitch", "length", "offset", "value")
OPTIONAL = ("radius", "angle")
"""Numbers that some kinds of a part do not have, and which are None there."""
AXES = {
    f"{sign}{letter}": tuple((-1.0 if sign else 1.0) * (k == i) + 0.0 for k in range(3))
    for sign in ("", "-")
    for i, letter in enumerate("xyz")
}
"""Directions of the coordinate axes by letter, as in [Goncalves2023] table 2."""


def check_part(part: Any, sort: str) -> None:
    """Refuse a part with an impossible name, a list of the wrong length, or None or a text in place of a number."""
    check_name(part.name, sort)
    for field, value in vars(part).items():
        if field in VECTORS:
            if type(value) is not tuple or len(value) != VECTORS[field]:
                if value is not None or field != "axis2":
                    check_count(value, field, part_at(sort, part.name))
        elif field in NUMBERS and (value is None or isinstance(value, str)):
            raise not_a_number(value, below(part_at(sort, part.name), field))
        elif field in OPTIONAL and isinstance(value, str):
            raise not_a_number(value, below(part_at(sort, part.name), field))


def axis_of(letter: str, where: str) -> tuple:
    """Return the direction of an axis given by letter: x, y, z, -x, -y or -z."""
    if letter not in AXES:
        raise ModelError(
            f"{brief(letter)} is not an axis", where=where, remedy=f"give {', '.join(AXES)}, or three numbers"
        )
    return AXES[letter]


def spell_axes(part: Any, sort: str) -> None:
    """Replace axes of a new part that are given by letter by their directions."""
    for field in ("axis", "axis2"):
        value = getattr(part, field)
        if isinstance(value, str):
            object.__setattr__(part, field, axis_of(value, below(part_at(sort, part.name), field)))


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not in `taken`, and add it there."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def check_name(name: Any, sort: str, *, least: int = 1) -> None:
    """Refuse a name that is not a text, or not of `least` to MAX_NAME characters."""
    if not isinstance(name, str):
        raise ModelError(f"the name of a {sort} is {brief(name)}, not a text", remedy="give a name in quotes")
    if not least <= len(name) <= MAX_NAME:
        found = f"a name of {len(name)} characters" if name else "no name"
        raise ModelError(f"a {sort} has {found}", remedy=f"give it a name of 1 to {MAX_NAME} characters")


def check_count(value: Any, field: str, where: str) -> list:
    """Return the numbers of a field with a fixed count as a list, or raise ModelError."""
    label = below(where, field)
    items = as_list(value, label)
    if len(items) == VECTORS[field]:
        return items
    if field == "inertia":
        what = f"the inertia has {len(items)} numbers"
        raise ModelError(what, where=where, remedy="give xx, yy, zz, xy, yz, zx")
    raise ModelError(f"{len(items)} numbers", where=label, remedy=f"give {VECTORS[field]}")


def as_list(value: Any, where: str) -> list:
    """Return a list, tuple or array as a list, or raise ModelError."""
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    raise ModelError(f"{brief(value)} is not a list of numbers", where=where, remedy="give a tuple of numbers")


def not_a_number(value: Any, where: str) -> ModelError:
    """Return the error for a value in place of a number."""
    return ModelError(f"{brief(value)} is not a number", where=where, remedy="give a number, or parse(...) a formula")
