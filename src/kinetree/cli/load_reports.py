"""The command `loads`: drives, bearings and motors of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def loads(
    run: Annotated[
        Path, typer.Argument(help="A saved run (.csv, .npz, .parquet, .zarr), or an experiment (.toml) to simulate.")
    ],
    catalogue: Annotated[
        Path | None, typer.Option(help="Motors and gearboxes: a .csv file; docs/load-report.md lists its columns.")
    ] = None,
    joint: Annotated[
        list[str] | None, typer.Option(help="A joint or loop to report; repeatable. Default: all.")
    ] = None,
    thermal_time: Annotated[
        float | None, typer.Option(help="Thermal time constant of the motors in seconds. Default: RMS over the run.")
    ] = None,
    safety: Annotated[float, typer.Option(help="The least margin of a motor and gearbox that fits.")] = 1.0,
    passive: Annotated[
        bool, typer.Option("--passive", help="Inverse dynamics: add friction, damping, springs of the mechanism.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page. Default: RUN_loads.html.")] = None,
    csv: Annotated[Path | None, typer.Option(help="A folder for the tables as .csv files.")] = None,
) -> None:
    """Report the loads of drives and bearings of a run.

    Peak and continuous loads, speeds, powers and energies of all drives, bearing loads of all joints and loops, and
    motors of a catalogue that fit, as one web page. Exit status 1 if the run ended early, 2 if an input is wrong.
    """
    from ..errors import InputError
    from ..reporting import load_report
    from .console import clean, heading, make_console
    from .motions import exit_status, print_files

    path = out or run.with_name(f"{run.stem}_loads.html")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {path}: is not the name of a page; use one that ends with .html")
    found = _run_of(run)
    report = load_report(
        found, catalogue=catalogue, joints=joint or None, thermal_time=thermal_time, safety=safety, passive=passive
    )
    console, files = make_console(), []
    try:
        files = [report.save(path), *(report.to_csv(csv) if csv is not None else [])]
    finally:  # what was computed is printed even if it cannot be written
        heading(console, f"{clean(report.name)}: loads")
        for line in (*report.words, *report.notes):
            console.print(f"  {clean(line)}", soft_wrap=True)
    print_files(console, files)
    raise typer.Exit(exit_status(found))


def _run_of(path: Path):
    """Return a saved run, or that of an experiment."""
    from ..experiments import read_experiment
    from ..results import read_trajectory

    return read_experiment(path).simulate() if path.suffix.lower() == ".toml" else read_trajectory(path)
