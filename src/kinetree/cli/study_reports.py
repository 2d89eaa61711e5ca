"""The command `report`: statistics of a study that was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def report(
    study: Annotated[Path, typer.Argument(help="The store of a study (.zarr), or its results (.npz).")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page. Default: STUDY_report.html.")] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="A limit whose violation is a failure: 'peak < 50'; repeatable.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A stored column whose bands are drawn; repeatable. Default: all.")
    ] = None,
    worst: Annotated[int, typer.Option(help="The number of worst cases.", min=1)] = 5,
) -> None:
    """Write the statistics of a study as one web page.

    Bands over time, histograms, failures by reason, sensitivity indices and worst cases, also of a study under way.
    Exit status 1 if no run finished, 2 if an input is wrong.
    """
    from ..studies.files import read_study
    from ..studies.statistics.summary import summary_of
    from .console import clean, heading, make_console
    from .motions import print_files

    found = read_study(study)
    limits = _limits(limit or [])
    page = out or study.with_name(f"{study.stem}_report.html")
    path = found.report(page, limits=limits, columns=column or None, n=worst)
    console = make_console()
    heading(console, f"{clean(str(found.about.get('mechanism', 'study')))}: {found.evaluated:,} of {found.runs:,} runs")
    for line in summary_of(found, limits=limits, columns=[], n=worst).words:
        console.print(f"  {clean(line)}", soft_wrap=True)
    print_files(console, [path])
    if not found.finished.any():
        raise typer.Exit(1)


def _limits(texts: list[str]) -> dict[str, tuple[float | None, float | None]]:
    """Return bounds by measure from texts such as "peak < 50"."""
    from ..errors import InputError

    out: dict[str, tuple[float | None, float | None]] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in (text.partition("<") if "<" in text else text.partition(">")))
        try:
            bound = float(value)
        except ValueError:
            raise InputError(f"--limit {text!r}: give a measure, < or >, and a number: 'peak < 50'") from None
        low, high = out.get(name, (None, None))
        out[name] = (low, bound) if sign == "<" else (bound, high)
    return out
