"""Denavit-Hartenberg parameters of poses, and the table of any robot whose joints rotate or slide: `dh_table`.

A modified row goes from the frame of the parent to that of the body by Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b)
Rz(theta), which six numbers can do for any two axes. In a chain, the frame of a body is turned and moved along its own
axis until gamma and epsilon of its only child vanish, so that four numbers remain; only the first row has them where
the axis of the first joint needs it. The standard row of a body goes on to the frame in which the next modified row
begins its rotation about the next axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..algebra.vectors import from_moments, symmetric, to_moments
from ..errors import InputError
from ..joints.protocol import ROTATION
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import GROUND, Placement

EXACT = 1e-13
"""The largest deviation of a pose from that of its DH parameters, relative to its size: rounding."""
PARALLEL = 1e-9
"""The sine of the angle below which two joint axes are parallel."""
CONVENTIONS = ("standard", "modified")


@dataclass(frozen=True)
class Geometry:
    """The DH parameters of a row [rad, m]; gamma and epsilon are zero except in branches of modified tables."""

    theta: float
    b: float
    a: float
    alpha: float
    gamma: float = 0.0
    epsilon: float = 0.0


def standard_geometry(pose: Numbers) -> Geometry | None:
    """Return theta, b, a, alpha of Rz(theta) Tz(b) Tx(a) Rx(alpha); None for other poses."""
    R, p = pose[:3, :3], pose[:3, 3]
    theta, alpha = float(np.arctan2(R[1, 0], R[0, 0])), float(np.arctan2(R[2, 1], R[2, 2]))
    a = float(p[0] * np.cos(theta) + p[1] * np.sin(theta))
    made = Geometry(theta, float(p[2]), a, alpha)
    return None if differs(_rotation(2, theta, (0, 0, p[2])) @ _rotation(0, alpha, (a, 0, 0)), pose) else made


def modified_geometry(pose: Numbers) -> Geometry | None:
    """Return the parameters of a modified row, with gamma zero if possible; None where axes are almost parallel."""
    made = geometry_between(pose)
    ends = _rotation(2, made.gamma, (0, 0, made.epsilon)) @ _rotation(0, made.alpha)
    return None if differs(ends @ _rotation(2, made.theta, (made.a, 0, made.b)), pose) else made


def geometry_between(pose: Numbers) -> Geometry:
    """Return the parameters of Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b) Rz(theta) of any pose, but for rounding."""
    R, p = pose[:3, :3], pose[:3, 3]
    sine = float(np.hypot(R[0, 2], R[1, 2]))
    if sine < PARALLEL:
        alpha = 0.0 if R[2, 2] > 0 else np.pi
        gamma = 0.0 if abs(p[1]) < EXACT else float(np.arctan2(p[1], p[0]))
    else:
        gamma = float(np.arctan2(R[0, 2], -R[1, 2]))
        if abs(gamma) > np.pi / 2:  # alpha of either sign: the smaller gamma
            gamma -= np.copysign(np.pi, gamma)
        gamma = 0.0 if abs(gamma) < EXACT else gamma
        alpha = float(np.arctan2(R[0, 2] * np.sin(gamma) - R[1, 2] * np.cos(gamma), R[2, 2]))
    rest = _rotation(0, -alpha) @ _rotation(2, -gamma) @ pose
    x = _rotation(2, -gamma)[:3, :3] @ p
    b = 0.0 if sine < PARALLEL else float(-x[1] / np.sin(alpha))
    epsilon = float(x[2] - np.cos(alpha) * b)
    if sine < PARALLEL:  # along parallel axes, epsilon and b are one
        b, epsilon = epsilon * float(np.cos(alpha)), 0.0
    theta = float(np.arctan2(rest[1, 0], rest[0, 0]))
    epsilon = 0.0 if abs(epsilon) < EXACT * max(1.0, abs(x[2])) else epsilon
    return Geometry(theta, b, float(x[0]), alpha, gamma, epsilon)


def _rotation(k: int, angle: float, origin: Any = (0.0, 0.0, 0.0)) -> Numbers:
    """Return a pose rotated about axis k."""
    c, s, i, j = np.cos(angle), np.sin(angle), (k + 1) % 3, (k + 2) % 3
    out = np.eye(4)
    out[i, i] = out[j, j] = c
    out[i, j], out[j, i] = -s, s
    out[:3, 3] = origin
    return out


def differs(made: Numbers, pose: Numbers) -> bool:
    """Return whether two poses differ by more than rounding."""
    return bool(np.abs(made - pose).max() > EXACT * max(1.0, float(np.abs(pose).max())))


def pose_matrix(placement: Placement) -> Numbers:
    """Return a placement in plain numbers as a pose [4, 4]."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float)
    return out


