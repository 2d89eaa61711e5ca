"""The command `cycle`: one revolution of a mechanism with one degree of freedom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .analyses import Base, Lenient, Model, Root, loaded
from .simulating import Out, Param, Plot

app = typer.Typer()


@app.command()
def cycle(
    model: Model,
    drive: Annotated[str, typer.Option(help="The revolute joint that is driven.")],
    speed: Annotated[float, typer.Option(help="Its constant speed in rad/s; negative for the other direction.")],
    start: Annotated[
        float | None, typer.Option(help="Its angle at the start in rad. Default: that of the assembled mechanism.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of positions, evenly spaced.", min=2, max=1_000_000)] = 361,
    passive: Annotated[bool, typer.Option(help="Include damping, friction and springs of the mechanism.")] = True,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    plot: Plot = False,
    save: Annotated[str | None, typer.Option(help="The file for the cycle. Default: MODEL_cycle.csv.")] = None,
    out: Out = Path("out"),
) -> None:
    """Drive a closed mechanism through a revolution.

    The mechanism has one degree of freedom. The file has the torque of the drive, and the reactions at all joints and
    loops. Exit status 2 if an input is wrong.
    """
    from ..experiments.experiment import Outputs, write_run
    from ..experiments.paths import made_folder
    from .console import clean, heading, make_console
    from .motions import check_names, file_stem, parameter_values, print_columns, print_files

    check_names(save, None)
    system = loaded(model, base, root, lenient)
    folder = made_folder(out)
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
