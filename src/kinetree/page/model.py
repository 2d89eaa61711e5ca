"""The data of a mechanism in a page: bodies, joints, frames, loops, force elements, coordinates, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.vectors import from_moments
from ..exporting.live import coordinates
from ..model.axes import axis_labels, axis_names
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import Joint, Placement
from ..plots.figures import COLORS
from ..plots.links import between_points
from ..results.columns import EFFORTS
from ..simulation.acting.point_forces import forces_of
from .lengths import Length, length_table


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
        "gravity": _plain(resolve_parts(tuple(m.gravity), values)),
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
            {"label": label, "joint": _index(m, joint), "unit": f"{unit}/s", "effort": EFFORTS[unit]}
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
                "point_a": _plain(x.point_a), "point_b": _plain(x.point_b),
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


def _body(body: Any, parent: int, color: str) -> dict[str, Any]:
    moments, axes = np.linalg.eigh(np.array(from_moments(body.inertia), dtype=float))
    if np.linalg.det(axes) < 0:
        axes = -axes
    return {
        "name": body.name, "parent": parent, "color": color, "mass": float(body.mass), "com": _plain(body.com),
        "inertia": _plain(body.inertia), "moments": _plain(moments), "axes": [_plain(row) for row in axes],
    }  # fmt: skip


def _joint(joint: Joint) -> dict[str, Any]:
    kind = joint_kinds.kind(joint.kind)
    return {
        "name": joint.name, "kind": joint.kind, "symbol": kind.SYMBOL, "solid": kind.SOLID,
        "floats": bool(kind.FLOATS), "axial": kind.AXIAL is not None,
        "axes": [_plain(row) for row in np.array(kind.frame(joint), dtype=float)], "placement": _pose(joint.placement),
        "effort": _plain(joint.limits.effort), "velocity": _plain(joint.limits.velocity),
        "damping": _plain(joint.damping), "friction": _plain(joint.friction), "armature": _plain(joint.armature),
    }  # fmt: skip


def _coordinates(mechanism: Mechanism, joints: Any) -> list[dict[str, Any]]:
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


def _pose(placement: Placement) -> list[float]:
    """Return a placement as the sixteen entries of its matrix, row by row."""
    rotation, origin = np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float)
    return _plain(np.block([[rotation, origin[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]).ravel())


def _plain(values: Any) -> list[float]:
    return [float(x) if np.isfinite(float(x)) else None for x in values]  # type: ignore[misc]
