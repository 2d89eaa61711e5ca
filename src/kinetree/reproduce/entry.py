"""An entry: one table or figure of a paper, how to make it again, and what came out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """Something that a paper states, and what was found here."""

    states: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Outcome:
    """What an entry found: checks, tables to print (a row of headings, then rows of texts), and the files it wrote."""

    checks: tuple[Check, ...]
    tables: tuple[tuple[str, tuple[Sequence[str], ...]], ...] = ()
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether all that the paper states holds."""
        return bool(self.checks) and all(check.holds for check in self.checks)


@dataclass(frozen=True)
class Entry:
    """A table or figure by name, its paper's key, what it shows, and a function of the folder for files."""

    name: str
    paper: str
    what: str
    run: Callable[[Path], Outcome]


def write_csv(path: Path, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table and return its file; floats keep every digit."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows([repr(float(x)) if isinstance(x, float) else x for x in row] for row in rows)
    return path
