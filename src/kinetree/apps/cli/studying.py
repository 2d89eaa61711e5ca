"""The command `study`: a mechanism over many designs or starts, from a study file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..._support.options import written_options
from ...simulation.outcomes import Outcome
from ...studies.plan import StudyOptions
from .console import (
    INTERRUPTED,
    NO_FIGURES,
    OUT,
    FileOrFolder,
    Folder,
    can_draw,
    clean,
    compute_or_keep,
    file_of,
    folder_of,
    heading,
    make_table,
    print_table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ...studies.study import Study


app = typer.Typer()

_HELP = written_options(StudyOptions)


@app.command()
def study(
    file: Annotated[Path, typer.Argument(help="The study file (.toml): mechanism, samplings, motion and measures.")],
    output: Folder = OUT,
    plot: Annotated[
        bool | None,
        typer.Option("--plot/--no-plot", help="Draw the measures. Default: if matplotlib is installed."),
    ] = None,
    store: Annotated[Path | None, typer.Option(help=_HELP["store"].help)] = None,
    workers: Annotated[int | None, typer.Option(help=_HELP["workers"].help, min=1)] = None,
    scheduler: Annotated[str | None, typer.Option(help=_HELP["on"].help.replace(", or a Dask client", ""))] = None,
    shard: Annotated[int | None, typer.Option(help=_HELP["shard"].help, min=1)] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="A page (.html) of the statistics of all runs and a replay of the worst."),
    ] = None,
    table: Annotated[bool, typer.Option("--table/--no-table", help="Write a row per run as .csv, too.")] = True,
) -> None:
    """Evaluate a mechanism over many designs or starts.

    Writes NAME.npz with all results, NAME.csv with a row per run, and NAME.png. Ctrl-C writes what is done. With
    --store, --workers, --scheduler or --shard, or if the file has columns to keep, results go to a Zarr folder shard by
    shard, and a study that was killed continues.
    Exit status 1 if no run finished, 2 if an input is wrong, 130 after Ctrl-C.
    """
    from time import perf_counter

    from ...experiments.studies import read_study_file
    from ...studies.study import evaluate_plan
    from .console import make_console
    from .motions import print_files

    given, folder = read_study_file(file), folder_of(output, "files are named like the study")
    drawn = can_draw() if plot is None else plot
    began = perf_counter()
    files = []
    if given.plan.keep or any(x is not None for x in (workers, scheduler, shard)):
        store = store or folder / f"{given.name}.zarr"
    files += [] if store is None else [store]
    found, pressed = compute_or_keep(
        "study",
        lambda: evaluate_plan(given.plan, StudyOptions(store=store, shard=shard, workers=workers, on=scheduler)),
    )
    took = perf_counter() - began
    try:
        files.append(found.save(folder / f"{given.name}.npz"))
        if table:
            files.append(found.save(folder / f"{given.name}.csv"))
        if report is not None:
            files.append(found.report(folder / report, title=given.description or None))
        if drawn and found.finished.any():
            files.append(found.plot(path=folder / f"{given.name}.png", heading=given.description or None))
    finally:  # what was computed is printed even if it cannot be written
        print_study(make_console(), found, took)
        print_files(make_console(), files)
    if plot is None and not drawn:
        make_console().print(NO_FIGURES, markup=False)
    if pressed:
        raise typer.Exit(INTERRUPTED)
    if not found.finished.any():
        raise typer.Exit(1)


# --- Studies as text: the range of every measure, the best runs, and those that failed ---


def print_study(console: Console, study: Study, seconds: float) -> None:
    """Print measures, best values and failures of a study."""
    left = int((study.status == Outcome.NOT_EVALUATED).sum())
    done = study.runs - left
    name = clean(str(study.about.get("mechanism", "study")))
    heading(console, f"{name}: {done:,} of {study.runs:,} runs in {seconds:.3g} s")
    good = study.finished
    if good.any():
        table = make_table(console, "measure", "unit", "smallest", "median", "largest", "smallest at",
                           numeric=("smallest", "median", "largest"))  # fmt: skip
        for label, x in study.measures.items():
            at = ", ".join(f"{q} = {v:.5g}" for q, v in study.best(label).values.items())
            cells = [f"{f(x[good]):.5g}" for f in (np.min, np.median, np.max)]
            table.add_row(clean(label), clean(study.units.get(label, "")), *cells, clean(at))
        print_table(console, table)
    if len(study.failed):
        console.print(f"{len(study.failed):,} runs failed:")
        console.print(clean_lines(str(study.failed)), soft_wrap=True)


def clean_lines(text: str) -> str:
    """Return a text without control characters except the ends of lines."""
    return "\n".join(f"  {clean(line)}" for line in text.splitlines())


# --- The command `report`: statistics of a study that was saved ---


@app.command()
def report(
    study: Annotated[Path, typer.Argument(help="The store of a study (.zarr), or its results (.npz).")],
    output: FileOrFolder = OUT,
    limit: Annotated[
        list[str] | None, typer.Option(help="A limit whose violation is a failure: 'peak < 50'; repeatable.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A stored column whose bands are drawn; repeatable. Default: all.")
    ] = None,
    worst: Annotated[int, typer.Option(help="The number of worst cases.", min=1)] = 5,
) -> None:
    """Write the statistics of a study as one web page.

    Bands over time, histograms, failures by reason, sensitivity indices and worst cases, also of a study under way.
    Exit status 1 if no run finished, 2 if an input is wrong.
    """
    from ...studies.files import read_study
    from ...studies.statistics.summary import summary_of
    from .console import clean, heading, make_console
    from .motions import print_files

    found = read_study(study)
    limits = _limits(limit or [])
    path = found.report(file_of(output, f"{study.stem}_report.html"), limits=limits, columns=column or None, n=worst)
    console = make_console()
    heading(console, f"{clean(str(found.about.get('mechanism', 'study')))}: {found.evaluated:,} of {found.runs:,} runs")
    summary = summary_of(found, limits=limits, columns=[], n=worst)
    for line in summary.words:
        console.print(f"  {clean(line)}", soft_wrap=True)
    if summary.failures is not None and any(summary.failures.reasons.values()):
        heading(console, "Failed runs")
        table = make_table(console, "reason", "runs", numeric=("runs",))
        for reason, count in summary.failures.reasons.items():
            table.add_row(clean(reason), f"{count:,}")
        print_table(console, table)
    print_files(console, [path])
    if not found.finished.any():
        raise typer.Exit(1)


def _limits(texts: list[str]) -> dict[str, tuple[float | None, float | None]]:
    """Return bounds by measure from texts such as "peak < 50"."""
    from ...errors import InputError

    out: dict[str, tuple[float | None, float | None]] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in (text.partition("<") if "<" in text else text.partition(">")))
        try:
            bound = float(value)
        except ValueError:
            raise InputError(f"--limit {text!r}: give a measure, < or >, and a number: 'peak < 50'") from None
        low, high = out.get(name, (None, None))
        out[name] = (low, bound) if sign == "<" else (bound, high)
    return out
