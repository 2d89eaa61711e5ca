"""The table of a mechanism in a page: a row of numbers per body, by Denavit-Hartenberg where its joints are such.

The form of a row is "standard" or "modified" (formats/dh.py), or "placement": x, y, z, roll, pitch, yaw of the body in
its parent. Centers of mass and inertias are in the frame of the form: frame i+1 for "standard", else that of the body.
The page computes poses from these numbers; a row whose geometry nobody changed keeps its given pose.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.rotations import rpy_of
from ..algebra.scalars import Numbers, Scalar
from ..algebra.vectors import from_moments
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..formats.dh_table import EXACT, Geometry, differs, modified_geometry, pose_matrix, standard_geometry
from ..formats.report import Report
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import Expression, Parameter, names_in
from ..model.parts import GROUND, Joint, Placement
from ..plots.links import between_points

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


# --- Lengths of closed mechanisms as inputs of their pages: a change shows whether the loops still close ---

MOST_LENGTHS = 10
"""The largest number of lengths that become inputs; a mechanism with more keeps its numbers."""
SHORT = 1e-9
"""Lengths below this part of the longest one are zeros with rounding errors."""


@dataclass(frozen=True)
class Length:
    """A length that is a parameter, and its body and joint or loop; both are empty for parameters of the model.

    `made` is true for parameters that the model does not have, or that are not free in it.
    """

    parameter: str
    body: str = ""
    end: str = ""
    made: bool = True


def free_lengths(mechanism: Mechanism) -> tuple[Mechanism, tuple[Length, ...]]:
    """Return a mechanism with the lengths of its loops as free parameters, and these lengths.

    Parameters in the placements of joints and loops become free. A placement of numbers keeps its direction, and its
    distance becomes a parameter. Mechanisms without loops, with rolling or with many lengths stay as they are.
    """
    if not mechanism.loops or mechanism.rolls:
        return mechanism, ()
    made = _Freeing(mechanism)
    joints = [
        replace(j, placement=made.placement(j.placement, j.parent, j.name)) if _in_loop(mechanism, j) else j
        for j in mechanism.joints
    ]
    loops = [
        replace(
            x,
            placement_a=made.placement(x.placement_a, x.body_a, x.name),
            placement_b=made.placement(x.placement_b, x.body_b, x.name),
            length=made.distance(x.length, x.name, x.name),
        )
        for x in mechanism.loops
    ]
    if not 0 < len(made.lengths) <= MOST_LENGTHS:
        return mechanism, ()
    named = {x.parameter for x in made.lengths}
    parameters = [replace(p, free=p.free or p.name in named) for p in mechanism.parameters]
    freed = replace(mechanism, joints=tuple(joints), loops=tuple(loops), parameters=(*parameters, *made.parameters))
    return freed, tuple(made.lengths)


class _Freeing:
    """The lengths of a mechanism that become parameters, one after the other."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.short = SHORT * max(mechanism.lengths, default=1.0)
        self.taken = {p.name for p in mechanism.parameters}
        self.free = {p.name for p in mechanism.free_parameters}
        self.lengths: list[Length] = []
        self.parameters: list[Parameter] = []

    def placement(self, placement: Placement, body: str, end: str) -> Placement:
        along = placement.translation
        if any(isinstance(x, Expression) for x in along):
            for x in along:
                self.named(x)
            return placement
        if (distance := math.hypot(*along)) <= self.short:
            return placement
        unit = self.distance(distance, body, end)
        return replace(placement, translation=tuple(float(x) / distance * unit if x else 0.0 for x in along))

    def distance(self, value: Scalar, body: str, end: str) -> Scalar:
        if isinstance(value, Expression):
            return self.named(value)
        if not value:
            return value
        name = f"length_{len(self.lengths) + 1}"
        while name in self.taken:
            name += "_"
        self.lengths.append(Length(name, body, end))
        self.parameters.append(Parameter(name, float(value), free=True, unit="m"))
        return Expression("name", (name,))

    def named(self, value: object) -> Scalar:
        known = {x.parameter for x in self.lengths}
        if isinstance(value, Expression):
            self.lengths += [Length(name, made=name not in self.free) for name in sorted(value.names() - known)]
        return value


