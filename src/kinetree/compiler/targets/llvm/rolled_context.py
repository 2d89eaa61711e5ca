"""Access of rolled code to its context, an array of 64-bit integers, and the module that its functions form."""

from __future__ import annotations

from typing import Any

from ...rolled.context import Layout
from . import vector_math
from .instructions import Writer
from .number_types import Lanes


class Context(Layout):
    """The layout of the context, with the assembly that reads it."""

    def place(self, w: Any, name: str) -> str:
        """Write the address of a field."""
        return w.new(f"getelementptr i64, ptr %ctx, i64 {self.places[name]}")

    def value(self, w: Any, name: str) -> str:
        """Write the load of a field."""
        return w.new(f"load i64, ptr {self.place(w, name)}")

    def pointer(self, w: Any, name: str) -> str:
        """Write the load of a field that is a pointer."""
        return w.new(f"load ptr, ptr {self.place(w, name)}")

    def region(self, w: Any, lanes: Lanes, name: str) -> str:
        """Write the address of a part of the workspace %ws."""
        return vector_at(w, lanes, "%ws", self.value(w, f"{name}@"))


def vector_at(w: Any, lanes: Lanes, base: str, index: str | int) -> str:
    """Write the address of a vector."""
    return w.new(f"getelementptr {lanes.vector}, ptr {base}, i64 {index}")


def splat(w: Any, lanes: Lanes, x: str) -> str:
    """Write a vector with a scalar in every lane."""
    one = w.new(f"insertelement {lanes.vector} poison, {lanes.scalar} {x}, i32 0")
    return w.new(f"shufflevector {lanes.vector} {one}, {lanes.vector} poison, <{lanes.count} x i32> zeroinitializer")


class Module:
    """The functions of a module, with their declarations."""

    def __init__(self) -> None:
        """Start without functions."""
        self.parts: list[str] = []
        self.used: set[str] = set()
        self._library: dict[Lanes, Writer] = {}

    def add(self, head: str, w: Any, lanes: Lanes | None = None) -> None:
        """Add a function by its head and text; functions of the C library are declared for their numbers of lanes."""
        text = "\n".join([f"define {head} #0 {{", "entry:", *w.lines, "}"])
        notes = {u for u in w.used if u.startswith(";")}
        if lanes is not None:
            text = text.replace("@exact_", f"@exact{lanes.count}_")
            self._library.setdefault(lanes, Writer(lanes)).used |= notes
        self.used |= w.used - notes
        self.parts.append(text)

    def text(self, tail: str) -> str:
        """Return the assembly of the module."""
        parts = list(self.parts)
        for lanes, w in self._library.items():
            text = vector_math.exact_functions(lanes, w).replace("@exact_", f"@exact{lanes.count}_")
            parts += [line for line in text.splitlines() if not line.startswith(("declare", "!0"))]
            self.used |= {line for line in text.splitlines() if line.startswith("declare")}
        return "\n".join([*parts, '!0 = !{!"branch_weights", i32 1, i32 100000}', *sorted(self.used), tail])
