"""Lines of a TOML text by key path, so that an error can name the line of its cause."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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

    @contextmanager
    def errors_in(self, file: str) -> Iterator[None]:
        """Let the errors of a reader name the file, and the line of their cause."""
        try:
            yield
        except RecursionError:
            remedy = "write flat tables and short formulas"
            raise ModelError("the nesting is too deep", remedy=remedy, file=file) from None
        except OverflowError:
            raise ModelError("a number is too large to compute with", remedy="use SI units", file=file) from None
        except ModelError as error:
            raise (error if error.file else self.locate(error, file)) from None

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


# --- Fast reading of plain TOML: one `key = value` per line, below headers of one or two words, as the writer writes
# it.
#
# Python's TOML reader takes some ten microseconds per sign of structure, a minute for a rope of 100,000 links. Here,
# values are read by the JSON reader, which agrees with TOML on numbers, texts without backslash, and lists of them.
# Text that is not plain is left to Python's reader.

MAX_LINES = 2_500_000
"""Largest number of lines, and of opening brackets: a rope of 100,000 links has 2.1 million lines, read in seconds."""
MAX_ENTRIES = 200_000
"""Largest number of keys of a table, and of tables of a list: twice the links of the longest rope in a file."""
MAX_SIGNS = 300_000
"""Largest number of signs of structure that Python's TOML reader gets, for a time of some 3 s."""

_SIGNS = ",=[{.-#\\'\"\n"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KEY = re.compile(r"[A-Za-z0-9_-]+")
_HEADER_of_toml_plain = re.compile(r"\[(\[?)([A-Za-z0-9_-]+)(?:\.([A-Za-z0-9_-]+))?\](\]?)")
_OTHER = re.compile(r"[{\\]|null")


class _Refused(Exception):
    """Text that is not plain, or not TOML."""


def read_tables(source: str) -> dict[str, object]:
    """Return the tables of a TOML text; errors are those of `tomllib`, and ModelError for a text that is too large."""
    source = source.replace("\r\n", "\n")
    for sort, mark in (("lines", "\n"), ("brackets", "[")):
        if source.count(mark) > MAX_LINES:
            raise ModelError(
                f"the text has {source.count(mark):,} {sort}",
                remedy=f"give no more than {MAX_LINES:,}; long chains are built by kt.rope and kt.chain",
            )
    try:
        return _plain(source)
    except _Refused:
        _bound(_signs(source))
        return tomllib.loads(source)


def _plain(source: str) -> dict[str, object]:
    if _CONTROL.search(source):
        raise _Refused
    root: dict[str, object] = {}
    table, made, signs = root, _Made(root), 0
    for n, line in enumerate(source.split("\n"), 1):
        line = line.strip(" \t")
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            table = made.table(line, n)
            continue
        key, _, value = line.partition("=")
        key = key.rstrip(" \t")
        if key in table or not _KEY.fullmatch(key):
            raise _Refused
        if len(table) >= MAX_ENTRIES:  # here and not in a function: this runs for each of millions of lines
            raise _many(n)
        try:
            table[key] = _value(value.lstrip(" \t"))
        except ValueError:  # not JSON
            signs += _signs(value)
            _bound(signs)
            table[key] = _other_value(value)
    return root


class _Made:
    """The tables and lists of tables that headers made so far."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.own: set[int] = set()  # the identities of these tables and lists, which live as long as the root

    def table(self, line: str, n: int) -> dict[str, Any]:
        """Return the table below a header, which is line n."""
        found = _HEADER_of_toml_plain.fullmatch(line)
        if not found or found[1] != found[4].replace("]", "["):
            raise _Refused
        parent, word = self.root, found[2]
        if found[3]:
            parent, word = self._inner(word), found[3]
        if len(parent) >= MAX_ENTRIES:
            raise _many(n)
        return self._last(parent, word, n) if found[1] else self._new(parent, word)

    def _inner(self, word: str) -> dict[str, object]:
        outer: Any = self.root.get(word)
        if id(outer) not in self.own:
            raise _Refused
        return outer[-1] if isinstance(outer, list) else outer

    def _new(self, parent: dict[str, Any], word: str) -> dict[str, object]:
        if word in parent:
            raise _Refused
        parent[word] = out = {}
        self.own.add(id(out))
        return out

    def _last(self, parent: dict[str, Any], word: str, n: int) -> dict[str, object]:
        if word not in parent:
            parent[word] = []
            self.own.add(id(parent[word]))
        listed = parent[word]
        if id(listed) not in self.own or not isinstance(listed, list):
            raise _Refused
        if len(listed) >= MAX_ENTRIES:
            raise _many(n)
        listed.append({})
        return listed[-1]


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not TOML")


_decode = json.JSONDecoder(parse_constant=_refuse).decode  # NaN and Infinity are words of Python's JSON alone


def _value(text: str) -> Any:
    if _OTHER.search(text):
        raise ValueError("not a value of both JSON and TOML")
    return _decode(text)


def _other_value(text: str) -> Any:
    """Return a value that is complete on its line."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except ValueError:
        raise _Refused from None


def _many(line: int) -> ModelError:
    return ModelError(
        f"a table or list has more than {MAX_ENTRIES:,} entries",
        remedy="give fewer; long chains are built by kt.rope and kt.chain",
        line=line,
    )


def _signs(text: str) -> int:
    return sum(map(text.count, _SIGNS))


def _bound(signs: int) -> None:
    if signs > MAX_SIGNS:
        raise ModelError(
            f"the text has {signs:,} commas, brackets and other signs that are not in plain lines, "
            f"and {MAX_SIGNS:,} can be read",
            remedy="write each key = value on one line, below [table] or [[table]], with numbers, texts or lists",
        )
