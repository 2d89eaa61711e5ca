"""Printing of the command line: colors and lines on a screen, plain text in a pipe, and nothing cut off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH_OF_A_PIPE = 160
"""Width of the output in a pipe [columns], which has none itself: enough for the widest table."""
NARROW = 72
"""Width [columns] below which texts are printed as lines instead of tables, whose cells would be too narrow."""


def make_console() -> Console:
    """Return the console of stdout; lines in a pipe have a fixed width, independent of the terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_A_PIPE
    return console


def make_table(console: Console, *columns: str, numeric: tuple[str, ...] = ()) -> Table:
    """Return a table whose cells wrap instead of being cut off; in a pipe it has no drawn lines."""
    from rich import box
    from rich.table import Table

    lines = box.SIMPLE_HEAD if console.is_terminal else None
    padding = (0, 1, 0, 0) if lines else (0, 2, 0, 0)
    table = Table(box=lines, padding=padding, pad_edge=False, header_style="bold", show_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold", justify="right" if name in numeric else "left")
    return table


def print_table(console: Console, table: Any) -> None:
    """Print a table; in a pipe, without trailing spaces."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), soft_wrap=True)


def clean(text: str) -> str:
    """Return a text as one line without control characters, since names may come from untrusted files."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def counted(count: int, one: str, many: str) -> str:
    """Return a count with its noun."""
    return f"{count} {one if count == 1 else many}"


def heading(console: Console, text: str) -> None:
    """Print the heading of a section after an empty line."""
    console.print()
    console.print(text, style="bold", soft_wrap=True)
