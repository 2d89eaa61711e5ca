"""`kinetree verify`: the routes to the equations of motion side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.verify.comparisons import FACTOR, QUANTITIES, Comparison, Verification
from .console import clean, counted, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"agrees": "green", "DIFFERS": "bold red", "FAILED": "bold red", "not run": "dim"}


def print_verification(console: Console, found: Verification) -> None:
    """Print differences beside their bounds, the reasons for routes that did not run, and the verdict."""
    from rich.text import Text

    if not found.nothing_moves:
        heading(console, f"{clean(found.mechanism)}: largest relative differences to the compiled recursion")
        table = make_table(console, "route", *QUANTITIES, "verdict", "", numeric=QUANTITIES)
        for row in found.rows:
            cells = [_cell(row.comparisons.get(name)) for name in QUANTITIES]
            table.add_row(row.name, *cells, Text(row.verdict, STYLES[row.verdict]), Text(row.what, "dim"))
        bounds = [found.bound(name) for name in QUANTITIES]
        table.add_row("bound", *(Text(f"{b.bound:.1e}" if b else "", "dim") for b in bounds), "", Text(_bound(), "dim"))
        print_table(console, table)
        for row in found.rows:
            if row.reason or row.failure:
                console.print(f"{row.name} {row.verdict}: {clean(row.reason or row.failure)}")
        condition = f"condition of the inertia matrix up to {found.condition:.2g}"
        console.print(f"{counted(found.states, 'random state', 'random states')}, {condition}, with external wrenches.")
    console.print(found.summary(), style="bold green" if found else "bold red")


def _cell(c: Comparison | None):
    from rich.text import Text

    if c is None:
        return ""
    return Text(f"{c.difference:.1e}", "green" if c.ratio <= 1 else "bold red")


def _bound() -> str:
    return f"{FACTOR:g} eps times the condition"
