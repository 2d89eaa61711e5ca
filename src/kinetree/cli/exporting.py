"""The command of export: functions of a mechanism as code for other machines.

Exit status 2 if an option, a file or a model is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .analyses import Base, Lenient, Model, Root, loaded
from .folders import folder

app = typer.Typer()


@app.command("export")
def export_command(
    model: Model,
    functions: Annotated[
        str,
        typer.Option(
            help="Names and commas: functions of a mechanism, step (a time step), run (a whole run), rates, loads."
        ),
    ] = "forward_dynamics,inverse_dynamics",
    to: Annotated[
        str,
        typer.Option(help="Formats and commas: c, object:PROCESSOR (such as aarch64 or cortex-m7), wasm, ptx."),
    ] = "c",
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            callback=folder("files are named like the functions, and their formats by --to"),
            help="The folder for the files.",
        ),
    ] = Path("out"),
    dtype: Annotated[str, typer.Option(help="The precision: float64 or float32.")] = "float64",
    method: Annotated[
        str, typer.Option(help="The integrator of step and run: rk4, euler, midpoint, gauss; run: dopri5, dop853.")
    ] = "rk4",
    frame: Annotated[str | None, typer.Option(help="The frame of pose, twist, jacobian and the like.")] = None,
    axes: Annotated[str | None, typer.Option(help="Their axes: body or world.")] = None,
    wrenches: Annotated[bool, typer.Option("--wrenches", help="Take external wrenches on all bodies.")] = False,
    passive: Annotated[
        bool, typer.Option("--passive/--no-passive", help="Damping, friction, springs of the mechanism, or not.")
    ] = True,
    prefix: Annotated[str, typer.Option(help="The beginning of all names, to keep several models apart.")] = "",
    jacobian: Annotated[bool, typer.Option("--jacobian", help="Write Jacobians too, which CasADi finds.")] = False,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Write functions as code for other machines.

    Each has a self-test.
    """
    from ..exporting.export import export
    from .console import make_console
    from .motions import print_files

    paths = export(
        loaded(model, base, root, lenient), _words(functions), _words(to), out,
        frame=frame, axes=axes, wrenches=wrenches, passive=passive, method=method, dtype=dtype, prefix=prefix,
        jacobian=jacobian,
    )  # fmt: skip
    print_files(make_console(), paths)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
