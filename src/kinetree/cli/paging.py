"""The command `kinetree page`: a mechanism as one web page that computes by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .analyses import Lenient, Root, loaded
from .motions import file_stem

app = typer.Typer()


@app.command()
def page(
    model: Annotated[str, typer.Argument(help="A library name, or a .toml, .urdf, .xml or .csv file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page. Default: MODEL.html.")] = None,
    base: Annotated[str, typer.Option(help="URDF: fixed, or free to let the root link float.")] = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    meshes: Annotated[bool, typer.Option("--meshes", help="Draw the meshes of the model, simplified.")] = False,
) -> None:
    """Write a web page that moves and computes by itself."""
    system = loaded(model, base, root, lenient)
    path = out or Path(f"{file_stem(system)}.html")
    made = system.page(path, meshes=meshes)
    print(f"{path} ({len(made.text) / 1000:.0f} kB)")
