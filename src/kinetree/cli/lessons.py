"""The command `kinetree lesson`: a guided page that runs alone, or the list of lessons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def lesson(
    name: Annotated[
        str | None, typer.Argument(help="The name of a lesson. Without one, all lessons are listed.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page. Default: NAME.html.")] = None,
) -> None:
    """Write a lesson: a live page with guided steps."""
    from ..lessons import find, names

    if name is None:
        for each in names():
            found = find(each)
            print(f"{each:<18} {found.minutes:>3} min  {found.title}. {found.summary}")
        return
    from ..view.page_lesson import lesson_page

    path = out or Path(f"{name}.html")
    made = lesson_page(name, path)
    print(f"{path} ({len(made.text) / 1000:.0f} kB)")
