"""The command `study`: a mechanism over many designs or starts, from a study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def study(
    file: Annotated[Path, typer.Argument(help="The study file (.toml): mechanism, samplings, motion and measures.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")] = Path("out"),
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw the measures.")] = True,
    table: Annotated[bool, typer.Option("--table/--no-table", help="Write a row per run as .csv, too.")] = True,
) -> None:
    """Evaluate a mechanism over many designs or starts.

    Writes NAME.npz with all results, NAME.csv with a row per run, and NAME.png. Ctrl-C writes what is done. Exit status
    1 if no run finished or the study was interrupted, 2 if an input is wrong.
    """
    from time import perf_counter

    from ..experiments.paths import made_folder
    from ..experiments.studies import read_study_file
    from ..studies.study import evaluated
    from .console import make_console
    from .motions import print_files
    from .study_tables import print_study

    given, folder = read_study_file(file), made_folder(out)
    began = perf_counter()
    found = evaluated(given.plan)
    took = perf_counter() - began
    files = []
    try:
        files.append(found.save(folder / f"{given.name}.npz"))
        if table:
            files.append(found.save(folder / f"{given.name}.csv"))
        if plot and found.finished.any():
            files.append(found.plot(path=folder / f"{given.name}.png", heading=given.description or None))
    finally:  # what was computed is printed even if it cannot be written
        print_study(make_console(), found, took)
    print_files(make_console(), files)
    if not found.complete or not found.finished.any():
        raise typer.Exit(1)
