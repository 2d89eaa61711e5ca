"""The commands of analysis: verify, cost, subsystems, bench, equations and reproduce."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..._support.tables import count_text
from ...analysis.cost import Timing
from ...analysis.verify.comparisons import FACTOR, QUANTITIES, Comparison, Verification
from ...errors import ModelError
from ...system import System
from ..reproduce.entry import Entry, Outcome, Verdict
from .console import OUT, Folder, clean, folder_of, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from ...analysis.loops.diagnosis import Diagnosis


app = typer.Typer()

Model = Annotated[str, typer.Argument(help="A library name, or a .toml, .urdf, .xacro, .sdf, .xml, .csv or .m file.")]
Functions = Annotated[list[str] | None, typer.Argument(help="Names of functions, such as gravity_torque.")]
Frame = Annotated[str | None, typer.Option(help="The frame of pose, jacobian and similar functions.")]
Base = Annotated[str, typer.Option(help="URDF, SDF: fixed, or free to let the root link float.")]
Root = Annotated[list[Path] | None, typer.Option(help="URDF, SDF: a folder of packages; may be repeated.")]
Function = Annotated[list[str] | None, typer.Option("--function", help="A function; may be repeated.", hidden=True)]
Lenient = Annotated[bool, typer.Option("--lenient", help=".toml, .csv: accept inertias that no body can have.")]


def load_system(model: str, base: str, root: Sequence[Path] | None, lenient: bool, *, fixed: str = "merge") -> System:
    """Return the System of a model with the options that all commands share."""
    from ...loading import load

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

    found = load_system(model, base, root, lenient).verify(states, rng=seed, routes=route)
    print_verification(make_console(), found)
    if not found:
        raise typer.Exit(1)


@app.command()
def cost(
    model: Model,
    functions: Functions = None,
    function: Function = None,
    frame: Frame = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Count the operations of functions by the rules of the papers.

    By default of the usual functions.
    """
    from .console import make_console

    print_costs(make_console(), load_system(model, base, root, lenient), _names(functions, function), frame)


