"""The commands of kinematics: ik (inverse kinematics) and workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .analyses import Base, Lenient, Model, Root, loaded
from .simulating import Param

app = typer.Typer()

Frame = Annotated[str, typer.Option(help="The frame or body; `show MODEL` lists them.")]


@app.command("ik")
def inverse_kinematics(
    model: Model,
    frame: Frame,
    at: Annotated[
        str,
        typer.Option(help="x,y,z of the frame's origin [m], or x,y,z,roll,pitch,yaw of its pose [rad]. pi is known."),
    ],
    q0: Annotated[str | None, typer.Option(help="The position from which to search.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="List all solutions.")] = False,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Six weights, of rotation and position in the target's axes; zeros for errors that do not matter."
        ),
    ] = None,
    no_limits: Annotated[bool, typer.Option("--no-limits", help="Ignore the limits of the joints.")] = False,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    picture: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="--all: a picture of the solutions.")
    ] = None,
) -> None:
    """Find the joint positions at which a frame has a given pose.

    Exit status 1 if there is none, 2 if an input is wrong.
    """
    from ..errors import InputError, UnreachableError
    from .console import clean, heading, make_console
    from .motions import listed_numbers, parameter_values, print_files, state
    from .positions import print_positions

    system, console = loaded(model, base, root, lenient), make_console()
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    target = listed_numbers("--at", at, names[: 3 if at.count(",") < 3 else 6])
    if picture is not None and not everything:
        raise InputError("--out is a picture of all solutions; add --all")
    options = {
        "q0": state(system, "q", "--q0", q0),
        "limits": not no_limits,
        "parameters": parameter_values(system, param),
    }
    if weights is not None:
        options["weights"] = listed_numbers("--weights", weights, ("rx", "ry", "rz", "x", "y", "z"))
    try:
        found: Any = system.inverse_kinematics(target, frame, all=everything, **options)
    except UnreachableError as error:
        console.print(clean(str(error)), soft_wrap=True, style="bold red")
        raise typer.Exit(1) from None
    heading(console, f"{clean(system.mechanism.name)}: positions with the given pose of {clean(frame)}")
    print_positions(console, found)
    if everything and picture is not None and len(found):
        print_files(console, [found.plot(picture)])
    if everything and not len(found):
        raise typer.Exit(1)


@app.command()
def workspace(
    model: Model,
    frame: Frame,
    samples: Annotated[int, typer.Option(help="Number of random positions.", min=1, max=10_000_000)] = 20_000,
    no_limits: Annotated[bool, typer.Option("--no-limits", help="Ignore the limits of the joints.")] = False,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    picture: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="The picture to write. Default: MODEL_workspace.png.")
    ] = None,
) -> None:
    """Draw the points that a frame reaches, and print their extent.

    Exit status 2 if an input is wrong.
    """
    from .console import clean, heading, make_console, make_table, print_table
    from .motions import file_stem, parameter_values, print_files

    system = loaded(model, base, root, lenient)
    found = system.workspace(frame, samples=samples, limits=not no_limits, parameters=parameter_values(system, param))
    console = make_console()
    heading(console, f"{clean(system.mechanism.name)}: {len(found.points):,} points that {clean(frame)} reaches")
    table = make_table(console, "", "least [m]", "largest [m]", numeric=("least [m]", "largest [m]"))
    for name, low, high in zip("xyz", found.lower, found.upper, strict=True):
        table.add_row(name, f"{low:.6g}", f"{high:.6g}")
    print_table(console, table)
    print_files(console, [found.plot(picture or Path(f"{file_stem(system)}_workspace.png"))])