# --- The table of a mechanism ---


@dataclass(frozen=True, repr=False)
class DHTable(Displayed):
    """The Denavit-Hartenberg table of a mechanism: `rows` for `kt.from_dh`, and itself as text.

    Angles are in radians. Masses, centers of mass and inertias of the rows are in the frames of the table. `frames` has
    the pose of each of these frames in the body of the mechanism [4, 4], by the body's name.
    """

    name: str
    convention: str
    rows: tuple[Mapping[str, Any], ...]
    frames: Mapping[str, Numbers]

    def display(self) -> list[str | Table]:
        """Return a line and the table, with angles in degrees and the variable of each row."""
        branches = any(row.get("gamma") or row.get("epsilon") for row in self.rows)
        angles = ("theta", "alpha", *(("gamma",) if branches else ()))
        lengths = ("b", "a", *(("epsilon",) if branches else ()))
        order = (*(("gamma", "epsilon") if branches else ()), *_order(self.convention))
        rows = []
        for row in self.rows:
            variable = {"revolute": "theta", "prismatic": "b"}.get(row["joint"], "")
            numbers = (_number(row.get(key, 0.0), key in angles, key == variable) for key in order)
            rows.append((row["name"], row["joint"], row["parent"], *numbers))
        units = ("", "", "", *("deg" if key in angles else "m" if key in lengths else "" for key in order))
        return [
            f"{self.name}: {self.convention} Denavit-Hartenberg parameters",
            Table(("body", "joint", "parent", *order), tuple(rows), units),
        ]


def _order(convention: str) -> tuple[str, ...]:
    return ("theta", "b", "a", "alpha") if convention == "standard" else ("alpha", "a", "b", "theta")


def _number(x: float, angle: bool, variable: bool) -> str:
    shown = f"{np.degrees(x) if angle else x:.6g}"
    shown = "0" if shown in ("-0", "0") else shown
    return ("q" if shown == "0" else f"q {'-' if shown[0] == '-' else '+'} {shown.lstrip('-')}") if variable else shown


