"""Errors that say what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class KinetreeError(Exception):
    """Base of every error that Kinetree raises on purpose."""


class ModelError(KinetreeError):
    """A mechanism that cannot be: the message names file, line, element, cause and remedy."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        file: str | Path | None = None,
        line: int | None = None,
    ) -> None:
        """Compose `file:line: where: what; remedy` out of the parts that are known."""
        self.what, self.where, self.remedy = what, where, remedy
        self.file, self.line = (str(file) if file is not None else None), line
        super().__init__(self._compose())

    def _compose(self) -> str:
        place = self.file or ""
        if place and self.line is not None:
            place += f":{self.line}"
        text = ": ".join(part for part in (place, self.where, self.what) if part)
        return f"{text}; {self.remedy}" if self.remedy else text

    def located(self, file: str | Path | None = None, line: int | None = None) -> ModelError:
        """Return the same error with a file and line, where it does not have them yet."""
        return type(self)(
            self.what,
            where=self.where,
            remedy=self.remedy,
            file=self.file or file,
            line=self.line if self.line is not None else line,
        )

    def __reduce__(self):
        """Keep the parts across processes."""
        return (_rebuild, (type(self), self.what, self.where, self.remedy, self.file, self.line))


def _rebuild(kind, what, where, remedy, file, line):
    return kind(what, where=where, remedy=remedy, file=file, line=line)


class AssemblyError(ModelError):
    """Loops that do not close: the message names them, how far each is open, what is the cause, and what to do."""


class InputError(KinetreeError, ValueError):
    """An argument of the wrong shape, type or range; says what was expected and what came."""


class UnknownNameError(ModelError, KeyError):
    """A name that the mechanism does not have; lists the known ones."""

    __str__ = Exception.__str__  # KeyError would print the message quoted


def unknown_name(kind: str, name: str, known: Iterable[str], **place) -> UnknownNameError:
    """Build the error for a name that is not among `known`, with the likely intended one first."""
    names, name = list(known), name if isinstance(name, str) else repr(name)
    close = difflib.get_close_matches(name, names[:1000], n=1) if len(name) <= 200 else []
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(names[:30]) + (f", ... ({len(names)} in all)" if len(names) > 30 else "")
    return UnknownNameError(f"no {kind} {_short(name)!r}", remedy=f"{hint}available: {listed or 'none'}", **place)


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
