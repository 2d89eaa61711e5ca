"""Fields of records (twists, matrices, tuples) as lists of scalars, and the form that a field has in all classes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from itertools import count
from typing import Any

from ..ir.trace import Value
from .program import Key


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return a field with every scalar changed: of tuples, lists, the algebra's types and plain objects."""
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
    """The forms of the fields that bodies hand on: for each scalar a number, or the first scalar that equals it.

    Only the latter need room. Numbers that are the same in all forms, such as zeros, need none, nor do scalars that are
    one in all: those of symmetric matrices, or angular velocities that two fields have.
    """

    def __init__(self) -> None:
        """Start without fields."""
        self._examples: dict[str, Any] = {}
        self._entries: dict[Key, float | Key] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._examples

    @property
    def names(self) -> set[str]:
        """The fields."""
        return set(self._examples)

    def begin(self, name: str, x: Any) -> None:
        """Take a field, of one form."""
        self._examples[name] = x
        for k, a in enumerate(scalars(x)):
            self._entries[name, k] = (name, k) if type(a) is Value else float(a)

    def join(self, forms: dict[str, Any]) -> bool:
        """Keep what these forms of the fields share with the others; return whether the form has changed."""
        first: dict[tuple, Key] = {}
        entries: dict[Key, float | Key] = {}
        for name in self._examples:
            if name not in forms:
                raise RollError(f"the parent's {name!r} comes from an earlier sweep")
            leaves = scalars(forms[name])
            if (name, len(leaves)) in self._entries or (leaves and (name, len(leaves) - 1) not in self._entries):
                raise RollError(f"{name!r} has another number of scalars here than there")
            for k, a in enumerate(leaves):
                old, new = self._entries[name, k], ("=", a.id) if type(a) is Value else float(a)
                entries[name, k] = old if old == new else first.setdefault((old, new), (name, k))
        changed = entries != self._entries
        self._entries = entries
        return changed

    def filled(self, name: str, value: Callable[[Key], Any]) -> Any:
        """Return a field of its form; `value` gives the scalar of a key."""
        place: Iterator[int] = count()

        def change(_: Any) -> Any:
            entry = self._entries[name, next(place)]
            return value(entry) if isinstance(entry, tuple) else entry

        return mapped(self._examples[name], change)


class RollError(Exception):
    """A page does something that only unrolled code can."""
