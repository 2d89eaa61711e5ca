"""The commands of analysis: verify, cost, bench, equations and reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..system import System

app = typer.Typer()

Model = Annotated[str, typer.Argument(help="A library name, or a .toml, .urdf, .xml or .csv file.")]
Base = Annotated[str, typer.Option(help="URDF: fixed, or free to let the root link float.")]
Root = Annotated[list[Path] | None, typer.Option(help="URDF: a folder of packages; may be repeated.")]
Lenient = Annotated[bool, typer.Option("--lenient", help=".toml, .csv: accept inertias that no body can have.")]


def loaded(model: str, base: str, root: Sequence[Path] | None, lenient: bool, *, fixed: str = "merge") -> System:
    """Return the System of a model with the options that all commands share."""
    from ..loading import load

    return load(model, base=base, roots=root or (), lenient=lenient or None, fixed=fixed)


@app.command()
def verify(
    model: Model,
    states: Annotated[int, typer.Option(help="Number of random states.", min=1)] = 5,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    route: Annotated[list[str] | None, typer.Option(help="One of the routes; may be repeated. Default: all.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random states.", min=0)] = 0,
) -> None:
    """Compare all routes to the equations of motion.

    Exit status 1 if one differs or fails.
    """
    from .console import make_console
    from .verifying import print_verification

    found = loaded(model, base, root, lenient).verify(states, rng=seed, routes=route)
    print_verification(make_console(), found)
    if not found:
        raise typer.Exit(1)


@app.command()
def cost(
    model: Model,
    function: Annotated[
        list[str] | None, typer.Option(help="A function; may be repeated. Default: the usual functions.")
    ] = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Count the operations of functions by the rules of the papers."""
    from .console import make_console
    from .counting import print_costs

    print_costs(make_console(), loaded(model, base, root, lenient), function)


@app.command()
def bench(
    model: Model,
    function: Annotated[
        list[str] | None, typer.Option(help="A function; may be repeated. Default: four of them.")
    ] = None,
    batch: Annotated[int, typer.Option(help="Number of samples in a batch.", min=1)] = 4096,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Time functions of a mechanism on this machine.

    One thread; ./dev bench compares with other libraries.
    """
    from ..analysis.cost.timing import DEFAULT, timings
    from .console import make_console
    from .counting import print_timings

    found = timings(loaded(model, base, root, lenient), tuple(function or DEFAULT), batch)
    print_timings(make_console(), found, batch)


@app.command()
def equations(
    model: Model,
    function: Annotated[str, typer.Option(help="The function to print.")] = "inertia_matrix",
    symbols: Annotated[str, typer.Option(help="Numbers kept as symbols: declared parameters, all, none.")] = "declared",
    frame: Annotated[str | None, typer.Option(help="The frame of pose, jacobian and similar functions.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
    python: Annotated[bool, typer.Option("--python", help="Print a Python function.")] = False,
) -> None:
    """Print a function of a small mechanism as symbolic equations."""
    from ..errors import InputError
    from ..loading import load

    if latex and python:
        raise InputError("--latex and --python: give one of them")
    made = load(model).equations(function, symbols=symbols, frame=frame)
    print(made.latex() if latex else made.python() if python else made)


@app.command()
def reproduce(
    name: Annotated[list[str] | None, typer.Argument(help="Entries, papers, speed or all. Default: list them.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for figures and tables.")] = Path("out/reproduce"),
) -> None:
    """Reproduce tables and figures of the papers.

    Exit status 1 if a statement of a paper does not hold.
    """
    from .. import reproduce as papers
    from ..experiments.paths import made_folder
    from ..progress import on_terminal
    from .console import make_console
    from .reproducing import print_entries, print_outcome, print_verdicts

    console = make_console()
    if not name:
        print_entries(console, papers.entries().values())
        return
    chosen, folder = papers.selected(name), made_folder(out)
    outcomes = []
    for entry in chosen:
        if on_terminal():
            typer.echo(f"... {entry.name}: {entry.what}", err=True)  # some take a minute
        outcome = entry.run(folder)
        print_outcome(console, entry, outcome)
        outcomes.append((entry, outcome))
    print_verdicts(console, outcomes)
    if not all(outcome.passes for _, outcome in outcomes):
        raise typer.Exit(1)
