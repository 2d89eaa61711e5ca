"""A run inside a page: states at the frames with the columns of its plots, or the poses alone; and bending beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Numbers
from ..analysis.beam_loads import beam_loads
from ..errors import unknown_name
from ..model.beams import Beam
from ..model.free_beams import FreeBeam
from ..model.mechanism import resolve_parts
from ..model.parts import Placement
from ..plots.camera import finite
from ..reports.loads import drive_efforts, reactions

if TYPE_CHECKING:
    from ..results.columns import Column
    from ..results.trajectory import Trajectory


PLOTTED = ("q", "qd", "tau", "kinetic_energy", "potential_energy", "energy")
"""The columns of a run that a page plots."""

MOST_CURVES = 64
"""The most entries of a column that a page plots; a picture with more is no help, and the file grows."""


def run_frames(run: Trajectory, times: Numbers, poses: Numbers | None) -> dict[str, Any]:
    """Return a run at the times of frames; with poses [n, nb, 4, 4] for a page without a kernel."""
    shown = finite(run).at(times)
    return {
        "t": np.asarray(times, dtype=np.float64),
        "q": np.asarray(shown.q, dtype=np.float64),
        "qd": np.asarray(shown.qd, dtype=np.float64),
        "columns": [_column(shown, c) for c in run.columns if c.name in PLOTTED and len(c.labels) <= MOST_CURVES],
        "method": run.method,
        "status": run.status,
        "samples": len(run),
        **({} if poses is None else {"poses": _positions_and_quaternions(poses).astype(np.float32)}),
    }


def _column(run: Trajectory, column: Column) -> dict[str, Any]:
    values = np.asarray(run[column.name], dtype=np.float64).reshape(len(run), -1)
    labels = [label.partition(".")[2] or label for label in column.labels]
    return {
        "name": column.name,
        "labels": labels,
        "units": list(column.units),
        "values": np.ascontiguousarray(values.T),
    }


def _positions_and_quaternions(poses: Numbers) -> Numbers:
    """Return poses [nt, nb, 4, 4] as [nt, nb, 7]: position and quaternion, of the sign nearest to the frame before."""
    from scipy.spatial.transform import Rotation

    if poses.shape[1] == 0:
        return np.zeros((*poses.shape[:2], 7))
    matrices = np.array(poses[..., :3, :3])  # a copy: SciPy before 1.17 refuses arrays that are read-only
    turns = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:2], 4)
    steps = np.where((turns[1:] * turns[:-1]).sum(axis=-1) < 0, -1.0, 1.0)
    sides = np.cumprod(np.concatenate([np.ones((1, poses.shape[1])), steps]), axis=0)
    return np.concatenate([poses[..., :3, 3], turns * sides[..., None]], axis=-1)


# --- Arrows of a replay: reactions at joints and loops, forces and torques of drives, forces on bodies ---

GROUPS = {"reactions": "reactions of joints", "drives": "forces and torques of drives", "wrenches": "other forces"}
"""The groups of arrows by name, with the words of the page."""
LONGEST = 0.3
"""The length of the longest arrow of a group and unit, relative to the size of the mechanism."""
NEGLIGIBLE = 1e-9
"""The part of the largest arrow below which an arrow of a group is left out at all times."""


@dataclass(frozen=True)
class Arrow:
    """An arrow over time: its origin and vector [nt, 3] in the ground's axes; "N" for a force, "N m" for a torque."""

    name: str
    group: str
    unit: str
    origin: Numbers
    vector: Numbers


def arrows_of(run: Trajectory, chosen: bool | str | Sequence[str] | None, share: object = None) -> list[Arrow]:
    """Return the arrows of a single run by the names of their groups; True for all of them, None for none.

    `share` are compliances by joint or loop, as for `System.loads`.
    """
    if not chosen:
        return []
    names = list(GROUPS) if chosen is True else [chosen] if isinstance(chosen, str) else list(chosen)
    makers = {"reactions": partial(_reactions, share=share), "drives": _drives, "wrenches": _wrenches}
    out: list[Arrow] = []
    for name in names:
        if name not in makers:
            raise unknown_name("group of arrows", name, makers)
        out += makers[name](run)
    largest = {unit: max((_size(a) for a in out if a.unit == unit), default=0.0) for unit in ("N", "N m")}
    return [a for a in out if _size(a) > NEGLIGIBLE * largest[a.unit]]


def at_times(arrow: Arrow, t: Numbers, times: Numbers) -> tuple[Numbers, Numbers]:
    """Return origin and vector [n, 3] at other times, on straight lines between samples."""
    origin, vector = (
        np.stack([np.interp(times, t, x[:, k]) for k in range(3)], axis=-1) for x in (arrow.origin, arrow.vector)
    )
    return origin, vector


def lengths(arrows: Sequence[Arrow], size: float) -> dict[str, float]:
    """Return the length of an arrow per unit of force [m/N] and of torque [m/(N m)]."""
    largest = {unit: max((_size(a) for a in arrows if a.unit == unit), default=0.0) for unit in ("N", "N m")}
    return {unit: LONGEST * size / x for unit, x in largest.items() if x > 0.0}