def with_lengths(mechanism: Mechanism, values: Sequence[float]) -> Mechanism:
    """Return a mechanism with its free parameters, and the lengths that `free_lengths` adds to them, at given values.

    What was a number is a number again, and what was a parameter has another value.
    """
    freed, lengths = free_lengths(mechanism)
    given = dict(zip((p.name for p in freed.free_parameters), map(float, values), strict=True))
    own = {p.name: replace(p, value=given.get(p.name, p.value)) for p in mechanism.parameters}
    if not lengths:
        return replace(mechanism, parameters=tuple(own.values()))
    terms: dict[str, Scalar] = given | {name: Expression("name", (name,)) for name in own}
    return replace(
        mechanism,
        joints=resolve_parts(freed.joints, terms),
        loops=resolve_parts(freed.loops, terms),
        parameters=tuple(own.values()),
    )


def length_table(mechanism: Mechanism, lengths: tuple[Length, ...]) -> list[dict[str, object]]:
    """Return the lengths for the page: the place of the parameter among the free ones, and a label in words."""
    places = {p.name: k for k, p in enumerate(mechanism.free_parameters)}
    notes = {p.name: p.note for p in mechanism.free_parameters}
    index = {body.name: i for i, body in enumerate(mechanism.bodies)}
    of = Counter(x.body for x in lengths)
    return [
        {
            "parameter": places[x.parameter],
            "body": index.get(x.body, -1),
            "made": x.made,
            "label": x.parameter if not x.body else x.body if of[x.body] == 1 else f"{x.body} to {x.end}",
            "note": notes[x.parameter],
        }
        for x in lengths
    ]


def placements_program(mechanism: Mechanism) -> Program | None:
    """Return the Program (parameters) -> (frames, loops, forces) of placements, with those that exist, or None.

    `frames` are those of the named frames on their bodies, `loops` those of both ends of each loop, each as the sixteen
    entries of its matrix, row by row. `forces` are both points of each force element between points.
    """
    free = mechanism.free_parameters
    trace = Trace()
    given = mechanism.values([trace.input(0, k) for k in range(len(free))])
    ends = [end for x in mechanism.loops for end in (x.placement_a, x.placement_b)]
    elements = between_points(mechanism.forces, mechanism.joints)
    entries = {
        "frames": [x for frame in mechanism.frames for x in _entries(frame.placement, given)],
        "loops": [x for end in ends for x in _entries(end, given)],
        "forces": [x for e in elements for point in (e.point_a, e.point_b) for x in resolve_parts(point, given)],
    }
    outputs = {name: numbers for name, numbers in entries.items() if numbers}
    if not free or not outputs:
        return None
    arrays = [Array(name, (len(entries),)) for name, entries in outputs.items()]
    return Program.of_trace("placements", [Array("parameters", (len(free),))], arrays, trace, list(outputs.values()))


def _entries(placement: Placement, values: dict[str, Any]) -> list[Scalar]:
    R, p = resolve_parts(placement.rotation, values), resolve_parts(placement.translation, values)
    return [x for row, at in zip(R, p, strict=True) for x in (*row, at)] + [0.0, 0.0, 0.0, 1.0]


def _in_loop(mechanism: Mechanism, joint: Any) -> bool:
    """Return whether loops pass through a joint: its body, or one beyond it, is an end of a loop."""
    children: dict[str, list[str]] = {}
    for j in mechanism.joints:
        children.setdefault(j.parent, []).append(j.child)
    ends = {body for x in mechanism.loops for body in (x.body_a, x.body_b)}
    beyond = [joint.child]
    for body in beyond:
        beyond += children.get(body, [])
    return bool(ends & set(beyond))
