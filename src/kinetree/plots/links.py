"""Rods and joints that represent links without shapes, and the joints at which loops are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.scalars import Numbers
from ..joints.protocol import TRANSLATION
from ..model.checks import JOINT_SPRING, TRANSMISSION, spring_joint
from ..model.parts import ForceElement, Joint, Loop, Placement
from . import meshes
from .meshes import Mesh

Point = tuple[float, float, float]

COLORS = ("#1f3a5f", "#c8553d", "#3a7d44", "#8d6a9f", "#b8860b", "#4a8fb0", "#6b6b6b", "#a03060")
"""Colors of bodies and of curves in one panel, distinct also in gray and for color-blind readers."""
GREY = "#8a8f98"
DARK = "#3c4350"
ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Rod:
    """A round rod from a point of body a to a point of body b; -1 is the ground.

    `solid` is the name of the solid in `solids.SOLIDS` that is stretched between the points, such as "spring". `pin` is
    the radius of balls at both points. `element` is the number of the force element that it draws, -1 for other rods.
    """

    a: int
    point_a: Point
    b: int
    point_b: Point
    radius: float
    color: tuple[float, float, float]
    solid: str = "rod"
    pin: float = 0.0
    element: int = -1


def rgb(color: str) -> tuple[float, float, float]:
    """Return #rrggbb as three numbers in 0 to 1."""
    red, green, blue = (int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5))
    return red, green, blue


def joint_solid(joint: Joint | Loop, r: float) -> Mesh | None:
    """Return the solid of a joint between rods of radius r: a cylinder or box along its axis, a ball, or nothing."""
    kind = joint_kinds.kind(joint.kind)
    if kind.SOLID == "ball":
        return meshes.sphere(2.6 * r).painted(rgb(DARK))
    if kind.SOLID is None:
        return None
    box = kind.SOLID == "box"
    solid = meshes.box((4.2 * r, 4.2 * r, 6.0 * r)) if box else meshes.cylinder(2.3 * r, 6.0 * r)
    return solid.placed(kind.frame(joint), ORIGIN).painted(rgb(DARK))


def reaches(loops: Sequence[Loop], body: str) -> list[Point]:
    """Return the points of a body, other than its origin, at which loops are attached."""
    places = [place.translation for loop in loops for name, place in _ends(loop) if name == body]
    return [p for p in dict.fromkeys(places) if np.linalg.norm(p) > 1e-9]


@dataclass(frozen=True)
class Cut:
    """A solid of a cut joint about its own origin: the loop by its number, its end (0 for a, 1 for b), and the mesh."""

    loop: int
    end: int
    mesh: Mesh


def cuts(loops: Sequence[Loop], r: float) -> list[Cut]:
    """Return the solids of cut joints: joints at their first end, but sliding joints at their second, and balls."""
    out = []
    for k, loop in enumerate(loops):
        kind = loop_kinds.kind(loop.kind)
        end = 1 if kind.bar or (kind.joint and joint_kinds.kind(loop.kind).FLOATS) else 0
        solid = joint_solid(loop, r) if kind.joint else None
        if solid is not None:
            out.append(Cut(k, end, solid))
        out += [Cut(k, end, meshes.sphere(2.6 * r).painted(rgb(DARK))) for end in kind.balls]
    return out


def cut_solids(loops: Sequence[Loop], body: str, r: float) -> list[Mesh]:
    """Return the cut joints that are drawn on a body, in its frame."""
    ends = [(cut, *_ends(loops[cut.loop])[cut.end]) for cut in cuts(loops, r)]
    return [cut.mesh.placed(*_pose(place)) for cut, name, place in ends if name == body]


def cut_rods(loops: Sequence[Loop], index: Mapping[str, int], r: float) -> list[Rod]:
    """Return the bars of loops: bars of fixed length, and bars along which the ends may slide apart."""
    return [
        Rod(
            index[loop.body_a],
            loop.placement_a.translation,
            index[loop.body_b],
            loop.placement_b.translation,
            r,
            rgb(GREY),
        )
        for loop in loops
        if loop_kinds.kind(loop.kind).bar
    ]


def _ends(loop: Loop) -> tuple[tuple[str, Placement], tuple[str, Placement]]:
    return (loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)


def _pose(place: Placement) -> tuple[Numbers, Point]:
    return np.asarray(place.rotation, dtype=float), place.translation


# --- Force elements as pictures and pages draw them: springs, dampers and actuators between points of bodies ---

STEEL = "#747b86"
SLIM, THINNEST, THICKEST = 0.07, 0.011, 0.028
"""The radius of a coil relative to its first length, and its bounds relative to the size of the mechanism."""
INNER, PLAIN, PIN = 0.5, 0.6, 0.4
"""Radii relative to a coil's: of a damper inside of it, of dampers and actuators alone, of pins at both ends."""


def between_points(forces: Sequence[ForceElement], joints: Sequence[Joint]) -> list[ForceElement]:
    """Return the elements that act along a line, with springs of sliding joints as elements between their origins.

    Springs that resist rotation in a joint are left out.
    """
    carried, out = {j.child: j for j in joints}, []
    for element in forces:
        if element.kind == TRANSMISSION:
            continue
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
    """Return the solids of an element: name, radius relative to a coil's, and color."""
    if element.kind == "linear_actuator":
        return [("actuator", PLAIN, DARK)]
    given = dict(element.coefficients)
    if not given.get("damping"):
        return [("spring", 1.0, STEEL)]
    if not (given.get("stiffness") or given.get("preload")):
        return [("damper", PLAIN, DARK)]
    return [("spring", 1.0, STEEL), ("damper", INNER, DARK)]
