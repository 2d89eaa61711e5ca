"""The data of pages: a mechanism or a run as tables for JSON with arrays, its functions, and its drawing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from .._support import VERSION
from ..algebra.scalars import Numbers
from ..algebra.vectors import from_moments
from ..analysis.loops.subsystems import subsystem_recursion
from ..errors import InputError, ModelError
from ..exporting.acting import coordinates
from ..formats.report import Report
from ..formats.urdf_writer import urdf_template
from ..model.axes import axis_labels, axis_names, rate_unit
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import Joint, Placement, Shape
from ..plots.camera import FIELD, even_frames, finite, fit, floor_cell
from ..plots.links import COLORS, Rod, between_points
from ..plots.meshes import MARKS, join_meshes, solid
from ..plots.skeleton import Scene, scene
from ..results.columns import EFFORTS
from ..results.trajectory import Trajectory
from ..simulation.acting.point_forces import forces_of
from ..system import System
from .file import compress, pack, script_of, style_of
from .ground import Ground, ground_of
from .kernel import Progress, page_kernel
from .mesh_files import read_shape
from .run import Arrow, arrows_of, at_times, lengths, page_beams, run_frames
from .table import Length, free_lengths, length_table, notes, page_table

# --- The data of a mechanism in a page: bodies, joints, frames, loops, force elements, coordinates, parameters ---


def page_model(mechanism: Mechanism, values: dict[str, Any], lengths: tuple[Length, ...] = ()) -> dict[str, Any]:
    """Return a mechanism as plain tables, at the values of its parameters; `lengths` are those that the page freed."""
    m = mechanism
    index = {body.name: i for i, body in enumerate(m.bodies)}
    joints = resolve_parts(m.joints, values)
    return {
        "name": m.name,
        "description": m.description,
        "nq": m.nq,
        "nv": m.nv,
        "gravity": _finite(resolve_parts(tuple(m.gravity), values)),
        "bodies": [
            _body(b, parent, COLORS[i % len(COLORS)])
            for i, (b, parent) in enumerate(zip(resolve_parts(m.bodies, values), m.parents, strict=True))
        ],
        "joints": [
            {**_joint(j), "q": [q.start, q.stop], "v": [v.start, v.stop]}
            for j, q, v in zip(joints, m.q_slices, m.v_slices, strict=True)
        ],
        "coordinates": _coordinates(m, joints),
        "velocities": [
            {"label": label, "joint": _index(m, joint), "unit": rate_unit(unit), "effort": EFFORTS[unit]}
            for label, (joint, _, unit) in zip(axis_labels(m, 1), axis_names(m, 1), strict=True)
        ],
        "frames": [
            {"name": f.name, "body": index.get(f.body, -1), "pose": _pose(resolve_parts(f.placement, values))}
            for f in m.frames
        ],
        "loops": [
            {
                "name": x.name, "kind": x.kind, "bar": bool(loop_kinds.kind(x.kind).bar),
                "a": index.get(x.body_a, -1), "b": index.get(x.body_b, -1),
                "pose_a": _pose(x.placement_a), "pose_b": _pose(x.placement_b), "length": float(x.length),
            }
            for x in resolve_parts(m.loops, values)
        ],
        "forces": [
            {
                "name": x.name, "a": index.get(x.body_a, -1), "b": index.get(x.body_b, -1),
                "point_a": _finite(x.point_a), "point_b": _finite(x.point_b),
            }
            for x in between_points(resolve_parts(m.forces, values), joints)
        ],
        "equations": [{"name": c.name, "label": c.label, "unit": c.unit} for c in m.closures],
        "lengths": length_table(m, lengths),
        "contacts": [{"name": c.name, "body": c.body} for c in m.contacts],
        "couplings": [{"name": c.name, "joint": c.joint} for c in m.couplings],
        "closed": bool(m.closures),
        "passive": bool(forces_of(m)),  # damping, friction, springs and other forces of its own
        "parameters": [{"name": p.name, "value": float(p.value), "unit": p.unit} for p in m.free_parameters],
    }  # fmt: skip


def _body(body: Any, parent: int, color: str) -> dict[str, object]:
    moments, axes = np.linalg.eigh(np.array(from_moments(body.inertia), dtype=float))
    if np.linalg.det(axes) < 0:
        axes = -axes
    return {
        "name": body.name,
        "parent": parent,
        "color": color,
        "mass": float(body.mass),
        "com": _finite(body.com),
        "inertia": _finite(body.inertia),
        "moments": _finite(moments),
        "axes": [_finite(row) for row in axes],
    }


def _joint(joint: Joint) -> dict[str, Any]:
    kind = joint_kinds.kind(joint.kind)
    return {
        "name": joint.name, "kind": joint.kind, "symbol": kind.SYMBOL, "solid": kind.SOLID,
        "floats": bool(kind.FLOATS), "axial": kind.AXIAL is not None,
        "axes": [_finite(row) for row in np.array(kind.frame(joint), dtype=float)], "placement": _pose(joint.placement),
        "effort": _finite(joint.limits.effort), "velocity": _finite(joint.limits.velocity),
        "damping": _finite(joint.damping), "friction": _finite(joint.friction), "armature": _finite(joint.armature),
    }  # fmt: skip


def _coordinates(mechanism: Mechanism, joints: Any) -> list[dict[str, object]]:
    """Return label, unit, joint, velocity of the same direction, and limits of every coordinate."""
    velocity = {k: v for v, k in coordinates(mechanism).items()}
    out = []
    for k, (label, (name, _, unit)) in enumerate(zip(axis_labels(mechanism, 0), axis_names(mechanism, 0), strict=True)):
        i = _index(mechanism, name)
        at = k - mechanism.q_slices[i].start
        low, high = (_bound(x, at) for x in (joints[i].limits.lower, joints[i].limits.upper))
        out.append(
            {"label": label, "unit": unit, "joint": i, "velocity": velocity.get(k, -1), "lower": low, "upper": high}
        )
    return out


def _bound(bounds: tuple[float, ...], k: int) -> float | None:
    """Return a limit of a coordinate; None without one."""
    x = float(bounds[k]) if k < len(bounds) else np.inf
    return x if np.isfinite(x) else None


def _index(mechanism: Mechanism, joint: str) -> int:
    return [j.name for j in mechanism.joints].index(joint)


def _pose(placement: Placement) -> list[float | None]:
    """Return a placement as the sixteen entries of its matrix, row by row."""
    rotation, origin = np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float)
    return _finite(np.block([[rotation, origin[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]).ravel())


def _finite(values: Any) -> list[float | None]:
    return [float(x) if np.isfinite(float(x)) else None for x in values]


LARGEST, DRAWING, FRAME = 300_000, 28_000, 4_000
"""The most characters of a page without meshes, those of a drawing without meshes, and of the rest of the file."""
REACH = 24
"""The number of random positions of an arm on the ground, to which the first view is fitted."""
LINES, ROWS = 24, 256
"""The most bodies of a table whose numbers can be changed: functions with more of them do not fit. The most of one that
is only read."""


def system_data(
    system: System,
    *,
    q: object = None,
    meshes: bool | Collection[str] = False,
    editable: bool = True,
    progress: Progress = lambda share: None,
) -> dict[str, Any]:
    """Return the data of the page of a System: tables for JSON, with arrays.

    `meshes` are the files of meshes that are drawn, True for all; others are left out.
    """
    start = _first_position(system, q)
    data = _data(start, start["poses"], kernel=True, meshes=meshes, editable=editable, progress=progress)
    return data | {"title": system.mechanism.name}


def run_data(
    run: Trajectory,
    fps: float = 60.0,
    arrows: bool | str | Sequence[str] | None = None,
    share: object = None,
    *,
    kernel: bool = False,
    meshes: bool = False,
) -> dict[str, Any]:
    """Return the data of a page of a run: tables for JSON, with arrays."""
    times, poses = even_frames(run, fps)
    data = _data(finite(run)[:1], poses, kernel=kernel, meshes=meshes)
    frames = run_frames(run, times, None if data["kernel"] else poses)
    forces = arrows_of(finite(run), arrows, share)
    return data | {"run": frames, "arrows": _arrows(forces, finite(run).t, times, data["scene"]["size"])}


def without_read_table(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a page without a table that is only read: functions come first in a file of limited size."""
    return data | {"table": None} if len(data["model"]["bodies"]) > LINES else data


