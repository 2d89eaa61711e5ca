"""The joints between the ground and a frame as screws at zero displacement: axes and points in the ground's frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...joints import kind
from ...joints.protocol import ROTATION
from ...model.mechanism import Mechanism
from ...model.scales import characteristic_length
from ...model.topology import path
from ...runtime.compiled import CompiledMechanism


@dataclass(frozen=True)
class Screw:
    """A joint with one degree of freedom: its axis, a point on it (of a rotation), and its entry in q."""

    axis: Numbers
    point: Numbers
    rotates: bool
    place: int


@dataclass(frozen=True)
class ScrewChain:
    """The screws from the ground to a frame at zero displacement, the frame's pose there, and the unit of lengths."""

    screws: tuple[Screw, ...]
    home: Numbers
    length: float


def screw_chain(system: CompiledMechanism, frame: str, parameters: Numbers | None) -> ScrewChain | None:
    """Return the chain to a frame, for one set of parameters; None if its joints are not rotations and translations.

    There is none if loops or couplings make its joints depend on each other.
    """
    m = system.mechanism
    moving = moving_joints(m, frame)
    if moving is None or any(kind(m.joints[k].kind).AXIAL is None for k in moving):
        return None
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    q = system.neutral()
    q[[m.q_slices[k].start for k in moving]] = 0.0
    home, J = system.pose(q, frame, **more), system.jacobian(q, frame, **more)
    screws = []
    for k in moving:
        w, v = J[:3, m.v_slices[k].start], J[3:, m.v_slices[k].start]
        rotates = kind(m.joints[k].kind).AXIAL == ROTATION
        point = home[:3, 3] + np.cross(w, v)  # v = w x (origin - point)
        screws.append(Screw(w if rotates else v, point, rotates, m.q_slices[k].start))
    return ScrewChain(tuple(screws), home, characteristic_length(m))


def moving_joints(m: Mechanism, frame: str) -> list[int] | None:
    """Return the joints that move between the ground and a frame; None if they depend on each other or on others."""
    on = [k for k in path(m, m.body_indices[m.frame(frame).body]) if kind(m.joints[k].kind).NV]
    names = {m.joints[k].name for k in on}
    coupled = {name for x in m.couplings for name in (x.joint, *(t for t, _ in x.terms))}
    return None if m.loops or names & coupled else on


def rotate_about(axis: Numbers, angle: float, x: Numbers) -> Numbers:
    """Return a vector rotated about a unit axis through the origin."""
    along = axis * (axis @ x)
    return along + (x - along) * np.cos(angle) + np.cross(axis, x) * np.sin(angle)


def angle_about(axis: Numbers, a: Numbers, b: Numbers) -> float:
    """Return the angle about a unit axis from vector a to vector b; zero if one of them is along the axis."""
    a, b = a - axis * (axis @ a), b - axis * (axis @ b)
    if min(np.linalg.norm(a), np.linalg.norm(b)) < 1e-12 * max(np.linalg.norm(a), np.linalg.norm(b), 1e-300):
        return 0.0
    return float(np.arctan2(axis @ np.cross(a, b), a @ b))


def feet(a: Screw, b: Screw) -> tuple[Numbers, Numbers]:
    """Return the points of two axes that are nearest to each other; of parallel ones, across from the point of b."""
    between, c = b.point - a.point, float(a.axis @ b.axis)
    if 1.0 - c * c < 1e-18:
        return a.point + a.axis * (a.axis @ between), b.point
    s = (a.axis @ between - c * (b.axis @ between)) / (1.0 - c * c)
    return a.point + s * a.axis, b.point + (s * c - b.axis @ between) * b.axis
