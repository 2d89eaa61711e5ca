"""The commands of kinematics: ik (inverse kinematics) and workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..._support.tables import count_text
from ...model.axes import axis_names
from .analyses import Base, Lenient, Model, Root, load_system
from .console import NAMES, OUT, FileOrFolder, clean, file_of, make_table, print_table
from .simulating import Param

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer()

WIDE = 5
"""The most solutions that are printed with nine digits; numbers of more would be broken across lines."""

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
    output: Annotated[
        Path | None,
        typer.Option(*NAMES, help="--all: the folder for a picture of them, or the path of its file."),
    ] = None,
) -> None:
    """Find the joint positions at which a frame has a given pose.

    Exit status 1 if there is none, 2 if an input is wrong.
    """
    from ...errors import InputError, UnreachableError
    from .console import clean, heading, make_console
    from .motions import file_stem, listed_numbers, parameter_values, print_files, state

    system, console = load_system(model, base, root, lenient), make_console()
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    target = listed_numbers("--at", at, names[: 3 if at.count(",") < 3 else 6])
    if output is not None and not everything:
        raise InputError("--output is for a picture of all solutions; add --all")
    picture = None if output is None else file_of(output, f"{file_stem(system)}_ik.png")
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
        console.print(clean(error.command_line), soft_wrap=True, style="bold red")
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
    output: FileOrFolder = OUT,
) -> None:
    """Draw the points that a frame reaches, and print their extent.

    Exit status 2 if an input is wrong.
    """
    from .console import clean, heading, make_console, make_table, print_table
    from .motions import file_stem, parameter_values, print_files

    system = load_system(model, base, root, lenient)
    file = file_of(output, f"{file_stem(system)}_workspace.png")
    found = system.workspace(frame, samples=samples, limits=not no_limits, parameters=parameter_values(system, param))
    console = make_console()
    heading(console, f"{clean(system.mechanism.name)}: {len(found.points):,} points that {clean(frame)} reaches")
    table = make_table(console, "", "least [m]", "largest [m]", numeric=("least [m]", "largest [m]"))
    for name, low, high in zip("xyz", found.lower, found.upper, strict=True):
        table.add_row(name, f"{low:.6g}", f"{high:.6g}")
    print_table(console, table)
    print_files(console, [found.plot(file)])


# --- Printing of positions that inverse kinematics found ---


def print_positions(console: Console, found: Any) -> None:
    """Print one column per solution with all coordinates, the errors of its pose, and what is known of others."""
    rows = np.atleast_2d(found.q)
    names = [str(k + 1) for k in range(len(rows))]
    table = make_table(console, "joint", *names, "unit", numeric=tuple(names))
    digits = 9 if len(rows) <= WIDE else 6
    labels = [
        (f"{joint}.{axis}" if axis else joint, unit) for joint, axis, unit in axis_names(found.system.mechanism, 0)
    ]
    for k, (label, unit) in enumerate(labels):
        table.add_row(clean(label), *(f"{x:.{digits}g}" for x in rows[:, k]), unit)
    for label, values, unit in (("error", found.position, "m"), ("error", found.rotation, "rad")):
        table.add_row(label, *(f"{x:.1e}" for x in np.atleast_1d(values)), unit)
    print_table(console, table)
    if hasattr(found, "method"):
        _print_method(console, found)
    else:
        searches = (
            f"{count_text(int(found.restarts) + 1, 'search', 'searches')}, {int(found.iterations)} steps in the last"
        )
        console.print(searches)


def _print_method(console: Console, found: Any) -> None:
    console.print(f"{count_text(len(found), 'solution')} by {found.method}")
    if found.outside:
        console.print(f"{count_text(found.outside, 'solution')} beyond the limits: --no-limits lists all")
    if found.redundant:
        extra = count_text(found.redundant, "degree of freedom", "degrees of freedom")
        console.print(f"The arm has {extra} in excess: solutions are infinitely many, and one of them is listed.")


# --- The command `balance`: torques that hold a mechanism at rest, with and without its springs ---


@app.command()
def balance(
    model: Model,
    over: Annotated[
        list[str], typer.Option(help="joint=low:high, the range of a joint in rad or m; once or twice. pi is known.")
    ],
    actuated: Annotated[
        list[str] | None,
        typer.Option(help="A joint that holds the mechanism; may be repeated. Default: all, or the independent ones."),
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of positions of each joint.", min=2, max=100_000)] = 61,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    param: Param = None,
    output: FileOrFolder = OUT,
) -> None:
    """Compute the torques that hold a mechanism over its workspace.

    Peak and RMS torques of each joint are printed, under gravity with the forces of the mechanism (springs, actuators)
    and under gravity alone. The picture has curves over one joint, or maps over two. Exit status 2 if an input is
    wrong.
    """
    from .console import clean, heading, make_console, make_table, print_table
    from .motions import file_stem, parameter_values, print_files

    system = load_system(model, base, root, lenient)
    file = file_of(output, f"{file_stem(system)}_balance.png")
    values = parameter_values(system, param)
    found = system.balance(_ranges(over), actuated=actuated or None, parameters=values, samples=samples)
    console = make_console()
    heading(console, f"{clean(found.mechanism)}: torques at rest over {clean(' and '.join(x for x, _ in found.over))}")
    table = make_table(console, "joint", "unit", "peak", "RMS", "peak without", "RMS without")
    for row in found.rows():
        table.add_row(*map(clean, row))
    print_table(console, table)
    print_files(console, [found.plot(file)])


def _ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return ranges by joint from texts such as elbow=-pi/2:pi/2."""
    from ...errors import InputError
    from .motions import by_joint

    out: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, bounds = text.partition("=")
        low, sign, high = bounds.partition(":")
        if not (name.strip() and low.strip() and sign and high.strip()):
            raise InputError(f"--over {text!a}: write joint=low:high, such as --over elbow=-1.5:1.5")
        pair = (by_joint("--over", [f"{name}={bound}"])[name.strip()] for bound in (low, high))
        a, b = pair
        out[name.strip()] = float(a), float(b)
    return out
