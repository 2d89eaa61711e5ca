"""Rods and joints that represent links without shapes, and the joints at which loops are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.arrays import Numbers
from ..model.parts import Joint, Loop, Placement
from . import meshes
from .meshes import Mesh

Point = tuple[float, float, float]

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
    return tuple(int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5))  # type: ignore[return-value]


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
    """Return the bars of loops: those of fixed length, and those along which the ends may slide apart."""
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
