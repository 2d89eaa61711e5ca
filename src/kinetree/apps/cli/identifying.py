"""The command `identify`: the parameters of a robot from a log of its motion and its torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ... import joints as joint_kinds
from ...errors import ModelError
from ...simulation.changes import reduced
from ...system import System
from .analyses import Base, Lenient, Root, load_system
from .console import OUT, Folder, folder_of

app = typer.Typer()


@app.command()
def identify(
    log: Annotated[
        list[Path], typer.Argument(help="Logs (.csv): a header, and columns of time, q, and torques or currents.")
    ],
    model: Annotated[str, typer.Option(help="A library name, or a .toml, .urdf, .xacro, .sdf, .xml, .csv or .m file.")],
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
        str, typer.Option(help="Possible bodies by sdp (needs cvxpy), log-cholesky or points; none: as estimated.")
    ] = "log-cholesky",
    columns: Annotated[
        str,
        typer.Option(
            help="Sorts of parameters of joints: viscous, coulomb, offset, armature, stiffness, stribeck, asymmetry, "
            "with commas; or none."
        ),
    ] = "viscous,coulomb,offset,armature",
    cutoff: Annotated[
        float | None, typer.Option(help="Highest frequency of positions [Hz]; default: by noise.")
    ] = None,
    delays: Annotated[bool, typer.Option("--delays/--no-delays", help="Find delays of torques.")] = True,
    degrees: Annotated[
        bool | None, typer.Option("--degrees/--radians", help="The unit of angles; default: by names and sizes.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Samples per second, for logs without a column of times.")] = None,
    header: Annotated[
        str | None, typer.Option(help="Names of columns, or of quantities of all joints: t,q,qd,current.")
    ] = None,
    lock: Annotated[
        list[str] | None, typer.Option(help="A joint that stands still, and is not in the log; may be repeated.")
    ] = None,
    base: Base = "fixed",
    root: Root = None,
    lenient: Lenient = False,
    output: Folder = OUT,
) -> None:
    """Identify the parameters of a robot from a log.

    Writes NAME_identified as .toml, .urdf and .xml (MJCF), and NAME_identification.html with torques and residuals of
    each joint. Columns are recognized by their names: time; q1, q2, ... or position_JOINT; velocities; tau1, ... or
    current1, ... Several logs are one set of data.
    Exit status 2 if an input is wrong.
    """
    from ...analysis.identification.identify import VALIDATION
    from ...analysis.identification.identify import identify as find
    from ...analysis.identification.logs import read_log
    from ...loading import write
    from .console import clean, heading, make_console, make_table, print_table
    from .motions import file_stem, listed_numbers, print_files

    whole, findings = load_system(model, base, root, lenient), list[str]()
    system = without_motion(whole, lock or ())
    folder = folder_of(output, "files are named like the model")
    names = None if header is None else [x.strip() for x in header.split(",")]
    read = partial(read_log, system=system, findings=findings, degrees=degrees, rate=rate, header=names)
    recording = [read(path) for path in log]
    held = None if validation is None else read(validation)
    measured = actuated or [j.name for j in system.joints if j.kind != "fixed"]
    torques = None if gains is None else listed_numbers("--gains", gains, measured)
    found = find(
        system, recording, method=method, consistent=None if consistent == "none" else consistent, cutoff=cutoff,
        columns=() if columns == "none" else [x.strip() for x in columns.split(",")], delays=delays,
        actuated=actuated or None, signs=True, undetermined="model", gains=torques,
        validation=VALIDATION if held is None else held,
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
    moving = with_motion(found.system, whole, lock or ())
    files = [
        Path(write(moving, folder / f"{stem}_identified.toml")),
        found.report(folder / f"{stem}_identification.html"),
    ]
    for suffix in (".urdf", ".xml"):
        try:
            report = write(moving, folder / f"{stem}_identified{suffix}")
            files.append(Path(report))
            for entry in report.of("dropped"):
                console.print(f"* not in {suffix}: {clean(entry.text)}", soft_wrap=True)
        except ModelError as error:
            console.print(f"* no {suffix}: {clean(str(error))}", soft_wrap=True)
    print_files(console, files)


def without_motion(system: System, names: Sequence[str]) -> System:
    """Return a mechanism whose joints of these names are fixed at zero displacement."""
    if not names:
        return system
    zero = {j.name: joint_kinds.kind(j.kind).neutral(j) for j in map(system.mechanism.joint, names)}
    return reduced(system, zero, fixed="keep")


def with_motion(system: System, whole: System, names: Sequence[str]) -> System:
    """Return an identified mechanism with the joints that were fixed as they were in the whole one."""
    if not names:
        return system
    m, before = system.mechanism, {j.name: j for j in whole.joints}
    joints = tuple(before[j.name] if j.name in names else j for j in m.joints)
    return type(whole)(replace(whole.mechanism, bodies=m.bodies, joints=joints))