def _data(
    start: Trajectory,
    poses: Numbers,
    *,
    kernel: bool,
    meshes: bool | Collection[str],
    editable: bool = False,
    progress: Progress = lambda share: None,
) -> dict[str, Any]:
    """Return model, table, kernel, drawing and first state of a page; the view shows the poses [nt, nb, 4, 4]."""
    system = start.system
    ground = ground_of(system, start.q[0], start.parameters) if kernel else None
    whole = start if isinstance(meshes, bool) else _with_meshes(start, meshes)
    drawn = scene(whole, read_shape if meshes else None, loose_cuts=True)
    reached = poses if len(poses) > 1 else _reached(system, start, poses)
    values = system.mechanism.values(None if start.parameters is None else [float(x) for x in start.parameters])
    mechanism, lengths = free_lengths(system.mechanism) if kernel else (system.mechanism, ())
    values |= {p.name: p.value for p in mechanism.parameters if p.name not in values}
    live = System(mechanism) if lengths else system
    bodies = len(mechanism.bodies)
    table = _table(mechanism, values, system.report) if editable and 0 < bodies <= ROWS else None
    editable = table is not None and bodies <= LINES
    data = {
        "kinetree": VERSION,
        "model": page_model(mechanism, values, lengths) | _solving_order(system),
        "table": table if editable else None,
        "scene": page_scene(drawn, reached, standing=len(poses) == 1, ground=ground),
        "first": {
            "q": np.array(start.q[0]),
            "qd": np.array(start.qd[0]),
            "poses": np.array(start["poses"][0], dtype=np.float64),
            "parameters": np.array([values[p.name] for p in mechanism.free_parameters], dtype=np.float64),
        },
    }
    beams = page_beams(start) if any(b.flexible is not None for b in mechanism.bodies) else []
    data |= {"beams": beams} if beams else {}
    room = _room(mechanism, table=editable, beams=bool(beams), ground=ground is not None)
    room -= DRAWING if meshes else len(pack(data))
    functions = page_kernel(live, room, editable=editable, ground=ground, progress=progress) if kernel else None
    return data | {"table": table, "kernel": functions}


