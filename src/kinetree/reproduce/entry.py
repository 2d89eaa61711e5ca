"""Entries: one table or figure of a paper each, the function that reproduces it, and its outcome."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import writing


@dataclass(frozen=True)
class Check:
    """A statement of a paper, and the result found here."""

    states: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Outcome:
    """Results of an entry: checks, tables to print (a row of headings, then rows of texts), and the files written."""

    checks: tuple[Check, ...]
    tables: tuple[tuple[str, tuple[Sequence[str], ...]], ...] = ()
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether all statements of the paper hold."""
        return bool(self.checks) and all(check.holds for check in self.checks)


@dataclass(frozen=True)
class Entry:
    """A table or figure by name: its paper's key, its content, and a function that takes the folder for files."""

    name: str
    paper: str
    what: str
    run: Callable[[Path], Outcome]


def write_csv(path: Path, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table and return its file; floats keep every digit."""
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows([repr(float(x)) if isinstance(x, float) else x for x in row] for row in rows)
    return path
