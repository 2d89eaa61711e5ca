"""Fast reading of plain TOML: one `key = value` per line, below headers of one or two words, as the writer writes it.

Python's TOML reader takes some ten microseconds per sign of structure, a minute for a rope of 100,000 links. Here,
values are read by the JSON reader, which agrees with TOML on numbers, texts without backslash, and lists of them. Text
that is not plain is left to Python's reader.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from ..errors import ModelError

MAX_LINES = 2_500_000
"""Largest number of lines, and of opening brackets: a rope of 100,000 links has 2.1 million lines, read in seconds."""
MAX_ENTRIES = 200_000
"""Largest number of keys of a table, and of tables of a list: twice the links of the longest rope in a file."""
MAX_SIGNS = 300_000
"""Largest number of signs of structure that Python's TOML reader gets, for a time of some 3 s."""

_SIGNS = ",=[{.-#\\'\"\n"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KEY = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"\[(\[?)([A-Za-z0-9_-]+)(?:\.([A-Za-z0-9_-]+))?\](\]?)")
_OTHER = re.compile(r"[{\\]|null")


class _Refused(Exception):
    """Text that is not plain, or not TOML."""


def read_tables(source: str) -> dict[str, Any]:
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


def _plain(source: str) -> dict[str, Any]:
    if _CONTROL.search(source):
        raise _Refused
    root: dict[str, Any] = {}
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
        found = _HEADER.fullmatch(line)
        if not found or found[1] != found[4].replace("]", "["):
            raise _Refused
        parent, word = self.root, found[2]
        if found[3]:
            parent, word = self._inner(word), found[3]
        if len(parent) >= MAX_ENTRIES:
            raise _many(n)
        return self._last(parent, word, n) if found[1] else self._new(parent, word)

    def _inner(self, word: str) -> dict[str, Any]:
        outer: Any = self.root.get(word)
        if id(outer) not in self.own:
            raise _Refused
        return outer[-1] if isinstance(outer, list) else outer

    def _new(self, parent: dict[str, Any], word: str) -> dict[str, Any]:
        if word in parent:
            raise _Refused
        parent[word] = out = {}
        self.own.add(id(out))
        return out

    def _last(self, parent: dict[str, Any], word: str, n: int) -> dict[str, Any]:
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
