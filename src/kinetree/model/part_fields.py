"""Fields of parts: their counts of numbers, and the checks made as soon as a part is created."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Scalar, is_number
from ..algebra.vectors import to_moments
from ..errors import ModelError, below, brief, part_at
from .parameters import parse

MAX_NAME = 1000
"""Longest name [characters]: no real name is longer, and messages stay readable."""
VECTORS = {"com": 3, "translation": 3, "axis": 3, "axis2": 3, "inertia": 6, "point_a": 3, "point_b": 3, "gravity": 3}
"""Fields with a fixed count of numbers, and the count."""
NUMBERS = ("mass", "pitch", "length", "offset", "value")
OPTIONAL = ("radius", "angle", "ratio")
"""Numbers that some kinds of a part do not have, and which are None there."""
PER_FREEDOM = ("damping", "friction", "armature")
"""Fields with a number per degree of freedom."""
PAIRS = ("terms", "coefficients")
"""Fields with numbers by name."""
READ = (*VECTORS, *NUMBERS, *OPTIONAL, *PER_FREEDOM, *PAIRS)
"""Fields whose numbers may be given as formulas in text."""
AXES = {
    f"{sign}{letter}": tuple((-1.0 if sign else 1.0) * (k == i) + 0.0 for k in range(3))
    for sign in ("", "-")
    for i, letter in enumerate("xyz")
}
"""Directions of the coordinate axes by letter, as in [Goncalves2023] table 2."""


def check_part(part: Any, sort: str) -> None:
    """Refuse a part with an impossible name, a list of the wrong length, or None in place of a number.

    Formulas in text become expressions, an inertia as a 3x3 matrix its six numbers, and one number of damping, friction
    or armature a number per degree of freedom.
    """
    check_name(part.name, sort)
    for field, value in vars(part).items():
        if field not in READ:
            continue
        given = _read(field, value, part, part_at(sort, part.name))
        if given is not value:
            object.__setattr__(part, field, given)
        if field in VECTORS:
            if type(given) is not tuple or len(given) != VECTORS[field]:
                if given is not None or field != "axis2":
                    check_count(given, field, part_at(sort, part.name))
        elif field in NUMBERS and given is None:
            raise not_a_number(given, below(part_at(sort, part.name), field))


def _read(field: str, value: object, part: Any, where: str) -> Any:
    """Return the value of a field with its formulas read; the same object if there is nothing to read."""
    label = below(where, field)
    if field in PAIRS:
        return _pairs(value, label)
    if field in PER_FREEDOM and value is not None and not isinstance(value, list | tuple | np.ndarray):
        kind = joint_kinds.KINDS.get(part.kind)
        return (formula(value, label),) * (1 if kind is None else kind.NV)
    if field == "inertia" and isinstance(value, list | tuple | np.ndarray) and len(value) == 3 and np.ndim(value[0]):
        rows = value.tolist() if isinstance(value, np.ndarray) else value
        return moments([[formula(x, label) for x in row] for row in rows], where)
    if isinstance(value, list | tuple) and any(type(x) is str for x in value):
        return tuple(formula(x, label) for x in value)
    return formula(value, label) if isinstance(value, str) else value


def _pairs(value: object, where: str) -> Any:
    """Return numbers by name, given as pairs or as a mapping, with formulas read."""
    given = tuple(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(given, list | tuple) or not all(isinstance(x, list | tuple) and len(x) == 2 for x in given):
        raise ModelError(
            f"{brief(value)} is not a list of names with numbers", where=where, remedy='give {"name": number, ...}'
        )
    return tuple((key, formula(x, where)) for key, x in given) if any(isinstance(x[1], str) for x in given) else given


def formula(value: object, where: str) -> Scalar:
    """Return the expression of a formula in text, such as "l1 / 2"; other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return parse(value)
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None


def moments(rows: list[list[Scalar]], where: str) -> tuple:
    """Return (xx, yy, zz, xy, yz, zx) of a symmetric 3x3 matrix."""
    if [len(row) for row in rows] != [3, 3, 3]:
        raise ModelError("the inertia is no 3x3 matrix", where=where, remedy="give three rows of three numbers")
    for i, k in ((0, 1), (1, 2), (2, 0)):
        x, y = rows[i][k], rows[k][i]
        if not (x == y or (is_number(x) and is_number(y) and math.isclose(x, y, rel_tol=1e-9))):
            raise ModelError(f"the inertia is not symmetric: {x} and {y}", where=where, remedy="make them equal")
    a, b, c = (tuple(row) for row in rows)
    return to_moments((a, b, c))


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


def check_name(name: object, sort: str, *, least: int = 1) -> None:
    """Refuse a name that is not a text, or not of `least` to MAX_NAME characters."""
    if not isinstance(name, str):
        raise ModelError(f"the name of a {sort} is {brief(name)}, not a text", remedy="give a name in quotes")
    if not least <= len(name) <= MAX_NAME:
        found = f"a name of {len(name)} characters" if name else "no name"
        raise ModelError(f"a {sort} has {found}", remedy=f"give it a name of 1 to {MAX_NAME} characters")


def check_count(value: object, field: str, where: str) -> list:
    """Return the numbers of a field with a fixed count as a list, or raise ModelError."""
    label = below(where, field)
    items = as_list(value, label)
    if len(items) == VECTORS[field]:
        return items
    if field == "inertia":
        what = f"the inertia has {len(items)} numbers"
        raise ModelError(what, where=where, remedy="give xx, yy, zz, xy, yz, zx, or a 3x3 matrix")
    raise ModelError(f"{len(items)} numbers", where=label, remedy=f"give {VECTORS[field]}")


def as_list(value: object, where: str) -> list:
    """Return a list, tuple or array as a list, or raise ModelError."""
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    raise ModelError(f"{brief(value)} is not a list of numbers", where=where, remedy="give a tuple of numbers")


def not_a_number(value: object, where: str) -> ModelError:
    """Return the error for a value in place of a number."""
    return ModelError(f"{brief(value)} is not a number", where=where, remedy="give a number, or a formula in quotes")
