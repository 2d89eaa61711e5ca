"""The command `kinetree studio`: the web page served on this machine, with Python behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .analyses import Lenient, Root, loaded

app = typer.Typer()

FIRST = "stanford"
"""The mechanism of a studio that is opened without one."""


@app.command()
def studio(
    model: Annotated[str, typer.Argument(help="A library name, or a .toml, .urdf, .xml or .csv file.")] = FIRST,
    folder: Annotated[Path, typer.Option(help="The folder of files to open and to save.")] = Path("."),
    port: Annotated[int, typer.Option(help="The port of 127.0.0.1. Default: a free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
    base: Annotated[str, typer.Option(help="URDF: fixed, or free to let the root link float.")] = "fixed",
    root: Root = None,
    lenient: Lenient = False,
) -> None:
    """Build, move and simulate mechanisms in the browser.

    Only programs of this machine reach it, and only with the token in its address. Ctrl-C ends it.
    """
    from ..studio.folder import Folder
    from ..studio.serving import listen, open_browser

    system = loaded(model, base, root, lenient)
    made = listen(lambda: system, Folder.of(folder), port)
    print(f"The studio is at {made.address}")
    print("Ctrl-C ends it.", flush=True)
    if not no_browser:
        open_browser(made.address)
    made.run()