def dh_table(m: Mechanism, convention: str = "modified") -> DHTable:
    """Return the table of a mechanism at the values of its parameters; loops are no part of it.

    "standard" tables are of chains, and begin with a fixed row where the first joint's axis is not z of the ground.
    """
    if convention not in CONVENTIONS:
        raise InputError(f"convention must be one of {', '.join(CONVENTIONS)}, not {convention!r}")
    values = {p.name: p.value for p in m.parameters}
    bodies, joints = resolve_parts((m.bodies, m.joints), values)
    others = [j.name for j in joints if joint_kinds.kind(j.kind).NV and joint_kinds.kind(j.kind).AXIAL is None]
    if others or m.has_flexible:
        what = f"joint {others[0]!r} is {m.joint(others[0]).kind}" if others else "it has flexible bodies"
        raise InputError(f"{m.name}: {what}; Denavit-Hartenberg tables are of revolute, prismatic and fixed joints")
    if convention == "standard" and any(p != k - 1 for k, p in enumerate(m.parents)):
        raise InputError(f'{m.name} has branches; give convention="modified", in which rows have parents')
    names = {j.child: j.name for j in joints}
    own: list[Numbers] = [np.eye(4) for _ in joints]  # the frame of the table in each body: z along the joint's axis
    rows: list[Geometry] = []
    for k, joint in enumerate(joints):
        if joint_kinds.kind(joint.kind).NV:
            own[k][:3, :3] = np.array(joint_kinds.kind(joint.kind).frame(joint), dtype=float)
    for k, joint in enumerate(joints):
        above = m.parents[k]
        before = np.eye(4) if above < 0 else own[above]
        row = geometry_between(np.linalg.inv(before) @ pose_matrix(joint.placement) @ own[k])
        if above >= 0 and m.parents.count(above) == 1:  # the only child: its gamma and epsilon go to the parent
            own[above] = own[above] @ _rotation(2, row.gamma, (0.0, 0.0, row.epsilon))
            old = rows[above]
            rows[above] = replace(old, theta=old.theta + row.gamma, b=old.b + row.epsilon)
            row = replace(row, gamma=0.0, epsilon=0.0)
        rows.append(row)
    kinds = [{True: "revolute", False: "prismatic"}[joint_kinds.kind(j.kind).AXIAL == ROTATION]
             if joint_kinds.kind(j.kind).NV else "fixed" for j in joints]  # fmt: skip
    parents = [GROUND if j.parent == GROUND else j.parent for j in joints]
    made, start = [vars(row) for row in rows], None
    if convention == "standard":
        made, own, start = _standard(rows, own)
    out = []
    for k, body in enumerate(bodies):
        R, p = own[k][:3, :3], own[k][:3, 3]
        com = R.T @ (np.array(body.com, dtype=float) - p)
        inertia = R.T @ np.array(from_moments(body.inertia), dtype=float) @ R
        row = {"name": body.name, "joint": kinds[k], "parent": parents[k], **_tidy(made[k])}
        row |= {"mass": float(body.mass), "com": com.tolist(), "inertia": to_moments(symmetric(inertia.tolist()))}
        for key in ("damping", "friction", "armature"):
            if numbers := getattr(joints[k], key):
                row[key] = float(numbers[0])
        out.append(row)
    if start is not None:
        first = {"name": _free("base", names), "joint": "fixed", "parent": GROUND, **_tidy(start)}
        out = [first, out[0] | {"parent": first["name"]}, *out[1:]] if out else [first]
    return DHTable(m.name, convention, tuple(out), {b.name: own[k] for k, b in enumerate(bodies)})


def _standard(rows: list[Geometry], own: list[Numbers]) -> tuple[list[dict[str, float]], list[Numbers], Any]:
    """Return standard rows of a chain, the frames at their ends in the bodies, and the row of the ground, if any."""
    made, ends = [], []
    for k, row in enumerate(rows):
        after = rows[k + 1] if k + 1 < len(rows) else Geometry(0.0, 0.0, 0.0, 0.0)
        made.append({"theta": row.theta, "b": row.b, "a": after.a, "alpha": after.alpha})
        ends.append(own[k] @ _rotation(0, after.alpha, (after.a, 0.0, 0.0)))
    first = rows[0] if rows else Geometry(0.0, 0.0, 0.0, 0.0)
    start = {"theta": first.gamma, "b": first.epsilon, "a": first.a, "alpha": first.alpha}
    return made, ends, start if any(abs(x) > EXACT for x in start.values()) else None


def _tidy(row: Mapping[str, float]) -> dict[str, float]:
    """Return parameters without the rounding of zeros, and angles within half a revolution."""
    out = {}
    for key, x in row.items():
        x = float(np.arctan2(np.sin(x), np.cos(x))) if key in ("theta", "alpha", "gamma") and abs(x) > np.pi else x
        if key not in ("gamma", "epsilon") or abs(x) > EXACT:
            out[key] = 0.0 if abs(x) < EXACT else float(x)
    return out


def _free(name: str, taken: Mapping[str, str]) -> str:
    while name in taken:
        name += "_"
    return name
