"""`kinetree reproduce`: the statements of the papers, and the results found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..reproduce.entry import Entry, Outcome
from .console import heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_entries(console: Console, entries: Iterable[Entry]) -> None:
    """Print the list of what can be reproduced."""
    table = make_table(console, "name", "paper", "what")
    for entry in entries:
        table.add_row(entry.name, entry.paper, entry.what)
    print_table(console, table)
    console.print("kinetree reproduce NAME, or a paper, or speed (the timings of several papers), or all", style="dim")


def print_outcome(console: Console, entry: Entry, outcome: Outcome) -> None:
    """Print an entry's tables, checks, notes and files."""
    heading(console, f"{entry.name}: {entry.what}")
    for title, (columns, *rows) in outcome.tables:
        console.print(title, style="italic")
        table = make_table(console, *columns)
        for row in rows:
            table.add_row(*row)
        print_table(console, table)
    for check in outcome.checks:
        console.print(f"{_word(check.holds)}  states: {check.states}; found: {check.found}", style=_style(check.holds))
    for note in outcome.notes:
        console.print(note, style="dim")
    for file in outcome.files:
        console.print(str(file), soft_wrap=True)


def print_verdicts(console: Console, outcomes: Iterable[tuple[Entry, Outcome]]) -> None:
    """Print one line per entry."""
    heading(console, "Verdicts")
    for entry, outcome in outcomes:
        console.print(f"{_word(outcome.passes)}  {entry.name}", style=_style(outcome.passes))


def _word(holds: bool) -> str:
    return "pass" if holds else "FAIL"


def _style(holds: bool) -> str:
    return "green" if holds else "bold red"