@app.command()
def subsystems(
    model: Model,
    drive: Annotated[
        list[str] | None, typer.Option(help="A driven joint; may be repeated. Default: independent joints.")
    ] = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Show how a closed mechanism is solved part by part.

    Determinate subsystems come first. A table compares the operations with those of the whole system.
    """
    print(load_system(model, base, root, lenient).subsystems(drive))


@app.command()
def bench(
    model: Model,
    functions: Functions = None,
    function: Function = None,
    batch: Annotated[int, typer.Option(help="Number of samples in a batch.", min=1)] = 4096,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Time functions of a mechanism on this machine.

    By default four of them. One thread; ./dev bench compares with other libraries.
    """
    from ...analysis.cost import DEFAULT, timings
    from .console import make_console

    found = timings(load_system(model, base, root, lenient), tuple(_names(functions, function) or DEFAULT), batch)
    print_timings(make_console(), found, batch)


@app.command()
def equations(
    model: Model,
    functions: Functions = None,
    function: Function = None,
    symbols: Annotated[str, typer.Option(help="Numbers kept as symbols: declared parameters, all, none.")] = "declared",
    frame: Frame = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
    python: Annotated[bool, typer.Option("--python", help="Print a Python function.")] = False,
) -> None:
    """Print functions of a small mechanism as symbolic equations.

    By default the inertia matrix.
    """
    from ...errors import InputError
    from ...loading import load

    if latex and python:
        raise InputError("--latex and --python: give one of them")
    system = load(model)
    for name in _names(functions, function) or ["inertia_matrix"]:
        made = system.equations(name, symbols=symbols, frame=frame)
        print(made.latex() if latex else made.python() if python else made)


@app.command()
def denoc(
    model: Model,
    matrices: Annotated[
        list[str] | None, typer.Argument(help="N_l, N_d, N, psi, mhat, U, D, I, inverse; default: U, D and I.")
    ] = None,
    symbolic: Annotated[bool, typer.Option("--symbolic", help="Print formulas, not numbers.")] = False,
    symbols: Annotated[str, typer.Option(help="Numbers kept as symbols: declared parameters, all, none.")] = "all",
    latex: Annotated[bool, typer.Option("--latex", help="Print formulas in LaTeX.")] = False,
) -> None:
    """Print the DeNOC matrices of a mechanism.

    Numbers are those of the neutral position. With --symbolic, the mechanism is a small chain or tree.
    """
    from ...errors import InputError, unknown_name
    from ...formulations.elimination import FACTORS
    from ...formulations.tables import NAMES
    from ...loading import load

    system, names = load(model), matrices or ["U", "D", "I"]
    if latex and not symbolic:
        raise InputError("--latex prints formulas; add --symbolic")
    if symbolic:
        found = system.symbolic_denoc(symbols=symbols)
        print(found.latex(*names) if latex else found.text(*names))
        return
    numbers = system.denoc(system.neutral())
    for name in names:
        if name not in FACTORS and name not in NAMES:
            raise unknown_name("matrix", name, (*FACTORS, *NAMES))
    print("\n\n".join(numbers.elimination.table(x) if x in FACTORS else numbers.table(x) for x in names))


def _names(functions: Sequence[str] | None, function: Sequence[str] | None) -> list[str]:
    """Return the functions named after the model, and with --function."""
    return [*(functions or ()), *(function or ())]


@app.command()
def reproduce(
    name: Annotated[list[str] | None, typer.Argument(help="Entries, papers, speed or all. Default: list them.")] = None,
    output: Folder = OUT,
) -> None:
    """Reproduce tables and figures of the papers.

    Each gets a verdict with its reason. Exit status 1 if one is not reproduced, or needs a package that is missing.
    """
    from ..._support.optional import PackageMissing
    from ..._support.progress import on_terminal
    from .. import reproduce as papers
    from .console import make_console

    console = make_console()
    if not name:
        print_entries(console, papers.entries().values())
        return
    chosen, folder = papers.select_entries(name), folder_of(output, "files are named like the entries")
    outcomes = []
    for entry in chosen:
        if on_terminal():
            typer.echo(f"... {entry.name}: {entry.what}", err=True)  # some take a minute
        try:
            outcome = entry.run(folder)
        except PackageMissing as error:
            outcome = papers.Outcome((), missing=str(error))
        print_outcome(console, entry, outcome)
        outcomes.append((entry, outcome))
    print_verdicts(console, outcomes)
    failed = (papers.Verdict.NOT_REPRODUCED, papers.Verdict.NOT_RUN)
    if any(outcome.verdict in failed for _, outcome in outcomes):
        raise typer.Exit(1)


# --- `kinetree cost` and `kinetree bench`: operations and times of a mechanism's functions ---

USUAL = (
    "inverse_dynamics",
    "forward_dynamics",
    "inertia_matrix",
    "inverse_inertia_matrix",
    "convective_matrix",
    "gravity_torque",
    "bias_torque",
    "kinetic_energy",
    "poses",
)


def print_costs(console: Console, system: System, functions: Sequence[str], frame: str | None) -> None:
    """Print a row per function, and the reason for each function that is impossible."""
    columns = ("M", "A", "divisions", "roots", "sines", "others")
    table = make_table(console, "function", *columns, numeric=columns)
    refused = []
    for name in functions or USUAL:
        try:
            c = system.cost(name, frame=frame)
        except ModelError as error:
            if functions:
                raise
            refused.append(f"{name}: {error.command_line}")
            continue
        table.add_row(name, *map(str, (c.M, c.A, c.divisions, c.roots, c.sines, c.others)))
    heading(console, f"{clean(system.mechanism.name)}: operations of one sample")
    print_table(console, table)
    for line in refused:
        console.print(clean(line))
    console.print(
        "M: multiplications and divisions, also by constants. A: additions and subtractions. Signs do not count.",
        style="dim",
    )


def print_timings(console: Console, found: Sequence[Timing], batch: int) -> None:
    """Print a row per function that was timed."""
    columns = ("ready [ms]", "one call [ns]", f"per sample of {batch:,} [ns]")
    table = make_table(console, "function", *columns, numeric=columns)
    for row in found:
        table.add_row(row.function, f"{row.ready * 1e3:.1f}", f"{row.single:.0f}", f"{row.sample:.1f}")
    print_table(console, table)
    console.print("ready: compiled, or read from the cache. Calls are of the bare gufunc, one thread.", style="dim")


# --- `kinetree reproduce`: the statements of the papers, and the results found ---

VERDICT_STYLES = {
    Verdict.REPRODUCED: "bold green",
    Verdict.WITH_STAND_INS: "green",
    Verdict.STATEMENT_HOLDS: "green",
    Verdict.NOT_REPRODUCED: "bold red",
    Verdict.NOT_RUN: "dim",
}


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
        word = "holds" if check.holds else "DOES NOT HOLD"
        console.print(f"{word}  {check.source.value}: {check.states}; found: {check.found}", style=_style(check.holds))
    console.print(f"{outcome.verdict.value}  {outcome.reason}", style=VERDICT_STYLES[outcome.verdict])
    for note in outcome.notes:
        console.print(note, style="dim")
    for file in outcome.files:
        console.print(str(file), soft_wrap=True)


def print_verdicts(console: Console, outcomes: Iterable[tuple[Entry, Outcome]]) -> None:
    """Print the verdict on each entry with its reason."""
    from rich.text import Text

    heading(console, "Verdicts")
    table = make_table(console, "entry", "verdict", "reason")
    for entry, outcome in outcomes:
        style = VERDICT_STYLES[outcome.verdict]
        table.add_row(entry.name, Text(outcome.verdict.value, style=style), outcome.reason)
    print_table(console, table)


def _style(holds: bool) -> str:
    return "green" if holds else "bold red"


# --- `kinetree verify`: the routes to the equations of motion side by side ---

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
        console.print(f"{count_text(found.states, 'random state')}, {condition}, with external wrenches.")
    console.print(found.summary(), style="bold green" if found else "bold red")


def _cell(c: Comparison | None):
    from rich.text import Text

    if c is None:
        return ""
    return Text(f"{c.difference:.1e}", "green" if c.ratio <= 1 else "bold red")


def _bound() -> str:
    return f"{FACTOR:g} eps times the condition"


# --- `kinetree doctor`: whether the loops close, what can move, and which equations are redundant ---

LEVEL_STYLES = {"wrong": "bold red", "caution": "yellow", "note": "dim"}


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
    from ...errors import AssemblyError
    from .console import clean, make_console
    from .motions import by_joint, state

    system = load_system(model, base, root, lenient)
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
            advice = getattr(finding.advice, "command_line", finding.advice)
            table.add_row(Text(finding.level, LEVEL_STYLES[finding.level]), what, clean(advice))
        print_table(console, table)
    console.print(clean(found.verdict), style="bold green" if found.ok else "bold red", soft_wrap=True)