def _size(arrow: Arrow) -> float:
    return float(np.linalg.norm(arrow.vector, axis=-1).max(initial=0.0))


def _reactions(run: Trajectory, share: object) -> list[Arrow]:
    """Return the forces of parents on children at joints, and of body a on body b at loops."""
    mechanism, poses = run.system.mechanism, run["poses"]
    wrenches, _ = reactions(run, share)
    bodies = [b.name for b in mechanism.bodies]
    places = [(name, k, Placement()) for k, name in enumerate(j.name for j in mechanism.joints)]
    loops = resolve_parts(mechanism.loops, _values(run))
    places += [(p.name, bodies.index(p.body_b) if p.body_b in bodies else -1, p.placement_b) for p in loops]
    out = []
    for k, (name, body, placement) in enumerate(places):
        own = np.eye(4)
        own[:3, :3], own[:3, 3] = placement.rotation, placement.translation
        T = np.broadcast_to(own, (len(run), 4, 4)) if body < 0 else poses[:, body] @ own
        out.append(Arrow(name, "reactions", "N", T[:, :3, 3], _times(T, wrenches[:, k, 3:])))
    return out


def _drives(run: Trajectory) -> list[Arrow]:
    """Return the torques and forces of drives along the axes of joints with one degree of freedom."""
    mechanism, efforts, out = run.system.mechanism, drive_efforts(run), []
    for k, (joint, own) in enumerate(
        zip(resolve_parts(mechanism.joints, _values(run)), mechanism.v_slices, strict=True)
    ):
        kind = joint_kinds.kind(joint.kind)
        if kind.AXIAL is not None:
            axis = np.array(kind.frame(joint), dtype=float)[:, 2]
            T = run["poses"][:, k]
            unit = "N m" if kind.UNITS[0] == "rad" else "N"
            vector = efforts[:, own] * (T[:, :3, :3] @ axis)
            out.append(Arrow(f"drive of {joint.name}", "drives", unit, T[:, :3, 3], vector))
    return out


def _wrenches(run: Trajectory) -> list[Arrow]:
    """Return the resultant forces of springs, actuators and external wrenches on bodies, on their lines of action."""
    if run.wrenches is None:
        return []
    out = []
    for k, body in enumerate(run.system.bodies):
        n, f = run.wrenches[:, k, :3], run.wrenches[:, k, 3:]
        square = (f * f).sum(axis=-1, keepdims=True)
        arm = np.cross(f, n) / np.where(square > 0, square, 1.0)  # the point of the line nearest to the body's origin
        T = run["poses"][:, k]
        out.append(Arrow(f"on {body.name}", "wrenches", "N", _times(T, arm) + T[:, :3, 3], _times(T, f)))
    return out


def _times(T: Numbers, vectors: Numbers) -> Numbers:
    return (T[:, :3, :3] @ vectors[..., None])[..., 0]


def _values(run: Trajectory):
    given = run[:1].parameters  # a schedule changes no lengths
    return run.system.mechanism.values(None if given is None else [float(x) for x in given])


# --- Beams: what every modal coordinate adds along the beam of a body, at places from its joint to its end ---
#
# Deflections, moments, shear and strains are sums over the modal coordinates, so that a page shows them for any state.

PLACES = 25
"""The places along a beam, of equal distances."""
ROUND = ("circle", "tube")
"""The sections whose strain depends on the whole bending, and not on its parts along y and along z."""


def page_beams(start: Trajectory) -> list[dict[str, Any]]:
    """Return the beams of a mechanism at its first state; bodies from finite elements have none."""
    system = start.system
    mechanism = system.mechanism
    bodies = [body.name for body in mechanism.bodies]
    given = {} if start.parameters is None else {"parameters": np.ravel(start.parameters)}
    out = []
    for k, body in enumerate(mechanism.bodies):
        flexible: Any = body.flexible
        if not isinstance(flexible, Beam | FreeBeam):
            continue
        name, own = body.name.removesuffix(".elastic"), mechanism.q_slices[k]
        units = np.zeros((own.stop - own.start, mechanism.nq))
        units[:, own] = np.eye(len(units))
        loads = beam_loads(system, units, name, count=PLACES, **given)
        beam = flexible if isinstance(flexible, Beam) else flexible.beam
        strains: dict[str, Any] = {}
        if loads.strain is not None:  # of a single mode: of one side and of one sign
            strains["bend"] = (loads.strain[..., None] * np.sign(loads.moment)).astype(np.float32)
            strains["stretch"] = (loads.strain * np.sign(loads.tension)).astype(np.float32)
            strains["round"] = beam.section[0] in ROUND if beam.section else False
        out.append({
            "name": name,
            "body": bodies.index(name),
            "parts": [i for i, other in enumerate(bodies) if other == name or other.startswith(f"{name}.")],
            "q": own.start,
            "modes": len(units),
            "x": np.asarray(loads.x, dtype=np.float64).ravel()[-PLACES:],
            **{field: getattr(loads, field).astype(np.float32) for field in ("deflection", "moment", "shear")},
            **strains,
        })  # fmt: skip
    return out
