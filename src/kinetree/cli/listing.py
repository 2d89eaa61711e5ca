"""`kinetree list`: the built-in mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.mechanism import Mechanism
from .console import NARROW, clean, counted, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_library(console: Console, mechanisms: Sequence[tuple[str, Mechanism]]) -> None:
    """Print names, sizes, descriptions and sources: a table, or blocks where there is no room for one."""
    if console.width < NARROW:
        for name, mechanism in mechanisms:
            console.print(f"{clean(name)}  ({_size(mechanism)})", style="bold")
            console.print(clean(mechanism.description))
            console.print(f"Source: {clean(mechanism.source)}\n", style="dim")
        return
    table = make_table(console, "name", "size", "description", "source")
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    table.columns[2].ratio = table.columns[3].ratio = 1
    table.expand, table.padding = True, (0, 2, 1, 0)
    for name, mechanism in mechanisms:
        table.add_row(clean(name), _size(mechanism), clean(mechanism.description), clean(mechanism.source))
    print_table(console, table)


def _size(mechanism: Mechanism) -> str:
    return f"{counted(len(mechanism.bodies), 'body', 'bodies')}, nv = {mechanism.nv}"
