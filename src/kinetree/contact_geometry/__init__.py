"""Contacts: shapes of bodies, surfaces that they touch, and the motion of the points where they meet.

A shape is a list of features in its own frame: balls (a point is a ball of radius zero) and rims of discs. Each feature
meets a surface at one or more candidates: places where the two may touch. A rim touches with its lowest point or, once
it lies flat, with three of its points. A new shape is a line in `SHAPES`, a new
surface a line in `SURFACES`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..algebra.scalars import Scalar, sqrt, where
from ..algebra.vectors import Matrix, Vector, add, cross, dot, scale, sub, times
from ..loops.blocks import Equation
from .features import LYING, SHAPES, Feature, features, rim_points
from .surfaces import FAR, SURFACES, Ball, Meeting, SurfaceKind, on_plane, rim_lies, rim_on_plane, surface_kind

# --- Axes of a contact: its normal and two tangents, with their rates ---

Y = (0.0, 1.0, 0.0)


def axes_of(n: Vector, dn: Vector) -> tuple[Matrix, Matrix]:
    """Return (n, t1, t2) and their rates; t1 lies in the xz plane of the surface, and t2 = n x t1.

    Normals along y, at which t1 would have no direction, do not occur: surfaces are graphs over their xy plane, or
    walls perpendicular to x.
    """
    t, dt = cross(Y, n), cross(Y, dn)
    size = sqrt(dot(t, t))
    t1 = scale(1.0 / size, t)
    dt1 = scale(1.0 / size, sub(dt, scale(dot(t1, dt), t1)))
    t2, dt2 = cross(n, t1), add(cross(dn, t1), cross(n, dt1))
    return (n, t1, t2), (dn, dt1, dt2)


def labels(contact: Any) -> list[str]:
    """Return the names of the candidates of a contact, in order."""
    found, sides = features(contact), [side for side, _ in surface_kind(contact.surface.kind).candidates]
    out = []
    for k, feature in enumerate(found):
        for side in ("", *(f"flat{n + 1}" for n in range(LYING))) if feature.rim else sides:
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
    return [x for feature in features(contact) for x in of_feature(contact.surface, feature, r, R, w, v)]


def of_feature(surface: Any, feature: Feature, r: Vector, R: Matrix, w: Vector, v: Vector) -> list[Candidate]:
    """Return the candidates of one feature of a shape, for the motion of the shape's frame in the surface's."""
    if feature.rim:
        met, arm, darm = rim_on_plane(feature, r, R, w)
        return [_made(met, arm, darm), *(_lying(surface, x, r, R, w, v) for x in rim_points(feature))]
    return [_candidate(surface, feature, meet, r, R, w, v) for _, meet in surface_kind(surface.kind).candidates]


def count_of(surface: Any, feature: Feature) -> int:
    """Return the number of candidates of a feature."""
    return 1 + LYING if feature.rim else len(surface_kind(surface.kind).candidates)


def _candidate(surface: object, feature: Feature, meet, r, R, w, v) -> Candidate:
    lever = times(R, feature.at)
    dlever = cross(w, lever)
    met = meet(surface, Ball(add(r, lever), add(v, dlever), feature.radius))
    arm = sub(lever, scale(feature.radius, met.n))
    return _made(met, arm, sub(dlever, scale(feature.radius, met.dn)))


def _lying(surface: object, point: Feature, r, R, w, v) -> Candidate:
    """Return the candidate of a point of a rim, which touches only while the rim lies flat."""
    lever = times(R, point.at)
    met = on_plane(surface, Ball(add(r, lever), v, 0.0))
    return _made(replace(met, gap=where(rim_lies(R), met.gap, FAR)), lever, cross(w, lever))


def _made(met: Meeting, arm: Vector, darm: Vector) -> Candidate:
    axes, rates = axes_of(met.n, met.dn)
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
    "SHAPES", "SURFACES", "Candidate", "Feature", "SurfaceKind", "candidates", "count_of", "features", "labels",
    "of_feature",
]  # fmt: skip
