"""The commands for saved runs: plot and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()

Run = Annotated[Path, typer.Argument(help="A saved run: .csv, .npz, .parquet or .zarr.")]


@app.command()
def plot(
    run: Run,
    column: Annotated[
        list[str] | None, typer.Option(help="A column or part, such as q or q.joint2; repeatable. Default: q, qd.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The figure. Default: RUN.png.")] = None,
) -> None:
    """Draw a saved run over time."""
    from ..results import read_trajectory

    path = out or run.with_suffix(".png")
    read_trajectory(run).plot(column or ["q", "qd"], path)
    print(path)


@app.command()
def replay(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page. Default: RUN.html.")] = None,
) -> None:
    """Write a web page that replays a saved run."""
    from ..results import read_trajectory

    print(read_trajectory(run).replay(out or run.with_suffix(".html")))
