"""Rods and joints, of which links without shapes are drawn, and the joints of loops where these were cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import joints as joint_kinds
from ..model.parts import Joint, Loop, Placement
from . import meshes
from .meshes import Mesh

Point = tuple[float, float, float]

GREY = "#8a8f98"
DARK = "#3c4350"
FLOATING = ("free", "free_euler", "planar")
SLIDING = ("prismatic", "cylindrical")
TURNING = ("revolute", "helical", "cylindrical")
BALLS = ("spherical", "euler", "universal")
GUIDED = ("prismatic", "cylindrical", "helical", "point_on_line")
"""Loops whose frames may be apart, along an axis: a rod leads from the one to the other."""
ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Rod:
    """A round rod from a point of body a to one of body b; -1 is the ground."""

    a: int
    point_a: Point
    b: int
    point_b: Point
    radius: float
    color: tuple[float, float, float]


def rgb(color: str) -> tuple[float, float, float]:
    """Return #rrggbb as three numbers in 0 to 1."""
    return tuple(int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5))  # type: ignore[return-value]


def joint_solid(joint: Joint | Loop, r: float) -> Mesh | None:
    """Return the solid of a joint between rods of radius r: a cylinder or box along its axis, a ball, or nothing."""
    if joint.kind in TURNING or joint.kind == "prismatic":
        slides = joint.kind == "prismatic"
        solid = meshes.box((4.2 * r, 4.2 * r, 6.0 * r)) if slides else meshes.cylinder(2.3 * r, 6.0 * r)
        turn = joint_kinds.kind(joint.kind).frame(joint)
        return solid.placed(turn, ORIGIN).painted(rgb(DARK))
    return meshes.sphere(2.6 * r).painted(rgb(DARK)) if joint.kind in BALLS else None


def reaches(loops: Sequence[Loop], body: str) -> list[Point]:
    """Return the points of a body, other than its origin, at which loops hold it."""
    places = [place.translation for loop in loops for name, place in _ends(loop) if name == body]
    return [p for p in dict.fromkeys(places) if np.linalg.norm(p) > 1e-9]


def cut_solids(loops: Sequence[Loop], body: str, r: float) -> list[Mesh]:
    """Return the joints that were cut and are drawn on a body: on the first end's, but on the second's that slide."""
    solids = []
    for loop in loops:
        on, place = _ends(loop)[1 if loop.kind in GUIDED or loop.kind in FLOATING else 0]
        solid = joint_solid(loop, r)
        if on == body and solid is not None:
            solids.append(solid.placed(*_pose(place)))
        if loop.kind in ("rod", "point_on_line", "point_on_plane"):
            ball = meshes.sphere(2.6 * r).painted(rgb(DARK))
            held = _ends(loop) if loop.kind == "rod" else _ends(loop)[1:]
            solids += [ball.placed(np.eye(3), place.translation) for name, place in held if name == body]
    return solids


def cut_rods(loops: Sequence[Loop], index: Mapping[str, int], r: float) -> list[Rod]:
    """Return the rods of loops: those of a given length, and guides."""
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
        if loop.kind == "rod" or loop.kind in GUIDED
    ]


def _ends(loop: Loop) -> tuple[tuple[str, Placement], tuple[str, Placement]]:
    return (loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)


def _pose(place: Placement) -> tuple[NDArray[np.floating], Point]:
    return np.asarray(place.rotation, dtype=float), place.translation
