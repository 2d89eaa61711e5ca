"""Where the tables of a TOML text stand: the line of an element, so that an error can name it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..errors import ModelError

_HEADER = re.compile(r"^[ \t]*\[{1,2}[ \t]*[A-Za-z_]", re.MULTILINE)
_UNKNOWN = re.compile(r"no key '([^']*)'")


@dataclass
class Places:
    """Remembers which table each element came from, by the label that errors use for it."""

    text: str
    elements: list[tuple[str, str, int, str]] = field(default_factory=list)

    def add(self, label: str, header: str, nth: int = 0, key: str = "") -> str:
        """Note that `label` is (a key of) the nth table, from 0, of a header, and return the label."""
        self.elements.append((label, header, nth, key))
        return label

    def locate(self, error: ModelError, file: str) -> ModelError:
        """Return the error with its file, and with its line where the element can be found."""
        if error.line is not None:
            return error.located(file)
        line = None
        for label, header, nth, key in reversed(self.elements):
            if _starts(error.where, label):
                unknown = _UNKNOWN.match(error.what)
                key = key or _key(error.where[len(label) :]) or (unknown[1] if unknown else "")
                line = self.line(header, nth, key)
                break
        if line is None:
            line = self._mentioned(error.what)
        return error.located(file, line)

    def line(self, header: str, nth: int, key: str = "") -> int | None:
        """Return the line of a key in the nth table of a header, or else that of the header itself."""
        dotted = r"[ \t]*\.[ \t]*".join(map(re.escape, header.split(".")))
        found = self._nth(rf"^[ \t]*\[{{1,2}}[ \t]*{dotted}[ \t]*\]", nth)
        if found is None:
            listed = self._nth(rf"^[ \t]*{re.escape(header.split('.')[-1])}[ \t]*=", 0)
            return None if listed is None else self._line(self._nth(r"^[ \t]*\{", nth, listed.end()) or listed)
        if key:
            following = _HEADER.search(self.text, found.end())
            end = following.start() if following else len(self.text)
            quoted = "[\"']?" + re.escape(key) + "[\"']?"
            inside = re.compile(rf"^[ \t]*{quoted}[ \t]*[=.]", re.MULTILINE).search(self.text, found.end(), end)
            if inside:
                return self._line(inside)
        return self._line(found)

    def _mentioned(self, what: str) -> int | None:
        """Return the line of the last element whose sort and quoted name stand in a message."""
        for label, header, nth, key in reversed(self.elements):
            sort, _, quoted = label.partition(" ")
            if quoted[:1] in ("'", '"') and sort in what and quoted in what:
                return self.line(header, nth, key or "name")
        return None

    def _nth(self, pattern: str, nth: int, start: int = 0) -> re.Match | None:
        for i, match in enumerate(re.compile(pattern, re.MULTILINE).finditer(self.text, start)):
            if i == nth:
                return match
        return None

    def _line(self, match: re.Match) -> int:
        return self.text.count("\n", 0, match.start()) + 1


def _starts(where: str, label: str) -> bool:
    return where.startswith(label) and where[len(label) : len(label) + 1] in ("", ",")


def _key(rest: str) -> str:
    """Return the key out of `, key` or `, key.more`."""
    return rest.lstrip(", ").split(",")[0].split(".")[0].split(" ")[0]
