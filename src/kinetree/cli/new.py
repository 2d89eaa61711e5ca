"""`kinetree new`: a folder with the template of a robot, an experiment and a guide.

Exit status 2 if the name or the kind is wrong, or a file exists.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .folders import folder

app = typer.Typer()


@app.command()
def new(
    robot: Annotated[str, typer.Argument(help="The name of the robot, of its folder and of its model file.")],
    kind: Annotated[
        str, typer.Option(help="The template: arm, tree (branches), or closed (a loop, a linear actuator, a spring).")
    ] = "arm",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=folder("files are named like the robot"),
            help="The folder to make. Default: ROBOT.",
        ),
    ] = None,
) -> None:
    """Make a folder with a commented template of a robot.

    It runs at once: a model file, an experiment, and a README with the seven steps from CAD to results. Nothing is
    overwritten.
    """
    from ..templates import new_robot
    from .console import clean, make_console
    from .motions import print_files

    console, files = make_console(), new_robot(robot, kind, out)
    print_files(console, files)
    console.print(clean(f"Next: cd {files[0].parent} && kinetree show {files[0].name}"), soft_wrap=True)
