"""The command `study`: a mechanism over many designs or starts, from a study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..interruption import INTERRUPTED
from .folders import folder

app = typer.Typer()


@app.command()
def study(
    file: Annotated[Path, typer.Argument(help="The study file (.toml): mechanism, samplings, motion and measures.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", callback=folder("files are named like the study"), help="The folder for the results."
        ),
    ] = Path("out"),
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw the measures.")] = True,
    store: Annotated[
        Path | None,
        typer.Option(
            help="A Zarr folder for the results; the same command goes on where it was interrupted or killed."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes; results go to OUT/NAME.zarr, or to --store.", min=1)
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786, whose workers share the folder.")
    ] = None,
    shard: Annotated[
        int | None, typer.Option(help="Number of runs that are computed and stored at a time.", min=1)
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="A page (.html) with the statistics of all runs and a replay of the worst one.")
    ] = None,
    table: Annotated[bool, typer.Option("--table/--no-table", help="Write a row per run as .csv, too.")] = True,
) -> None:
    """Evaluate a mechanism over many designs or starts.

    Writes NAME.npz with all results, NAME.csv with a row per run, and NAME.png. Ctrl-C writes what is done. With
    --store, --workers, --scheduler or --shard, or if the file has columns to keep, results go to a Zarr folder shard by
    shard, and a study that was killed goes on.
    Exit status 1 if no run finished, 2 if an input is wrong, 130 after Ctrl-C.
    """
    from time import perf_counter

    from ..experiments.paths import made_folder
    from ..experiments.studies import read_study_file
    from ..studies.running import stored_results
    from ..studies.study import evaluated, study_of
    from .console import make_console
    from .motions import print_files
    from .study_tables import print_study

    given, folder = read_study_file(file), made_folder(out)
    began = perf_counter()
    files = []
    if all(x is None for x in (store, workers, scheduler, shard)) and not given.plan.keep:
        found = evaluated(given.plan)
    else:
        files.append(store or folder / f"{given.name}.zarr")
        results = stored_results(given.plan, files[0], shard=shard, workers=workers, on=scheduler)
        found = study_of(given.plan, results, files[0])
    took = perf_counter() - began
    try:
        files.append(found.save(folder / f"{given.name}.npz"))
        if table:
            files.append(found.save(folder / f"{given.name}.csv"))
        if plot and found.finished.any():
            files.append(found.plot(path=folder / f"{given.name}.png", heading=given.description or None))
        if report is not None:
            files.append(found.report(report, title=given.description or None))
    finally:  # what was computed is printed even if it cannot be written
        print_study(make_console(), found, took)
    print_files(make_console(), files)
    if not found.complete:  # Ctrl-C ended it
        raise typer.Exit(INTERRUPTED)
    if not found.finished.any():
        raise typer.Exit(1)
