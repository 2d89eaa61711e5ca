"""`kinetree doctor`: whether the loops close, what can move, and which equations are redundant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .analyses import Base, Lenient, Model, Root, loaded

if TYPE_CHECKING:
    from rich.console import Console

    from ..analysis.loops.diagnosis import Diagnosis

app = typer.Typer()

STYLES = {"wrong": "bold red", "caution": "yellow", "note": "dim"}


@app.command()
def doctor(
    model: Model,
    q: Annotated[
        str | None, typer.Option(help='The position to examine, such as "0, pi/2, 0.1". Default: the guess.')
    ] = None,
    qd: Annotated[str | None, typer.Option(help="The joint velocities to examine.")] = None,
    put: Annotated[
        list[str] | None,
        typer.Option("--set", help="joint=value: set a joint, and close the loops by the others; may be repeated."),
    ] = None,
    drive: Annotated[list[str] | None, typer.Option(help="A joint that is driven; may be repeated.")] = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Examine the loops of a mechanism.

    Exit status 1 if they do not close, break, or lock the mechanism; 2 if an input is wrong.
    """
    from ..errors import AssemblyError
    from .console import clean, make_console
    from .motions import by_joint, state

    system = loaded(model, base, root, lenient)
    position, speeds = state(system, "q", "--q", q), state(system, "qd", "--qd", qd)
    if put:
        try:
            position = system.assemble(position, by_joint("--set", put))
        except AssemblyError as error:
            print(json.dumps({"ok": False, "verdict": str(error)}) if as_json else clean(str(error)))
            raise typer.Exit(1) from None
    found = system.doctor(position, speeds, drives=drive or ())
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        print_diagnosis(make_console(), found)
    if not found.ok:
        raise typer.Exit(1)


def print_diagnosis(console: Console, found: Diagnosis) -> None:
    """Print the numbers, then each finding with its advice, and the verdict last."""
    from rich.text import Text

    from .console import clean, heading, make_table, print_table

    heading(console, f"{clean(found.mechanism)}: the loops")
    table = make_table(console, "", "")
    table.show_header, table.box, table.columns[0].style, table.columns[0].no_wrap = False, None, "bold", True
    for label, text in found.facts().items():
        table.add_row(label, clean(text))
    print_table(console, table)
    if found.findings:
        heading(console, "Findings")
        table = make_table(console, "", "", "")
        table.show_header, table.columns[0].no_wrap = False, True
        table.columns[1].ratio = table.columns[2].ratio = 1
        table.expand, table.padding = True, (0, 2, 1, 0)
        for finding in found.findings:
            title = clean(f"{finding.title[:1].upper()}{finding.title[1:]}")
            what = Text(f"{title}. ", "bold").append(clean(finding.text), "not bold")
            table.add_row(Text(finding.level, STYLES[finding.level]), what, clean(finding.advice))
        print_table(console, table)
    console.print(clean(found.verdict), style="bold green" if found.ok else "bold red", soft_wrap=True)
