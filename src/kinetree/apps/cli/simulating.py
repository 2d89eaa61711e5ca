"""The commands of motion: simulate, inverse, run and cycle, and those of saved runs: plot, replay and loads.

Exit status: 0 if all went well, 1 if a run stopped before its end (what was computed is still written), 2 if nothing
ran because an option, a file or a model is wrong; those of interruptions and of results that cannot be written are in
`console`. Files are written before anything is printed, so that no result is lost if a pipe is closed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...simulation.options import RunOptions
from .analyses import Base, Lenient, Model, Root, load_system
from .console import NAMES, OUT, FileOrFolder, Folder, compute_or_keep, file_of, folder_of, names_a_file, run_of
from .studying import study

app = typer.Typer()


_HELP = RunOptions.written()
Duration = Annotated[float, typer.Option(help=_HELP["duration"])]
Numbers = Annotated[str | None, typer.Option(help='Numbers and commas, such as "0, pi/2, 0.1". Default: neutral.')]
Param = Annotated[list[str] | None, typer.Option(help="NAME=VALUE: the value of a free parameter; repeatable.")]
Plot = Annotated[bool, typer.Option("--plot", help="Draw the motion over time, with its energies or torques.")]


@app.command()
def simulate(
    model: Model,
    duration: Duration = 10.0,
    method: Annotated[str, typer.Option(help=_HELP["method"])] = RunOptions.method,
    dt: Annotated[float | None, typer.Option(help=_HELP["dt"])] = RunOptions.dt,
    rtol: Annotated[float, typer.Option(help=_HELP["rtol"])] = RunOptions.rtol,
    atol: Annotated[float, typer.Option(help=_HELP["atol"])] = RunOptions.atol,
    max_steps: Annotated[int | None, typer.Option(help=_HELP["max_steps"], min=1)] = RunOptions.max_steps,
    samples: Annotated[
        int | None, typer.Option(help="Number of output times, evenly spaced. Default: 1001.", min=2, max=10_000_000)
    ] = None,
    q0: Numbers = None,
    qd0: Annotated[str | None, typer.Option(help="The joint velocities at the start. Default: at rest.")] = None,
    put: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="joint=value: set a joint at the start; the others are neutral or follow; repeatable."
        ),
    ] = None,
    speed: Annotated[
        list[str] | None,
        typer.Option(help="joint=value: set the velocity of a joint; the others rest, or follow; repeatable."),
    ] = None,
    loops: Annotated[str | None, typer.Option(help=_HELP["loops"])] = None,
    passive: Annotated[bool, typer.Option("--passive/--no-passive", help=_HELP["passive"])] = RunOptions.passive,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    plot: Plot = False,
    save: Annotated[str | None, typer.Option(help="Write the run: a .csv, .npz, .parquet or .zarr file.")] = None,
    replay: Annotated[str | None, typer.Option(help="Write a web page that replays the run: a .html file.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            *NAMES, help="The folder for the files, out by default, or the path of the run; alone it saves MODEL.npz."
        ),
    ] = None,
) -> None:
    """Simulate a mechanism from a state, without control.

    Exit status 1 if the run stops early (what was computed is still written), 2 if an input is wrong.
    """
    from time import perf_counter

    from ...errors import InputError
    from ...experiments import experiment as starting
    from ...experiments.experiment import Outputs, made_folder, write_run
    from ...simulation.simulate import simulate as simulated
    from .console import make_console
    from .motions import (
        by_joint,
        check_names,
        exit_status,
        file_stem,
        loops_of,
        output_times,
        parameter_values,
        print_files,
        print_run,
        state,
    )

    place, save = run_of(output or OUT, save)
    check_names(save, replay)
    for one, other, texts in (("--q0", q0, put), ("--qd0", qd0, speed)):
        if other is not None and texts:
            raise InputError(f"{one} and {'--set' if one == '--q0' else '--speed'}: give one of them")
    system = load_system(model, base, root, lenient)
    values = parameter_values(system, param)
    if output is not None and not (save or plot or replay):
        save = f"{file_stem(system)}.npz"
    q = starting.position(system, by_joint("--set", put) if put else state(system, "q", "--q0", q0))
    qd = starting.speed(system, q, by_joint("--speed", speed) if speed else state(system, "qd", "--qd0", qd0))
    closing = loops_of(system, loops)
    columns = ("q", "qd", "energy", "kinetic_energy", "potential_energy") if plot else ()
    outputs = Outputs((save,) if save else (), (), columns, replay)
    folder = made_folder(place) if plot or save or replay else place
    began = perf_counter()
    run, pressed = compute_or_keep("run", lambda: simulated(
        system, q, qd,
        duration=duration if samples is None else None,
        times=None if samples is None else output_times(duration, samples),
        method=method, dt=dt, rtol=rtol, atol=atol, max_steps=max_steps, loops=closing, parameters=values,
        passive=passive,
    ))  # fmt: skip
    seconds = perf_counter() - began
    console, stem, files = make_console(), file_stem(system), []
    try:
        files.extend(write_run(run, folder, outputs, f"{stem}.png", system.mechanism.name))
    finally:  # what was computed is printed even if it cannot be written
        print_run(console, run, seconds)
        print_files(console, files)
    raise typer.Exit(exit_status(run, pressed))


@app.command()
def inverse(
    model: Model,
    cycloid: Annotated[bool, typer.Option("--cycloid", help="Move from --q0 to --q1, at rest at both ends.")] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with a column t and one per coordinate, by name (those of --actuated suffice in a closed "
            "mechanism); or a saved run."
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with columns t, x, y, z and perhaps roll, pitch, yaw of --frame: its path in space."
        ),
    ] = None,
    frame: Annotated[str | None, typer.Option(help="The frame or body that moves along --path.")] = None,
    q0: Numbers = None,
    q1: Annotated[str | None, typer.Option(help="The position at the end of the cycloid.")] = None,
    duration: Duration = 10.0,
    samples: Annotated[int, typer.Option(help="Number of times, evenly spaced.", min=2, max=1_000_000)] = 1001,
    actuated: Annotated[
        list[str] | None,
        typer.Option(help="Closed mechanisms: a driven joint, repeatable, to which --q0 and --q1 belong."),
    ] = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    plot: Plot = False,
    save: Annotated[
        str | None, typer.Option(help="The file for motion and torques. Default: MODEL_inverse.csv.")
    ] = None,
    output: FileOrFolder = OUT,
) -> None:
    """Compute the torques of a motion.

    A table is interpolated by a cubic spline; columns qd.NAME and qdd.NAME are velocities and accelerations. A path is
    followed by inverse kinematics from --q0. Exit status 2 if an input is wrong.
    """
    from ...errors import InputError
    from ...experiments.experiment import Outputs, made_folder, write_run
    from .console import make_console
    from .motions import (
        check_names,
        cycloid_motion,
        file_stem,
        inverse_run,
        parameter_values,
        path_motion,
        print_files,
        print_torques,
        table_motion,
    )

    if [cycloid, table is not None, path is not None].count(True) != 1:
        raise InputError("--cycloid, --table and --path: give one of them")
    if table is not None and (q0 or q1):
        raise InputError("--q0 and --q1 belong to --cycloid; leave them out with --table")
    if (path is None) != (frame is None) or (path is not None and (q1 or actuated)):
        raise InputError("--path requires --frame, and takes --q0 but neither --q1 nor --actuated")
    place, save = run_of(output, save)
    check_names(save, None)
    system = load_system(model, base, root, lenient)
    folder = made_folder(place)
    values = parameter_values(system, param)
    if table is not None:
        motion = table_motion(system, table, samples, values, actuated)
    elif path is not None and frame is not None:
        motion = path_motion(system, path, frame, q0, samples, values)
    else:
        motion = cycloid_motion(system, q0, q1, duration, samples, values, actuated)
    run = inverse_run(system, motion, values, actuated)
    console, stem, files = make_console(), f"{file_stem(system)}_inverse", []
    outputs = Outputs((save or f"{stem}.csv",), (), ("q", "tau") if plot else ())
    try:
        files.extend(write_run(run, folder, outputs, f"{stem}.png", f"{system.mechanism.name}: inverse dynamics"))
    finally:  # what was computed is printed even if it cannot be written
        print_torques(console, run, actuated)
        print_files(console, files)


@app.command()
def run(
    experiment: Annotated[Path, typer.Argument(help="A .toml file of an experiment or a study.")],
    output: Folder = OUT,
) -> None:
    """Run an experiment, or a study, described by a file.

    A study runs as by `kinetree study`, which has options of its own. Exit status 1 if the run stops early (what was
    computed is still written), 2 if an input is wrong.
    """
    from time import perf_counter

    from ...experiments import read_experiment
    from ...experiments.studies import is_study
    from .console import clean, heading, make_console
    from .motions import exit_status, print_files, print_run, print_tracking

    if is_study(experiment):
        study(experiment, output)
        return
    read = read_experiment(experiment)
    folder = folder_of(output, "files are named in the experiment")
    began = perf_counter()
    found, pressed = compute_or_keep("run", read.simulate)
    seconds = perf_counter() - began
    console, files = make_console(), []
    try:
        files.extend(read.write_each(found, folder))
    finally:  # what was computed is printed even if it cannot be written
        heading(console, clean(read.description or read.name))
        print_run(console, found, seconds)
        print_tracking(console, found, read.tracking_error(found))
        print_files(console, files)
    raise typer.Exit(exit_status(found, pressed))


# --- The commands for saved runs: plot and replay ---

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
        title = f"{system.mechanism.name}: one revolution of {drive}"
        files.extend(write_run(run, folder, outputs, f"{stem}.png", title))
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
