"""The commands for saved runs: plot and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .analyses import Base, Lenient, Model, Root, load_system
from .outputs import OUT, FileOrFolder, file_of, names_a_file, run_of
from .simulating import Param, Plot

app = typer.Typer()

Run = Annotated[Path, typer.Argument(help="A saved run: .csv, .npz, .parquet or .zarr.")]


@app.command()
def plot(
    run: Run,
    column: Annotated[
        list[str] | None, typer.Option(help="A column or part, such as q or q.joint2; repeatable. Default: q, qd.")
    ] = None,
    output: FileOrFolder = OUT,
) -> None:
    """Draw a saved run over time."""
    from ...results import read_trajectory

    found, path = read_trajectory(run), file_of(output, f"{run.stem}.png")
    found.plot(column or ["q", "qd"], path)
    print(path)


@app.command()
def replay(
    run: Run,
    output: FileOrFolder = OUT,
) -> None:
    """Write a web page that replays a saved run."""
    from ...results import read_trajectory

    print(read_trajectory(run).replay(file_of(output, f"{run.stem}.html")))


# --- The command `cycle`: one revolution of a mechanism with one degree of freedom ---


@app.command()
def cycle(
    model: Model,
    drive: Annotated[str, typer.Option(help="The revolute joint that is driven.")],
    speed: Annotated[float, typer.Option(help="Its constant speed in rad/s; negative for the other direction.")],
    start: Annotated[
        float | None, typer.Option(help="Its angle at the start in rad. Default: its angle in the assembled mechanism.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of positions, evenly spaced.", min=2, max=1_000_000)] = 361,
    passive: Annotated[bool, typer.Option(help="Include damping, friction and springs of the mechanism.")] = True,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    plot: Plot = False,
    save: Annotated[str | None, typer.Option(help="The file for the cycle. Default: MODEL_cycle.csv.")] = None,
    output: FileOrFolder = OUT,
) -> None:
    """Drive a closed mechanism through a revolution.

    The mechanism has one degree of freedom. The file has the torque of the drive, and the reactions at all joints and
    loops. Exit status 2 if an input is wrong.
    """
    from ...experiments.experiment import Outputs, made_folder, write_run
    from .console import clean, heading, make_console
    from .motions import check_names, file_stem, parameter_values, print_columns, print_files

    place, save = run_of(output, save)
    check_names(save, None)
    system = load_system(model, base, root, lenient)
    folder = made_folder(place)
    values = parameter_values(system, param)
    run = system.cycle(drive, speed=speed, start=start, samples=samples, passive=passive, parameters=values)
    console, stem, files = make_console(), f"{file_stem(system)}_cycle", []
    forces = ("reactions", "loop_reactions") if system.mechanism.loops else ("reactions",)
    outputs = Outputs((save or f"{stem}.csv",), forces, ("q", "qd", "tau") if plot else ())
    try:
        files = write_run(run, folder, outputs, f"{stem}.png", f"{system.mechanism.name}: one revolution of {drive}")
    finally:  # what was computed is printed even if it cannot be written
        heading(console, f"{clean(system.mechanism.name)}: one revolution of {clean(drive)} in {run.t[-1]:g} s")
        print_columns(console, run, ("q", "qd", "tau"))
    print_files(console, files)


# --- The command `loads`: drives, bearings and motors of a run ---


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
    output: FileOrFolder = OUT,
    csv: Annotated[
        Path | None, typer.Option(help="A folder for the tables as .csv files, inside the page's folder.")
    ] = None,
) -> None:
    """Report the loads of drives and bearings of a run.

    Peak and continuous loads, speeds, powers and energies of all drives, bearing loads of all joints and loops, and
    motors of a catalogue that fit, as one web page. Exit status 1 if the run ended early, 2 if an input is wrong.
    """
    from ...errors import InputError
    from ...reports import load_report
    from .console import clean, compute_or_keep, heading, make_console
    from .motions import exit_status, print_files

    if names_a_file(output) and output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--output {output}: is not the name of a page; use one that ends with .html")
    path = file_of(output, f"{run.stem}_loads.html")
    found, pressed = compute_or_keep("run", lambda: _run_of(run))
    report = load_report(
        found, catalogue=catalogue, joints=joint or None, thermal_time=thermal_time, safety=safety, passive=passive
    )
    console, files = make_console(), []
    try:
        files = [report.save(path), *(report.to_csv(path.parent / csv) if csv is not None else [])]
    finally:  # what was computed is printed even if it cannot be written
        heading(console, f"{clean(report.name)}: loads")
        for line in (*report.words, *report.notes):
            console.print(f"  {clean(line)}", soft_wrap=True)
    print_files(console, files)
    raise typer.Exit(exit_status(found, pressed))


def _run_of(path: Path):
    """Return a saved run, or simulate an experiment."""
    from ...experiments import read_experiment
    from ...results import read_trajectory

    return read_experiment(path).simulate() if path.suffix.lower() == ".toml" else read_trajectory(path)
