"""The data of pages: a mechanism or a run as tables for JSON with arrays, and the functions of the mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.lower.loop_pattern import guess
from ..formats.report import Report
from ..model.mechanism import Mechanism
from ..results.trajectory import Trajectory
from ..system import System
from ..version import VERSION
from .arrows import Arrow, arrows_of, at_times, lengths
from .mesh_files import read_shape
from .motion_frames import even_frames, finite
from .page_file import compressed, packed
from .page_kernel import Progress, page_kernel
from .page_lengths import free_lengths
from .page_model import page_model
from .page_run import run_frames
from .page_scene import page_scene, plane_of
from .page_script import script_of, style_of
from .page_table import notes, page_table
from .skeleton import scene

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
    q: Any = None,
    meshes: bool = False,
    editable: bool = True,
    progress: Progress = lambda share: None,
) -> dict[str, Any]:
    """Return the data of the page of a System: tables for JSON, with arrays."""
    start = _first_position(system, q)
    data = _data(start, start["poses"], kernel=True, meshes=meshes, editable=editable, progress=progress)
    return data | {"title": system.mechanism.name}


def run_data(
    run: Trajectory, fps: float = 60.0, arrows: bool | str | Sequence[str] | None = None, share: Any = None,
    *, kernel: bool = False, meshes: bool = False,
) -> dict[str, Any]:  # fmt: skip
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
    start: Trajectory, poses: Numbers, *, kernel: bool, meshes: bool, editable: bool = False,
    progress: Progress = lambda share: None,
) -> dict[str, Any]:  # fmt: skip
    """Return model, table, kernel, drawing and first state of a page; the view shows the poses [nt, nb, 4, 4]."""
    system = start.system
    drawn = scene(start, read_shape if meshes else None, loose_cuts=True)
    reached = poses if len(poses) > 1 else _reached(system, start, poses)
    values = system.mechanism.values(None if start.parameters is None else [float(x) for x in start.parameters])
    mechanism, lengths = free_lengths(system.mechanism) if kernel else (system.mechanism, ())
    values |= {p.name: p.value for p in mechanism.parameters if p.name not in values}
    live = System(mechanism) if lengths else system
    bodies = len(mechanism.bodies)
    table = _table(mechanism, values, system.report) if editable and 0 < bodies <= ROWS else None
    editable = table is not None and bodies <= LINES
    normal = plane_of(system, start.q[0], start.parameters)
    data = {
        "kinetree": VERSION,
        "model": page_model(mechanism, values, lengths),
        "table": table if editable else None,
        "scene": page_scene(drawn, reached, normal, standing=len(poses) == 1),
        "first": {
            "q": np.array(start.q[0]),
            "qd": np.array(start.qd[0]),
            "poses": np.array(start["poses"][0], dtype=np.float64),
            "parameters": np.array([values[p.name] for p in mechanism.free_parameters], dtype=np.float64),
        },
    }
    room = _room(mechanism, table=editable) - (DRAWING if meshes else len(packed(data)))
    functions = page_kernel(live, room, editable=editable, progress=progress) if kernel else None
    return data | {"table": table, "kernel": functions}


def _table(mechanism: Mechanism, values: dict[str, Any], report: Report) -> dict[str, Any]:
    return page_table(mechanism, values) | {"notes": notes(report)}


def _room(mechanism: Mechanism, *, table: bool) -> float:
    """Return the characters that a page leaves for its data and for the functions of its mechanism."""
    script = script_of(mechanism.loops, table=table)
    return LARGEST - len(compressed(script)) - len(style_of()) - FRAME


def _reached(system: System, start: Trajectory, poses: Numbers) -> Numbers:
    """Return the first position of a mechanism, with random ones of an arm on the ground, which it may reach."""
    if system.closures or not 0 < system.nv <= 8 or system.nq != system.nv:
        return poses
    q = system.random_state(2, REACH)[0]
    more: dict[str, Any] = {} if start.parameters is None else {"parameters": start.parameters}
    return np.concatenate([poses, np.asarray(system.poses(q, **more))])


def _first_position(system: System, q: Any) -> Trajectory:
    if q is None:
        q = system.assemble() if system.closures else guess(system.mechanism)
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
