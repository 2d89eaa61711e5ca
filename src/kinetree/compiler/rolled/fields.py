"""Fields of records (twists, matrices, tuples) as lists of scalars, and the pattern of a field in all classes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from itertools import count
from typing import Any

from ..ir.trace import Value
from .program import Key


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to every scalar of a field: of tuples, lists, types of `algebra` and plain objects."""
    if type(x) is Value or (isinstance(x, float | int) and not isinstance(x, bool)):
        return change(x)
    if isinstance(x, tuple | list):
        return type(x)(mapped(a, change) for a in x)
    if is_dataclass(x) and not isinstance(x, type):
        return type(x)(**{f.name: mapped(getattr(x, f.name), change) for f in fields(x)})
    if x is None or isinstance(x, str | bool):
        return x
    out = copy.copy(x)
    out.__dict__.update({name: mapped(a, change) for name, a in vars(x).items()})
    return out


def scalars(x: Any) -> list[Any]:
    """Return the scalars of a field in order."""
    out: list[Any] = []
    mapped(x, lambda a: out.append(a) or a)
    return out


class Patterns:
    """The patterns of the carried fields: each scalar is a number, or refers to the first scalar that always equals it.

    Only scalars that refer to themselves need storage. Numbers that are the same in all classes, such as zeros, need
    none. Nor do scalars that are equal in all classes, such as entries of symmetric matrices.
    """

    def __init__(self) -> None:
        """Start without fields."""
        self._examples: dict[str, Any] = {}
        self._entries: dict[Key, float | Key] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._examples

    @property
    def names(self) -> set[str]:
        """The names of the fields."""
        return set(self._examples)

    def begin(self, name: str, x: Any) -> None:
        """Add a field with the pattern of one class."""
        self._examples[name] = x
        for k, a in enumerate(scalars(x)):
            self._entries[name, k] = (name, k) if type(a) is Value else float(a)

    def join(self, forms: dict[str, Any]) -> bool:
        """Reduce the patterns to what they share with the fields of another class; return whether they changed."""
        first: dict[tuple, Key] = {}
        entries: dict[Key, float | Key] = {}
        for name in self._examples:
            if name not in forms:
                raise RollError(
                    f"the parent's {name!r} is of an earlier sweep; rolled code carries fields of the same sweep only"
                )
            leaves = scalars(forms[name])
            if (name, len(leaves)) in self._entries or (leaves and (name, len(leaves) - 1) not in self._entries):
                raise RollError(f"{name!r} has different numbers of scalars in two classes of bodies")
            for k, a in enumerate(leaves):
                old, new = self._entries[name, k], ("=", a.id) if type(a) is Value else float(a)
                entries[name, k] = old if old == new else first.setdefault((old, new), (name, k))
        changed = entries != self._entries
        self._entries = entries
        return changed

    def filled(self, name: str, value: Callable[[Key], Any]) -> Any:
        """Return a field with its pattern; `value` returns the scalar of a key."""
        place: Iterator[int] = count()

        def change(_: Any) -> Any:
            entry = self._entries[name, next(place)]
            return value(entry) if isinstance(entry, tuple) else entry

        return mapped(self._examples[name], change)


class RollError(Exception):
    """An algorithm contains an operation that only unrolled code supports."""
