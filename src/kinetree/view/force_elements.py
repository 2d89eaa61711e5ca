"""Force elements as pictures and pages draw them: springs, dampers and actuators between points of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import joints as joint_kinds
from ..algebra.arrays import Numbers
from ..joints.protocol import TRANSLATION
from ..model.force_checks import JOINT_SPRING, spring_joint
from ..model.parts import ForceElement, Joint
from .links import DARK, Point, Rod, rgb

STEEL = "#747b86"
SLIM, THINNEST, THICKEST = 0.07, 0.011, 0.028
"""The radius of a coil relative to its first length, and its bounds relative to the size of the mechanism."""
INNER, PLAIN, PIN = 0.5, 0.6, 0.4
"""Radii relative to that of a coil: of a damper inside of it, of dampers and actuators alone, of pins at both ends."""


def between_points(forces: Sequence[ForceElement], joints: Sequence[Joint]) -> list[ForceElement]:
    """Return the elements that act along a line, with springs of sliding joints as elements between their origins.

    Springs that resist rotation in a joint are left out.
    """
    carried, out = {j.child: j for j in joints}, []
    for element in forces:
        if element.kind != JOINT_SPRING:
            out.append(element)
            continue
        joint = spring_joint(element, carried)
        if joint_kinds.kind(joint.kind).AXIAL == TRANSLATION:
            ends = (joint.parent, joint.child, joint.placement.translation)
            out.append(ForceElement(element.name, element.kind, *ends))
    return out


def attachments(elements: Sequence[ForceElement], body: str) -> list[Point]:
    """Return the points of a body, other than its origin, at which elements are attached."""
    ends = [end for x in elements for end in ((x.body_a, x.point_a), (x.body_b, x.point_b))]
    return [p for p in dict.fromkeys(p for name, p in ends if name == body) if np.linalg.norm(p) > 1e-9]


def element_rods(elements: Sequence[ForceElement], index: Mapping[str, int], poses: Numbers, size: float) -> list[Rod]:
    """Return the solids of elements; their radii follow from their lengths at the poses [nb, 4, 4]."""
    out = []
    for k, x in enumerate(elements):
        a, b = index[x.body_a], index[x.body_b]
        length = float(np.linalg.norm(at(poses, b, x.point_b) - at(poses, a, x.point_a)))
        radius = float(np.clip(SLIM * length, THINNEST * size, THICKEST * size))
        for solid, share, color in _solids(x):
            out.append(Rod(a, x.point_a, b, x.point_b, share * radius, rgb(color), solid, PIN * radius, k))
    return out


def at(poses: Numbers, body: int, point: Point) -> Numbers:
    """Return a point of a body in the ground's axes, for poses [nb, 4, 4]; -1 is the ground."""
    return np.array(point, dtype=float) if body < 0 else poses[body, :3, :3] @ point + poses[body, :3, 3]


def _solids(element: ForceElement) -> list[tuple[str, float, str]]:
    """Return the solids of an element: name, radius relative to that of a coil, and color."""
    if element.kind == "linear_actuator":
        return [("actuator", PLAIN, DARK)]
    given = dict(element.coefficients)
    if not given.get("damping"):
        return [("spring", 1.0, STEEL)]
    if not (given.get("stiffness") or given.get("preload")):
        return [("damper", PLAIN, DARK)]
    return [("spring", 1.0, STEEL), ("damper", INNER, DARK)]
