"""The command `balance`: torques that hold a mechanism at rest, with and without its springs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .analyses import Base, Lenient, Model, Root, loaded
from .simulating import Param

app = typer.Typer()


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
    picture: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="The picture to write. Default: MODEL_balance.png.")
    ] = None,
) -> None:
    """Compute the torques that hold a mechanism over its workspace.

    Peak and RMS torques of each joint are printed, under gravity with the forces of the mechanism (springs, actuators)
    and under gravity alone. The picture has curves over one joint, or maps over two. Exit status 2 if an input is
    wrong.
    """
    from .console import clean, heading, make_console, make_table, print_table
    from .motions import file_stem, parameter_values, print_files

    system = loaded(model, base, root, lenient)
    values = parameter_values(system, param)
    found = system.balance(_ranges(over), actuated=actuated or None, parameters=values, samples=samples)
    console = make_console()
    heading(console, f"{clean(found.mechanism)}: torques at rest over {clean(' and '.join(x for x, _ in found.over))}")
    table = make_table(console, "joint", "unit", "peak", "RMS", "peak without", "RMS without")
    for row in found.rows():
        table.add_row(*map(clean, row))
    print_table(console, table)
    print_files(console, [found.plot(picture or Path(f"{file_stem(system)}_balance.png"))])


def _ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return ranges by joint from texts such as elbow=-pi/2:pi/2."""
    from ..errors import InputError
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