EXAMINED = 32
"""The most degrees of freedom of closed mechanisms whose subsystems a page lists; the search takes seconds beyond."""


def _solving_order(system: System) -> dict[str, Any]:
    """Return the steps by which the subsystems of a closed mechanism are solved, as text, with its drives."""
    if not system.closures or system.nv > EXAMINED:
        return {}
    try:
        recursion = subsystem_recursion(system)
    except (InputError, ModelError):  # the doctor of the page says why its loops cannot be driven
        return {}
    return {"subsystems": {"drives": list(recursion.actuated), "steps": [str(step) for step in recursion.steps]}}


def _with_meshes(start: Trajectory, files: Collection[str]) -> Trajectory:
    """Return a run of the same mechanism without the meshes of other files: bodies may be drawn by their joints."""
    m = start.system.mechanism

    def kept(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        return tuple(shape for shape in shapes if shape.kind != "mesh" or shape.file in files)

    bodies = tuple(replace(body, shapes=kept(body.shapes)) for body in m.bodies)
    system = System(replace(m, bodies=bodies, scenery=kept(m.scenery)), start.system.report)
    return Trajectory(system, start.t, start.q, start.qd, parameters=start.parameters)


def _table(mechanism: Mechanism, values: dict[str, Any], report: Report) -> dict[str, Any]:
    return page_table(mechanism, values) | {"notes": notes(report), "urdf": urdf_template(mechanism, values)}


def _room(mechanism: Mechanism, *, table: bool, beams: bool, ground: bool) -> float:
    """Return the characters that a page leaves for its data and for the functions of its mechanism."""
    script = script_of(mechanism.loops, table=table, beams=beams, ground=ground)
    return LARGEST - len(compress(script.encode())) - len(compress(style_of().encode())) - FRAME


def _reached(system: System, start: Trajectory, poses: Numbers) -> Numbers:
    """Return the first position of a mechanism, with random ones of an arm on the ground, which it may reach."""
    if system.closures or not 0 < system.nv <= 8 or system.nq != system.nv:
        return poses
    q = system.random_state(2, REACH)[0]
    more: dict[str, Any] = {} if start.parameters is None else {"parameters": start.parameters}
    return np.concatenate([poses, np.asarray(system.poses(q, **more))])


def _first_position(system: System, q: object) -> Trajectory:
    if q is None:
        q = system.assemble() if system.closures else system.neutral()
    free = system.mechanism.free_parameters
    values = np.array([p.value for p in free]) if free else None
    return Trajectory(system, np.zeros(1), np.array(q, dtype=float)[None], np.zeros((1, system.nv)), parameters=values)


def _arrows(forces: list[Arrow], t: Numbers, times: Numbers, size: float) -> list[dict[str, Any]]:
    """Return the arrows of the page: names, units, lengths, and rows of origin and vector for every frame."""
    per_unit = lengths(forces, size)
    return [
        {
            "name": arrow.name,
            "group": arrow.group,
            "unit": arrow.unit,
            "length": per_unit[arrow.unit],
            "rows": np.concatenate(at_times(arrow, t, times), axis=1).astype(np.float32),
        }
        for arrow in forces
    ]


# --- The drawing: triangles of all bodies, rods, tips of trails, floor and camera ---

NEARER = 0.65
"""The part of the distance from which all positions of an arm are visible: it is larger, and most of them still are."""


def page_scene(drawn: Scene, poses: Numbers, *, standing: bool, ground: Ground | None = None) -> dict[str, Any]:
    """Return the drawing of poses [nt, nb, 4, 4].

    With `standing`, the poses are the first position and others that the mechanism may reach. The floor is then that of
    the first position, except for planar mechanisms, which may swing below it.
    """
    sight = fit(drawn, poses)
    if standing and drawn.normal is None:
        still = fit(drawn, poses[:1])
        far = still.camera.distance if sight.follows else NEARER * sight.camera.distance
        camera = still.camera if sight.follows else sight.camera  # an arm on the ground is not followed
        near = replace(camera, distance=max(far, still.camera.distance))
        sight = replace(sight, camera=near, floor=still.floor, follows=still.follows)
    names = list(dict.fromkeys([*MARKS, *(rod.solid for rod in (*drawn.rods, *drawn.shells))]))
    solids = [*drawn.bodies, *map(solid, names), *(cut.mesh for cut in drawn.cuts)]
    whole = join_meshes(solids)
    counts = [3 * len(mesh.faces) for mesh in solids]
    starts = np.cumsum([0, *counts])
    camera = sight.camera
    return {
        # nine rows, and steps between corners modulo 2**32: both compress well
        "vertices": np.concatenate([whole.vertices, whole.normals, whole.colors], axis=1).T.astype(np.float32),
        "faces": np.diff(whole.faces.ravel(), prepend=0).astype(np.uint32),
        "ranges": [[int(start), count] for start, count in zip(starts, counts, strict=False)],
        "solids": {name: len(drawn.bodies) + k for k, name in enumerate(names)},
        "cuts": [
            {"loop": cut.loop, "end": cut.end, "solid": len(drawn.bodies) + len(names) + k}
            for k, cut in enumerate(drawn.cuts)
        ],
        "rods": [_rod(r) for r in (*drawn.rods, *drawn.shells)],
        "tips": [[body, _plain(point)] for body, point in drawn.tips],
        "size": drawn.size,
        "cell": floor_cell(drawn.size),
        "floor": sight.floor if ground is None or ground.height is None else ground.height,
        "follows": sight.follows,
        "planar": drawn.normal is not None,
        "camera": {
            "target": _plain(camera.target),
            "distance": camera.distance,
            "azimuth": camera.azimuth,
            "elevation": camera.elevation,
            "axes": [_plain(row) for row in camera.axes],
            "field": FIELD,
        },
    }


def _rod(rod: Rod) -> dict[str, object]:
    return {
        "a": rod.a,
        "pa": _plain(rod.point_a),
        "b": rod.b,
        "pb": _plain(rod.point_b),
        "radius": rod.radius,
        "color": rod.color,
        "solid": rod.solid,
        "pin": rod.pin,
        "element": rod.element,
    }


def _plain(values: Any) -> list[float]:
    return [float(x) for x in values]
