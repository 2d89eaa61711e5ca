"""Contacts: shapes of bodies, surfaces that they touch, and the motion of the points where they meet.

A shape is a list of features in its own frame: balls (a point is a ball of radius zero) and rims of discs. Each feature
meets a surface at one or more candidates: places where the two may touch. A rim touches with its lowest point or, once
it lies flat, with three of its points. A new shape is a line in `SHAPES`, a new
surface a line in `SURFACES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..algebra.scalars import where
from ..algebra.vectors import Matrix, Vector, add, cross, scale, sub, times
from ..errors import unknown_name
from ..loops.blocks import Equation
from .features import SHAPES, Feature, features, rim_points
from .height_fields import on_heights
from .meeting import FAR, Ball, Meeting, rim_lies, rim_on_plane
from .steps import on_treads, on_walls
from .tangents import axes_of


def on_plane(surface: Any, ball: Ball) -> Meeting:
    """Return where a ball meets the xy plane of a surface; the solid is below it."""
    return Meeting(ball.c[2] - ball.radius, (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class SurfaceKind:
    """A kind of surface: its candidates for a ball by label, and the sorts of features that may touch it.

    `data` are the fields of a Surface that it uses; `moves` is true if it may be fixed to a moving body.
    """

    candidates: tuple[tuple[str, Callable[[Any, Ball], Meeting]], ...]
    takes: tuple[str, ...]
    data: tuple[str, ...] = ()
    moves: bool = False


SURFACES: dict[str, SurfaceKind] = {
    "plane": SurfaceKind((("", on_plane),), ("point", "ball", "rim"), moves=True),
    "steps": SurfaceKind((("floor", on_treads), ("wall", on_walls)), ("point", "ball"), ("edges", "heights")),
    "heights": SurfaceKind((("", on_heights),), ("point",), ("spacing", "heights")),
}
"""The kinds of surfaces by name."""


def surface_kind(name: str, where: str = "") -> SurfaceKind:
    """Return a kind of surface by name."""
    if name not in SURFACES:
        raise unknown_name("kind of surface", name, SURFACES, where=where)
    return SURFACES[name]


def labels(contact: Any) -> list[str]:
    """Return the names of the candidates of a contact, in order."""
    found, sides = features(contact), [side for side, _ in surface_kind(contact.surface.kind).candidates]
    out = []
    for k, feature in enumerate(found):
        for side in ("", *(f"flat{n + 1}" for n in range(3))) if feature.rim else sides:
            parts = [contact.name, *([str(k + 1)] if len(found) > 1 else []), *([side] if side else [])]
            out.append(".".join(parts))
    return out


@dataclass(frozen=True)
class Candidate:
    """A place where a contact may act: its gap, its point from the shape's origin, and three equations.

    The equations are those of the velocity of the body relative to the surface, along the normal and two tangents
    (`axes`), all in the axes of the surface.
    """

    gap: Any
    arm: Vector
    axes: Matrix
    equations: tuple[Equation, ...]


def candidates(contact: Any, r: Vector, R: Matrix, w: Vector, v: Vector) -> list[Candidate]:
    """Return the candidates for position, rotation and relative twist of the shape's frame in that of the surface."""
    kind, out = surface_kind(contact.surface.kind), []
    for feature in features(contact):
        if feature.rim:
            met, arm, darm = rim_on_plane(feature, r, R, w)
            out.append(_made(met, arm, darm))
            out += [_lying(contact.surface, x, r, R, w, v) for x in rim_points(feature)]
        else:
            out += [_candidate(contact.surface, feature, meet, r, R, w, v) for _, meet in kind.candidates]
    return out


def _candidate(surface: Any, feature: Feature, meet, r, R, w, v) -> Candidate:
    lever = times(R, feature.at)
    dlever = cross(w, lever)
    met = meet(surface, Ball(add(r, lever), add(v, dlever), feature.radius))
    arm = sub(lever, scale(feature.radius, met.n))
    return _made(met, arm, sub(dlever, scale(feature.radius, met.dn)))


def _lying(surface: Any, point: Feature, r, R, w, v) -> Candidate:
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


__all__ = ["SHAPES", "SURFACES", "Candidate", "Feature", "SurfaceKind", "candidates", "features", "labels"]
