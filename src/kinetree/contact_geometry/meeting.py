"""Where a feature meets a surface: the gap, and the normal with its rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..algebra.scalars import sqrt, where
from ..algebra.vectors import ZERO, Vector, add, cross, scale, times
from .features import Feature

FAR = 1e9
"""The gap [m] of a candidate that is beyond the end of its part of a surface: larger than any mechanism."""

FLAT = 1e-8
"""The least sine of the angle between a rim and a plane; a rim that lies flat has no lowest point, and smaller sines
are replaced by this one, so that no division by zero occurs."""


@dataclass(frozen=True)
class Ball:
    """The center of a ball in the frame of a surface [m], its velocity there [m/s], and the radius [m]."""

    c: Vector
    v: Vector
    radius: Any


@dataclass(frozen=True)
class Meeting:
    """The gap between a feature and a surface [m], and the unit normal out of the surface with its rate."""

    gap: Any
    n: Vector
    dn: Vector = ZERO


def nearer(a: Meeting, b: Meeting) -> Meeting:
    """Return the meeting with the smaller gap."""
    second = b.gap < a.gap

    def chosen(x: Vector, y: Vector) -> Vector:
        return tuple(where(second, q, p) for p, q in zip(x, y, strict=True))  # type: ignore[return-value]

    return Meeting(where(second, b.gap, a.gap), chosen(a.n, b.n), chosen(a.dn, b.dn))


FLATNESS = 1e-5
"""The sine of the angle between a rim and a plane below which three points of the rim carry it in place of its lowest
point. They differ from the rim by half of this part of its radius at most."""


def rim_lies(R) -> Any:
    """Return whether a rim lies flat on the xy plane."""
    return R[0][2] * R[0][2] + R[1][2] * R[1][2] < FLATNESS * FLATNESS


def rim_on_plane(feature: Feature, r: Vector, R, w: Vector) -> tuple[Meeting, Vector, Vector]:
    """Return where a rim meets the xy plane, and its lowest point from the shape's origin with its rate.

    With u the axis of the rim, the lowest point lies in the direction d = -(z - u_z u) / s, s^2 = 1 - u_z^2.
    """
    lever = times(R, feature.at)
    u = tuple(row[2] for row in R)
    du = cross(w, u)  # type: ignore[arg-type]
    steep = u[0] * u[0] + u[1] * u[1]
    s = sqrt(where(steep > FLAT * FLAT, steep, FLAT * FLAT))
    ds = -(u[2] * du[2]) / s
    d = (u[2] * u[0] / s, u[2] * u[1] / s, -s)
    dd = (
        (du[2] * u[0] + u[2] * du[0] - d[0] * ds) / s,
        (du[2] * u[1] + u[2] * du[1] - d[1] * ds) / s,
        -ds,
    )
    gap = where(rim_lies(R), FAR, r[2] + lever[2] - feature.radius * s)
    arm = add(lever, scale(feature.radius, d))
    darm = add(cross(w, lever), scale(feature.radius, dd))
    return Meeting(gap, (0.0, 0.0, 1.0)), arm, darm
