"""Contacts: shapes of bodies, surfaces and solids that they touch, and the motion of the points where they meet.

A shape is a list of features in its own frame: balls (a point is a ball of radius zero) and rims of discs. Each feature
meets a surface at one or more candidates: places where the two may touch. A rim touches with its lowest point or, once
it lies flat, with three of its points. Solids of other bodies are surfaces too, which meet rods, corners and edges. A
new shape is a line in `SHAPES`, a new surface a line in `SURFACES`, a new solid one in `SOLIDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ..algebra.scalars import Scalar, sqrt, where
from ..algebra.vectors import ZERO, Matrix, Vector, add, cross, dot, scale, sub, times, to_vector
from ..errors import unknown_name
from ..loops.blocks import Equation
from .solids import SOLIDS, Place, places
from .surfaces import FAR, SURFACES, Ball, Meeting, SurfaceKind, Y, on_plane, rim_lies, rim_on_plane, surface_kind

# --- Shapes as lists of features: points, balls and rims of discs; on solids also rods, corners and edges ---


@dataclass(frozen=True)
class Feature:
    """A part of a shape that touches: a ball of a radius [m] about a point of the shape's frame, unless `part` is set.

    Of surfaces, it is also a "rim": that of a disc about the z axis through the point. Of solids, it is a "rod" along
    z, a "corner" of a box, a "socket" (the box as it meets a corner of the solid) or "edges", the four along z once the
    axes are `turned`. `half` has the half lengths of the box or rod along these axes, and `mark` the position of the
    corner; that of a corner of the solid is relative to its half lengths.
    """

    at: Vector = ZERO
    radius: Scalar = 0.0
    part: str = ""
    half: Vector = ZERO
    mark: Vector = ZERO
    axis: int = 2

    @property
    def sort(self) -> str:
        """The sort of the feature: its part, or else point or ball."""
        return self.part or ("point" if isinstance(self.radius, int | float) and self.radius == 0 else "ball")

    def turned(self, R: Matrix) -> Matrix:
        """Return a rotation with its columns in the order in which the axis of the feature is the last one."""
        k = self.axis
        return R if k == 2 else tuple((row[(k + 1) % 3], row[(k + 2) % 3], row[k]) for row in R)  # type: ignore[return-value]


@dataclass(frozen=True)
class ShapeKind:
    """A shape: the meaning of its sizes, and the features that it has on surfaces, and on solids if they differ."""

    sizes: tuple[str, ...]
    made: Callable[..., list[Feature]]
    on_solids: Callable[..., list[Feature]] | None = None


def _capsule(radius: Scalar, length: Scalar) -> list[Feature]:
    return [Feature((0.0, 0.0, sign * length), radius) for sign in (-0.5, 0.5)]


def _box(x: Scalar, y: Scalar, z: Scalar) -> list[Feature]:
    return [Feature((i * x, j * y, k * z)) for k, j, i in product((-0.5, 0.5), repeat=3)]


def _rod(radius: Scalar, length: Scalar) -> list[Feature]:
    return [Feature(ZERO, radius, "rod", (0.0, 0.0, 0.5 * length))]


def _solid_box(x: Scalar, y: Scalar, z: Scalar) -> list[Feature]:
    half = 0.5 * x, 0.5 * y, 0.5 * z
    signs = [(i, j, k) for k, j, i in product((-1.0, 1.0), repeat=3)]
    corners = [Feature(part="corner", half=half, mark=(i * half[0], j * half[1], k * half[2])) for i, j, k in signs]
    edges = [Feature(part="edges", half=(half[k - 2], half[k - 1], half[k]), axis=k) for k in range(3)]
    return [*corners, *(Feature(part="socket", half=half, mark=x) for x in signs), *edges]


def _cylinder(radius: Scalar, length: Scalar) -> list[Feature]:
    return [Feature((0.0, 0.0, sign * length), radius, "rim") for sign in (-0.5, 0.5)]


SHAPES: dict[str, ShapeKind] = {
    "point": ShapeKind((), lambda: [Feature()]),
    "sphere": ShapeKind(("radius",), lambda radius: [Feature(ZERO, radius)]),
    "capsule": ShapeKind(("radius", "length"), _capsule, _rod),
    "box": ShapeKind(("x", "y", "z"), _box, _solid_box),
    "disc": ShapeKind(("radius",), lambda radius: [Feature(ZERO, radius, "rim")]),
    "cylinder": ShapeKind(("radius", "length"), _cylinder),
}
"""The shapes by name; surfaces touch the ends of a capsule, the corners of a box, and the two rims of a cylinder."""


def shape_kind(name: str, where: str = "") -> ShapeKind:
    """Return a kind of shape by name."""
    if name not in SHAPES:
        raise unknown_name("shape of a contact", name, SHAPES, where=where)
    return SHAPES[name]


def features(shape: str, size: Sequence[Scalar], *, on_solid: bool) -> list[Feature]:
    """Return the features of a shape that a surface touches, or that a solid does."""
    kind = shape_kind(shape)
    return (kind.on_solids if on_solid and kind.on_solids else kind.made)(*size)


LYING = 3
"""The number of points that carry a rim that lies flat."""


def rim_points(rim: Feature) -> list[Feature]:
    """Return three points of a rim, 120 degrees apart."""
    out = []
    for k in range(LYING):
        angle = 2 * math.pi * k / LYING
        x, y = rim.radius * math.cos(angle), rim.radius * math.sin(angle)
        out.append(Feature((rim.at[0] + x, rim.at[1] + y, rim.at[2])))
    return out


# --- Axes of a contact: its normal and two tangents, with their rates ---

STEEP = 0.9
"""The component of a normal of a solid along y from which on its first tangent is perpendicular to x, not to y."""


def axes_of(n: Vector, dn: Vector, beside: Vector = Y) -> tuple[Matrix, Matrix]:
    """Return (n, t1, t2) and their rates; t1 is perpendicular to the axis `beside` of the surface, and t2 = n x t1.

    Normals along y, at which t1 would have no direction, occur at solids and curves alone: other surfaces are graphs
    over their xy plane, or walls perpendicular to x.
    """
    t, dt = cross(beside, n), cross(beside, dn)
    size = sqrt(dot(t, t))
    t1 = scale(1.0 / size, t)
    dt1 = scale(1.0 / size, sub(dt, scale(dot(t1, dt), t1)))
    t2, dt2 = cross(n, t1), add(cross(dn, t1), cross(n, dt1))
    return (n, t1, t2), (dn, dt1, dt2)


def features_of(contact: Any) -> list[Feature]:
    """Return the features of the shape of a contact with its surface."""
    return features(contact.shape, contact.size, on_solid=contact.surface.kind in SOLIDS)


def sides_of(surface: Any, feature: Feature) -> Sequence[str]:
    """Return the labels of the candidates of a feature."""
    if feature.part == "rim":
        return ("", *(f"flat{n + 1}" for n in range(LYING)))
    if surface.kind in SOLIDS:
        return SOLIDS[surface.kind].meets[feature.sort][0]
    return [side for side, _ in surface_kind(surface.kind).candidates]


def labels(contact: Any) -> list[str]:
    """Return the names of the candidates of a contact, in order."""
    found, out = features_of(contact), []
    for k, feature in enumerate(found):
        for side in sides_of(contact.surface, feature):
            parts = [contact.name, *([str(k + 1)] if len(found) > 1 else []), *([side] if side else [])]
            out.append(".".join(parts))
    return out


@dataclass(frozen=True)
class Candidate:
    """A place where a contact may act: its gap, its point from the shape's origin, and three equations.

    The equations are those of the velocity of the body relative to the surface, along the normal and two tangents
    (`axes`), all in the axes of the surface.
    """

    gap: Scalar
    arm: Vector
    axes: Matrix
    equations: tuple[Equation, ...]


def candidates(contact: Any, r: Vector, R: Matrix, w: Vector, v: Vector) -> list[Candidate]:
    """Return the candidates for position, rotation and relative twist of the shape's frame in the surface's."""
    return [x for feature in features_of(contact) for x in of_feature(contact.surface, feature, r, R, w, v)]


def of_feature(surface: Any, feature: Feature, r: Vector, R: Matrix, w: Vector, v: Vector) -> list[Candidate]:
    """Return the candidates of one feature of a shape, for the motion of the shape's frame in the surface's."""
    if surface.kind in SOLIDS:
        return [_on_solid(x, r, v) for x in places(surface, feature, r, R, w, v)]
    if feature.part == "rim":
        met, arm, darm = rim_on_plane(feature, r, R, w)
        return [_made(met, arm, darm), *(_lying(surface, x, r, R, w, v) for x in rim_points(feature))]
    return [_candidate(surface, feature, meet, r, R, w, v) for _, meet in surface_kind(surface.kind).candidates]


def _candidate(surface: Any, feature: Feature, meet, r, R, w, v) -> Candidate:
    lever = times(R, feature.at)
    dlever = cross(w, lever)
    met = meet(surface, Ball(add(r, lever), add(v, dlever), feature.radius))
    arm = sub(lever, scale(feature.radius, met.n))
    return _made(met, arm, sub(dlever, scale(feature.radius, met.dn)), surface_kind(surface.kind).beside)


def _lying(surface: object, point: Feature, r, R, w, v) -> Candidate:
    """Return the candidate of a point of a rim, which touches only while the rim lies flat."""
    lever = times(R, point.at)
    met = on_plane(surface, Ball(add(r, lever), v, 0.0))
    return _made(replace(met, gap=where(rim_lies(R), met.gap, FAR)), lever, cross(w, lever))


def _on_solid(place: Place, r: Vector, v: Vector) -> Candidate:
    """Return the candidate of a place on a solid, from values and rates."""
    (n, dn), (at, rate) = ((to_vector(y.x for y in x), to_vector(y.d for y in x)) for x in (place.n, place.at))
    steep = STEEP * STEEP < n[1] * n[1]
    beside = where(steep, 1.0, 0.0), where(steep, 0.0, 1.0), 0.0
    return _made(Meeting(place.gap.x, n, dn), sub(at, r), sub(rate, v), beside)


def _made(met: Meeting, arm: Vector, darm: Vector, beside: Vector = Y) -> Candidate:
    axes, rates = axes_of(met.n, met.dn, beside)
    equations = tuple(
        Equation(
            label,
            "m",
            met.gap if label == "normal" else 0.0,
            n=cross(arm, e),
            f=e,
            dn=add(cross(darm, e), cross(arm, de)),
            df=de,
        )
        for label, e, de in zip(("normal", "tangent 1", "tangent 2"), axes, rates, strict=True)
    )
    return Candidate(met.gap, arm, axes, equations)


__all__ = [
    "SHAPES", "SOLIDS", "SURFACES", "Candidate", "Feature", "SurfaceKind", "candidates", "features", "features_of",
    "labels", "of_feature", "shape_kind", "sides_of",
]  # fmt: skip
