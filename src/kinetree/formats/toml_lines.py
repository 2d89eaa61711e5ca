"""Lines of a TOML text by key path, so that an error can name the line of its cause."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from ..errors import KeyPath, ModelError

WORD = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
"""One key: bare, or in quotes."""

_WORD = re.compile(WORD)
_KEYS = rf"{WORD}(?:[ \t]*\.[ \t]*{WORD})*"
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_KEYS})[ \t]*\]")
_VALUE = re.compile(rf"[ \t]*({_KEYS})[ \t]*=[ \t]*(.*)")
_PLAIN = re.compile(r"[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*[^ \t\[]")
_ITEM = re.compile(r"[ \t]*\{")


@dataclass
class Places:
    """The lines of a text by key path, and alternative paths of its tables in errors, such as ("body", name)."""

    text: str
    others: dict[KeyPath, KeyPath] = field(default_factory=dict)

    def note(self, other: KeyPath, path: KeyPath) -> None:
        """Add an alternative path of a table or key, which errors may have."""
        self.others[other] = path

    def locate(self, error: ModelError, file: str) -> ModelError:
        """Return the error with its file, and with the line of its key path, if it has one."""
        return error.located(file, None if error.line is not None else self.line(error.path))

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key or table, or else of the innermost table that contains it."""
        for n in range(len(path), 0, -1):
            if path[:n] in self.others:
                path = self.others[path[:n]] + path[n:]
                break
        return next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), None)

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return lines_by_path(self.text)


def lines_by_path(text: str) -> dict[KeyPath, int]:
    """Return the line of each table and key; an item of a list has its number from 0 in the path.

    Items of a list in brackets are found where each starts a line of its own.
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    items: KeyPath = ()  # the path of the open list in brackets
    for n, line in enumerate(text.split("\n"), 1):
        if items and _ITEM.match(line):
            counts[items] = counts.get(items, 0) + 1
            lines[(*items, counts[items] - 1)] = n
        elif found := _PLAIN.match(line):  # the most frequent one, for which the table has its line already
            lines.setdefault((*table, found[1]), n)
            items = ()
        elif found := _HEADER.match(line):
            table, items = _table(_words(found[2]), found[1] == "[[", counts), ()
            _add(lines, table, n)
        elif found := _VALUE.match(line):
            path = (*table, *_words(found[1]))
            items = path if found[2].split("#")[0].strip() == "[" else ()
            _add(lines, path, n)
    return lines


def _add(lines: dict[KeyPath, int], path: KeyPath, line: int) -> None:
    """Add the line of a path and of the tables that contain it, unless they already have an earlier line."""
    for n in range(1, len(path) + 1):
        lines.setdefault(path[:n], line)


def _table(words: tuple[str, ...], listed: bool, counts: dict[KeyPath, int]) -> KeyPath:
    """Return the path of a header, in which a list is replaced by its last table so far."""
    path: KeyPath = ()
    for word in words[:-1]:
        path = (*path, word)
        path = (*path, counts[path] - 1) if path in counts else path
    path = (*path, words[-1])
    if not listed:
        return path
    counts[path] = counts.get(path, 0) + 1
    return (*path, counts[path] - 1)


def _words(keys: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in _WORD.findall(keys))
