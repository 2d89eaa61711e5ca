"""The table of a mechanism in a page: a row of numbers per body, by Denavit-Hartenberg where its joints are such.

The form of a row is "standard" or "modified" (formats/dh.py), or "placement": x, y, z, roll, pitch, yaw of the body in
its parent. Centers of mass and inertias are in the frame of the form: frame i+1 for "standard", else that of the body.
The page computes poses from these numbers; a row whose geometry nobody changed keeps its given pose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.arrays import Numbers
from ..algebra.rotations import rpy_of
from ..algebra.vectors import from_moments
from ..formats.dh_table import EXACT, Geometry, differs, modified_geometry, pose_matrix, standard_geometry
from ..formats.report import Report
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import names_in
from ..model.parts import GROUND, Joint

MOMENTS = ([0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0])
"""Rows and columns of xx, yy, zz, xy, yz, zx in a matrix of inertia."""
MOST_NOTES, LONGEST = 30, 400
"""The most entries of the import report in a page, and the longest text of one [characters]."""


def page_table(mechanism: Mechanism, values: dict[str, Any]) -> dict[str, object]:
    """Return the rows of a mechanism at the values of its parameters, and what the page must know of their forms."""
    m, free = mechanism, {p.name for p in mechanism.free_parameters}
    bodies, joints = resolve_parts(m.bodies, values), resolve_parts(m.joints, values)
    frames = [(f.name, f.body, pose_matrix(resolve_parts(f.placement, values))) for f in m.frames]
    ends = _standard_ends(m, joints, frames)
    starts = None if ends else _modified_starts(m, joints)
    rows = []
    for i, (body, joint) in enumerate(zip(bodies, joints, strict=True)):
        com, inertia = np.array(body.com, dtype=float), np.array(from_moments(body.inertia), dtype=float)
        row: dict[str, object] = {"name": body.name, "joint": joint.kind, "parent": m.parents[i]}
        row |= {"placed": _set_by(m.joints[i].placement, free), "weighed": _set_by(m.bodies[i], free)}
        if ends:
            end, geometry = ends[i]
            R = end[:3, :3]
            com, inertia = R.T @ (com - end[:3, 3]), R.T @ inertia @ R
            row |= {"form": "standard"} | _rounded(geometry)
        elif starts and (start := starts[i]) is not None:
            row |= {"form": "modified"} | _rounded(start)
        else:
            row |= {"form": "placement"} | _angles(pose_matrix(joint.placement))
        moments = _plain(inertia[MOMENTS]) if ends else [float(x) for x in body.inertia]
        row |= {
            "mass": float(body.mass),
            "com": _plain(com) if ends else [float(x) for x in body.com],
            "inertia": moments,
        }
        rows.append(row)
    tool = next((frame for frame in frames if bodies and frame[:2] == ("tool", bodies[-1].name)), None)
    chain = all(parent == i - 1 for i, parent in enumerate(m.parents))
    forms = {row["form"] for row in rows}
    branches = [row for row in rows if row.get("gamma") or row.get("epsilon")]
    return {
        "rows": rows,
        "tool": None if tool is None or not chain or "placement" in forms else _tool(tool, ends),
        "serial": chain and len(forms) == 1 and "placement" not in forms and not m.loops and not branches,
        "gravity": _plain(resolve_parts(tuple(m.gravity), values)),
        "loops": [_set_by(loop, free) for loop in m.loops],
    }


def notes(report: Report) -> list[dict[str, str]]:
    """Return the import report for the page: the sort of each entry and its text, the first ones of many."""
    entries = [{"level": e.sort, "text": e.text[:LONGEST]} for e in report.entries]
    rest = len(entries) - MOST_NOTES
    more = [{"level": "note", "text": f"{rest} further entries are in the import report, arm.report in Python"}]
    return entries[:MOST_NOTES] + (more if rest > 0 else [])


def _set_by(part: object, free: set[str]) -> str:
    """Return the free parameters that set numbers of a part, as words; the table cannot change such a part."""
    return ", ".join(sorted(names_in(part) & free))


def _standard_ends(m: Mechanism, joints: tuple[Joint, ...], frames: list) -> list[tuple[Numbers, Geometry]] | None:
    """Return frame i+1 of every row in its body's frame, with its parameters; None if the table is not a standard one.

    Readers of standard tables give these frames the names frame_2, frame_3, ...; children stand on them.
    """
    found = {(name, body): pose for name, body, pose in frames}
    out: list[tuple[Numbers, Geometry]] = []
    for i, joint in enumerate(joints):
        end = found.get((f"frame_{i + 2}", joint.child))
        geometry = None if end is None else standard_geometry(end)
        start = np.eye(4) if joint.parent == GROUND else out[m.parents[i]][0]
        if end is None or geometry is None or not _about_z(joint) or differs(pose_matrix(joint.placement), start):
            return None
        out.append((end, geometry))
    return out or None


def _modified_starts(m: Mechanism, joints: tuple[Joint, ...]) -> list[Geometry | None] | None:
    """Return the parameters of every row, None for joints of other kinds; None if the table is not a modified one.

    In a modified table, two thirds of the rows or more have such parameters, and bodies without siblings have neither
    gamma nor epsilon. Other placements, such as those of most URDF files, differ in this.
    """
    starts = [modified_geometry(pose_matrix(joint.placement)) if _about_z(joint) else None for joint in joints]
    alone = [start for start, p in zip(starts, m.parents, strict=True) if start and m.parents.count(p) == 1]
    if 3 * starts.count(None) > len(starts) or any(start.gamma or start.epsilon for start in alone):
        return None
    return starts


def _tool(tool: tuple[str, str, Numbers], ends: Any) -> dict[str, object] | None:
    """Return a and alpha of the tool in the frame of the last row, Tx(a) Rx(alpha); None for other tools."""
    pose = np.linalg.inv(ends[-1][0]) @ tool[2] if ends else tool[2]
    found = standard_geometry(pose)
    if found is None or abs(found.theta) > EXACT or abs(found.b) > EXACT:
        return None
    return {"a": found.a, "alpha": found.alpha}


def _about_z(joint: Joint) -> bool:
    """Return whether a joint rotates about z, moves along z, or is fixed."""
    kind = joint_kinds.kind(joint.kind)
    axial = kind.AXIAL is not None and np.array_equal(np.array(kind.frame(joint), dtype=float)[:, 2], (0.0, 0.0, 1.0))
    return bool(axial or not kind.NV)


def _angles(pose: Numbers) -> dict[str, float]:
    """Return x, y, z, and roll, pitch, yaw of Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = rpy_of(pose[:3, :3].tolist())
    x, y, z = _plain(pose[:3, 3])
    return {"x": x, "y": y, "z": z, "roll": roll, "pitch": pitch, "yaw": yaw}


def _rounded(geometry: Geometry) -> dict[str, float]:
    """Return the parameters, lengths without the rounding of rotations; a multiple of pi would lose digits by it."""
    angles = {"theta", "alpha", "gamma"}
    return {name: x + 0.0 if name in angles else _plain([x])[0] for name, x in vars(geometry).items()}


def _plain(values: Any) -> list[float]:
    """Return numbers with 15 digits, which removes the rounding of rotations there and back."""
    return [float(f"{float(x):.15g}") + 0.0 for x in values]
