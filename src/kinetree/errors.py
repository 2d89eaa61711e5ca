"""Errors and warnings: each message gives the fault, its location and a remedy."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

KeyPath = tuple[str | int, ...]
"""The keys, names and item numbers that lead to a value, from the outermost: ("body", 2, "mass")."""


class Where(str):
    """A location as it appears in messages, "body 'hand', mass", together with its key path."""

    path: KeyPath

    def __new__(cls, text: str, path: KeyPath) -> Where:
        """Return the location of a path."""
        new = super().__new__(cls, text)
        new.path = path
        return new


def at(*keys: str) -> Where:
    """Return the location of a key from the keys that lead to it: "run, times"."""
    return Where(", ".join(keys), keys)


def part_at(sort: str, name: str) -> Where:
    """Return the location of a part of a mechanism: "body 'hand'"."""
    return Where(f"{sort} {name!r}", (sort, name))


def below(where: str, key: str, item: int | None = None) -> Where:
    """Return the location of a key below another location, or of an item (from 0) of the list there."""
    if item is None:
        return Where(f"{where}, {key}", (*path_of(where), key))
    return Where(f"{where}, {key} {item + 1}", (*path_of(where), key, item))


def argument(key: str, owner: str, article: str = "the ") -> Where:
    """Return the location of an argument as in messages, "the damping of JointDamper", with its key as the path."""
    return Where(f"{article}{key} of {owner}", (key,))


def path_of(where: str) -> KeyPath:
    """Return the key path of a location; a plain text has none."""
    return where.path if isinstance(where, Where) else ()


class Advice(str):
    """A text with advice for callers in Python; `command_line` has the same for readers of the command line."""

    command_line: str

    def __new__(cls, python: str, command_line: str = "") -> Advice:
        """Return the text with both wordings."""
        new = super().__new__(cls, python)
        new.command_line = command_line or python
        return new


def naming(template: str, /, **options: str) -> Advice:
    """Return a text whose fields are options with values, "" for none.

    {dt} is dt in Python and --dt on the command line; with the value 'rk4', {method} is method='rk4' and --method rk4.
    """
    python = {name: f"{name}={value!r}" if value else name for name, value in options.items()}
    flags = {name: "--" + name.replace("_", "-") for name in options}
    command = {name: f"{flags[name]} {value}" if value else flags[name] for name, value in options.items()}
    return Advice(template.format(**python), template.format(**command))


class KinetreeError(Exception):
    """Base of every error that Kinetree raises on purpose."""

    @property
    def command_line(self) -> str:
        """The message in the words of the command line, where its advice differs from that for Python."""
        return getattr(self.args[0], "command_line", str(self)) if self.args else str(self)


class ModelError(KinetreeError):
    """An impossible mechanism: the message names file, line, element, cause and remedy."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        file: str | Path | None = None,
        line: int | None = None,
        path: KeyPath = (),
    ) -> None:
        """Compose `file:line: where: what; remedy` from the parts that are given; the path is that of `where`."""
        self.what, self.where, self.remedy = what, str(where), remedy  # texts, or Advice
        self.path = path or path_of(where)
        self.file, self.line = (str(file) if file is not None else None), line
        super().__init__(Advice(self._composed(what, remedy), self._composed(*map(_for_command_line, (what, remedy)))))

    def _composed(self, what: str, remedy: str) -> str:
        place = self.file or ""
        if place and self.line is not None:
            place += f":{self.line}"
        text = ": ".join(part for part in (place, self.where, what) if part)
        return f"{text}; {remedy}" if remedy else text

    def located(self, file: str | Path | None = None, line: int | None = None) -> ModelError:
        """Return the same error with a file and line, unless it already has them."""
        return type(self)(
            self.what,
            where=self.where,
            remedy=self.remedy,
            file=self.file or file,
            line=self.line if self.line is not None else line,
            path=self.path,
        )

    def __reduce__(self):
        """Pickle the parts, so that the error keeps them in another process."""
        return (_rebuild, (type(self), self.what, self.where, self.remedy, self.file, self.line, self.path))


def _for_command_line(text: str) -> str:
    return text.command_line if isinstance(text, Advice) else text


def _rebuild(kind, what, where, remedy, file, line, path):
    return kind(what, where=where, remedy=remedy, file=file, line=line, path=path)


class AssemblyError(ModelError):
    """Loops that do not close: the message gives their names, the gap of each, the cause and the remedy."""


class InputError(KinetreeError, ValueError):
    """An argument of the wrong shape, type or range: the message gives the value and what was expected.

    `path` is that of the argument, if it is known.
    """

    path: KeyPath = ()

    def __init__(self, message: str = "", *, path: KeyPath = ()) -> None:
        """Keep the message and the path."""
        super().__init__(message)
        self.path = path


class UnreachableError(KinetreeError):
    """Targets of inverse kinematics that no position reaches: the message gives the first one and its errors.

    `result` has the nearest positions, with the targets that are reached.
    """

    def __init__(self, message: str = "", result: object = None) -> None:
        """Keep the message and the result."""
        super().__init__(message)
        self.result = result

    def __reduce__(self):
        """Pickle both parts."""
        return (type(self), (str(self), self.result))


class WriteError(InputError):
    """A file or output that cannot be written: the message gives the path, the reason and a remedy."""


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn errors of the operating system, such as a full disk, into a WriteError with the path."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(what: str | Path, error: OSError) -> WriteError:
    """Return the error for a path, or an output, that the operating system refuses."""
    return WriteError(f"{what}: cannot be written ({error.strerror or error}); choose another path or free disk space")


class UnknownNameError(ModelError, KeyError):
    """A name that does not exist: the message lists the available ones."""

    __str__ = Exception.__str__  # KeyError would print the message quoted


def unknown_name(
    kind: str, name: str, known: Iterable[str], *, elsewhere: Mapping[str, str] | None = None, **place
) -> UnknownNameError:
    """Return the error for a name that is not among `known`, with the closest match first.

    `elsewhere` has names of other programs, and the known one that means the same.
    """
    names, name = list(known), name if isinstance(name, str) else repr(name)
    close = [known for known in names[:1000] if known.casefold() == name.casefold()]
    close = close or (difflib.get_close_matches(name, names[:1000], n=1) if len(name) <= 200 else [])
    close = [same] if (same := (elsewhere or {}).get(name.lower())) else close
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(names[:30]) + (f", ... ({len(names)} in all)" if len(names) > 30 else "")
    return UnknownNameError(f"no {kind} {_short(name)!r}", remedy=f"{hint}available: {listed or 'none'}", **place)


def quote(text: str, limit: int = 60) -> str:
    """Return a text for a message: quoted, ASCII, and shortened if it is long."""
    return ascii(_short(text, limit))


def brief(x: object, limit: int = 60) -> str:
    """Return a value for a message: its repr on one line, in ASCII, shortened if it is long."""
    return _short(ascii(x).replace("\n", " "), limit)


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def warn_caller(message: str) -> None:
    """Give a RuntimeWarning at the line outside of this package that led to it, however many calls are in between."""
    frame, level = sys._getframe(), 1
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
