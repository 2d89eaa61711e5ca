"""The command `identify`: the parameters of a robot from a log of its motion and its torques."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .analyses import Base, Lenient, Root, load_system
from .outputs import OUT, Folder, folder_of

app = typer.Typer()


@app.command()
def identify(
    log: Annotated[
        Path, typer.Argument(help="The log (.csv): a header, and columns of time, q, and torques or currents.")
    ],
    model: Annotated[str, typer.Option(help="A library name, or a .toml, .urdf, .xml or .csv file.")],
    validation: Annotated[
        Path | None, typer.Option(help="Another log, for the residuals; default: the last quarter of the log.")
    ] = None,
    gains: Annotated[
        str | None, typer.Option(help="Torques per unit of current, one per joint: 11.2,11.2,7.5.")
    ] = None,
    actuated: Annotated[
        list[str] | None, typer.Option(help="A joint of a closed mechanism with a measured torque; may be repeated.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="ols, wls (joints by their noise) or irls (outliers count less).")
    ] = "irls",
    consistent: Annotated[
        str, typer.Option(help="Possible bodies by sdp (needs cvxpy) or log-cholesky; none: as estimated.")
    ] = "log-cholesky",
    columns: Annotated[
        str, typer.Option(help="Sorts of parameters of joints: viscous,coulomb,offset,armature,stiffness, or none.")
    ] = "viscous,coulomb,offset,armature",
    cutoff: Annotated[
        float | None, typer.Option(help="Highest frequency of positions [Hz]; default: by noise.")
    ] = None,
    delays: Annotated[bool, typer.Option("--delays/--no-delays", help="Find delays of torques.")] = True,
    degrees: Annotated[
        bool | None, typer.Option("--degrees/--radians", help="The unit of angles; default: by names and sizes.")
    ] = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    output: Folder = OUT,
) -> None:
    """Identify the parameters of a robot from a log.

    Writes NAME_identified.toml, and NAME_identification.html with torques and residuals of each joint. Columns are
    recognized by their names: time; q1, q2, ... or position_JOINT; velocities; tau1, ... or current1, ...
    Exit status 2 if an input is wrong.
    """
    from ...analysis.identification.identify import VALIDATION
    from ...analysis.identification.identify import identify as find
    from ...analysis.identification.logs import read_log
    from ...loading import save
    from .console import clean, heading, make_console, make_table, print_table
    from .motions import file_stem, listed_numbers, print_files

    system, findings = load_system(model, base, root, lenient), list[str]()
    folder = folder_of(output, "files are named like the model")
    recording = read_log(log, system, findings, degrees=degrees)
    held = None if validation is None else read_log(validation, system, findings, degrees=degrees)
    torques = None if gains is None else listed_numbers("--gains", gains, [j.name for j in system.joints])
    found = find(
        system, recording, method=method, consistent=None if consistent == "none" else consistent, cutoff=cutoff,
        columns=() if columns == "none" else [x.strip() for x in columns.split(",")], delays=delays,
        actuated=actuated or None, signs=True, gains=torques, validation=VALIDATION if held is None else held,
    )  # fmt: skip
    console = make_console()
    text, *rest = found.display()
    heading(console, clean(str(text)))
    for line in [*findings, *(x for x in rest if isinstance(x, str))]:
        console.print(f"* {clean(line)}", soft_wrap=True)
    for part in rest:
        if not isinstance(part, str):
            table = make_table(console, *part.labels)
            for row in part.rows:
                table.add_row(*(clean(x if isinstance(x, str) else f"{x:.5g}") for x in row))
            print_table(console, table)
    stem = file_stem(system)
    found = found.noting(findings)
    files = [
        save(found.system, folder / f"{stem}_identified.toml"),
        found.report(folder / f"{stem}_identification.html"),
    ]
    print_files(console, files)
