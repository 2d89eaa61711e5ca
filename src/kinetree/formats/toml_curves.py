"""Curves and laws of motion from tables of a native TOML file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import ModelError, below
from ..model import Curve, Law
from .fields import known_keys, truth


def curve(table: Any, where: str) -> Curve:
    """Return a curve: points, or cosines and sines."""
    return _made(Curve, table, where)


def law(table: Any, where: str) -> Law:
    """Return the law of a coupling: points, a polynomial, or a slope with cosines and sines."""
    return _made(Law, table, where)


def pairs(part: Curve | Law) -> list[tuple[str, Any]]:
    """Return the keys and values of a part that are not the reader's defaults."""
    return [(f.name, getattr(part, f.name)) for f in fields(part) if getattr(part, f.name) != f.default]


def _made(sort: type, table: Any, where: str) -> Any:
    known_keys(table, tuple(f.name for f in fields(sort)), where)
    given: Mapping[str, Any] = table
    flags = {key: truth(given[key], below(where, key)) for key in ("closed", "periodic") if key in given}
    try:
        return sort(**{**given, **flags})
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None
