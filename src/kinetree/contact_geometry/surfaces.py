"""Surfaces that shapes touch, planes, steps, height fields and curves: functions that return where a ball meets them.

Solids, which are surfaces too, have a module of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.scalars import Scalar, logical_and, logical_not, sqrt, where
from ..algebra.vectors import ZERO, Vector, add, cross, scale, times, to_vector
from ..errors import unknown_name
from ..loops.higher_pairs import beside

if TYPE_CHECKING:
    from . import Feature

# --- Where a feature meets a surface: the gap, and the normal with its rate

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
    radius: Scalar


@dataclass(frozen=True)
class Meeting:
    """The gap between a feature and a surface [m], and the unit normal out of the surface with its rate."""

    gap: Scalar
    n: Vector
    dn: Vector = ZERO


def nearer(a: Meeting, b: Meeting) -> Meeting:
    """Return the meeting with the smaller gap."""
    second = b.gap < a.gap

    def chosen(x: Vector, y: Vector) -> Vector:
        return to_vector(where(second, q, p) for p, q in zip(x, y, strict=True))

    return Meeting(where(second, b.gap, a.gap), chosen(a.n, b.n), chosen(a.dn, b.dn))


FLATNESS = 1e-5
"""The sine of the angle between a rim and a plane below which three points of the rim carry it in place of its lowest
point. They differ from the rim by half of this part of its radius at most."""


def rim_lies(R) -> Scalar:
    """Return whether a rim lies flat on the xy plane."""
    return R[0][2] * R[0][2] + R[1][2] * R[1][2] < FLATNESS * FLATNESS


def rim_on_plane(feature: Feature, r: Vector, R, w: Vector) -> tuple[Meeting, Vector, Vector]:
    """Return where a rim meets the xy plane, and its lowest point from the shape's origin with its rate.

    With u the axis of the rim, the lowest point lies in the direction d = -(z - u_z u) / s, s^2 = 1 - u_z^2.
    """
    lever = times(R, feature.at)
    u = to_vector(row[2] for row in R)
    du = cross(w, u)
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


# --- The surfaces


def on_plane(surface: object, ball: Ball) -> Meeting:
    """Return where a ball meets the xy plane of a surface; the solid is below it."""
    return Meeting(ball.c[2] - ball.radius, (0.0, 0.0, 1.0))


# --- Steps: treads at heights over x, risers between them, and their outer edges, all parallel to y ---
#
# The solid is below the treads. A ball meets the floor (the nearest tread or outer edge) and a wall (the nearest
# riser). Points meet treads and risers only, since they have no extent around an edge.

SKIN = 1e-9
"""The part of the height of a riser by which its top is lowered [1]: a point that stands on a tread, up to rounding,
touches no riser below it."""


def on_treads(surface: Any, ball: Ball) -> Meeting:
    """Return where a ball meets the nearest tread or outer edge."""
    risers = list(zip(surface.edges, pairwise(surface.heights), strict=True))
    beyond = [_beyond(ball, edge, before, after) for edge, (before, after) in risers]
    found = None
    for height, after, before in zip(surface.heights, [True, *beyond], [*map(logical_not, beyond), True], strict=True):
        tread = Meeting(where(logical_and(after, before), ball.c[2] - height - ball.radius, FAR), (0.0, 0.0, 1.0))
        found = tread if found is None else nearer(found, tread)
    assert found is not None, "steps have at least one tread"
    if isinstance(ball.radius, int | float) and ball.radius == 0:
        return found
    for edge, (before, after) in risers:
        found = nearer(found, _outer_edge(ball, edge, before, after))
    return found


def _beyond(ball: Ball, edge: float, before: float, after: float) -> Scalar:
    """Return whether a ball belongs to the tread after an edge, not to the one before it.

    Above the upper tread, the edge is between them. Below it, inside the solid, the nearer of upper tread and riser
    decides: a point that is pressed into the riser by rounding, or by a time step, is not deep below the upper tread.
    """
    within = ball.c[0] - edge if after > before else edge - ball.c[0]
    depth = _top(before, after) - ball.c[2]
    lower = where(depth > 0.0, within - depth, within) < 0.0
    return logical_not(lower) if after > before else lower


def _top(before: float, after: float) -> float:
    """Return the height of the top of a riser, lowered by its skin."""
    return max(before, after) - SKIN * abs(after - before)


def _outer_edge(ball: Ball, edge: float, before: float, after: float) -> Meeting:
    """Return where a ball meets the edge at the top of a riser, if the edge is the nearest part of the steps."""
    dx, dz = ball.c[0] - edge, ball.c[2] - max(before, after)
    outside = dx < 0.0 if after > before else dx > 0.0
    near = logical_and(outside, logical_not(ball.c[2] < _top(before, after)))
    length = sqrt(where(near, dx * dx + dz * dz, 1.0))
    n = (where(near, dx / length, 0.0), 0.0, where(near, dz / length, 1.0))
    along = n[0] * ball.v[0] + n[2] * ball.v[2]
    dn = ((ball.v[0] - along * n[0]) / length, 0.0, (ball.v[2] - along * n[2]) / length)
    dn = to_vector(where(near, x, 0.0) for x in dn)
    return Meeting(where(near, length - ball.radius, FAR), n, dn)


def on_walls(surface: Any, ball: Ball) -> Meeting:
    """Return where a ball meets the nearest riser, below the top of it and on its free side."""
    found = Meeting(FAR, (-1.0, 0.0, 0.0))
    for edge, (before, after) in zip(surface.edges, pairwise(surface.heights), strict=True):
        sign = -1.0 if after > before else 1.0
        size = abs(after - before)
        away = sign * (ball.c[0] - edge)
        level = logical_and(min(before, after) - size < ball.c[2], ball.c[2] < _top(before, after))
        near = logical_and(level, -size < away)
        found = nearer(found, Meeting(where(near, away - ball.radius, FAR), (sign, 0.0, 0.0)))
    return found


# --- Height fields: heights over a uniform grid in x and y, joined by cubic splines with continuous curvature ---
#
# A spline is a sum of basis functions b(x/dx - i) b(y/dy - j), each of which covers four intervals. Its coefficients
# are those of the interpolating natural spline, so that the surface passes through the given heights. Beyond the grid
# the surface continues level, at the heights of its border.

Rows = tuple[tuple[float, ...], ...]


def on_heights(surface: Any, ball: Ball) -> Meeting:
    """Return where a point meets a height field: the gap is (z - h) n_z, which is zero on the surface alone."""
    (x, y, z), (vx, vy, _) = ball.c, ball.v
    dx, dy = surface.spacing
    C = coefficients(surface.heights)
    bx, by = (_basis(u, count) for u, count in ((x / dx, len(C)), (y / dy, len(C[0]))))
    h = _sum(C, bx[0], by[0])
    hx, hy = _sum(C, bx[1], by[0]) / dx, _sum(C, bx[0], by[1]) / dy
    hxx, hxy, hyy = (
        _sum(C, bx[2], by[0]) / (dx * dx),
        _sum(C, bx[1], by[1]) / (dx * dy),
        _sum(C, bx[0], by[2]) / (dy * dy),
    )
    dhx, dhy = hxx * vx + hxy * vy, hxy * vx + hyy * vy
    nz = 1.0 / sqrt(1.0 + hx * hx + hy * hy)
    dnz = -(nz * nz * nz) * (hx * dhx + hy * dhy)
    n = (-(hx * nz), -(hy * nz), nz)
    dn = (-(dhx * nz + hx * dnz), -(dhy * nz + hy * dnz), dnz)
    return Meeting((z - h) * nz, n, dn)


@lru_cache(maxsize=64)
def coefficients(heights: Rows) -> Rows:
    """Return the coefficients of the spline through heights [nx, ny], with one more row and column on each side."""
    C = np.asarray(heights, dtype=float)
    for axis in (0, 1):
        count = C.shape[axis]
        A = np.zeros((count + 2, count + 2))
        rows = np.arange(1, count + 1)
        A[rows, rows - 1], A[rows, rows], A[rows, rows + 1] = 1 / 6, 4 / 6, 1 / 6
        A[0, :3] = A[-1, -3:] = 1.0, -2.0, 1.0  # no curvature at the border
        right = np.zeros((count + 2, C.shape[1 - axis]))
        right[1:-1] = C if axis == 0 else C.T
        C = np.linalg.solve(A, right)
        C = C if axis == 0 else C.T
    return tuple(map(tuple, C.tolist()))


def _basis(u: Scalar, count: int) -> tuple[list, list, list]:
    """Return value, slope and curvature of the basis functions, the first of which is centered at u = -1."""
    last = float(count - 3)
    inside = where(u < 0.0, 0.0, where(u > last, 0.0, 1.0))
    u = where(u < 0.0, 0.0, where(u > last, last, u))
    out: tuple[list, list, list] = ([], [], [])
    for i in range(count):
        d = u - (i - 1.0)
        sign, size = where(d < 0.0, -1.0, 1.0), where(d < 0.0, -d, d)
        a, b = (where(size < reach, reach - size, 0.0) for reach in (2.0, 1.0))
        out[0].append((a * a * a - 4.0 * (b * b * b)) / 6.0)
        out[1].append(inside * sign * (4.0 * (b * b) - a * a) / 2.0)
        out[2].append(inside * (a - 4.0 * b))
    return out


def _sum(C: Rows, bx: list, by: list) -> Scalar:
    total = 0.0
    for row, x in zip(C, bx, strict=True):
        inner = 0.0
        for c, y in zip(row, by, strict=True):
            inner = inner + c * y
        total = total + x * inner
    return total


# --- Curves: cams, whose outline is the same at all z


def on_curve(surface: Any, ball: Ball) -> Meeting:
    """Return where a ball meets a curve in the xy plane: the solid is on its left-hand side."""
    found, _, _ = beside(surface, ball.c, ball.v, ball.radius)
    return Meeting(found.residual, found.f, found.df)


# --- The kinds of surfaces ---

Y: Vector = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class SurfaceKind:
    """A kind of surface: its candidates for a ball by label, and the sorts of features that may touch it.

    `data` are the fields of a Surface that it uses; `moves` is true if it may be fixed to a moving body. No normal is
    along the axis `beside`, to which the first tangent is perpendicular. Solids have no candidates here: see solids.py.
    """

    candidates: tuple[tuple[str, Callable[[Any, Ball], Meeting]], ...]
    takes: tuple[str, ...]
    data: tuple[str, ...] = ()
    moves: bool = False
    beside: Vector = Y


SURFACES: dict[str, SurfaceKind] = {
    "plane": SurfaceKind((("", on_plane),), ("point", "ball", "rim"), moves=True),
    "steps": SurfaceKind((("floor", on_treads), ("wall", on_walls)), ("point", "ball"), ("edges", "heights")),
    "heights": SurfaceKind((("", on_heights),), ("point",), ("spacing", "heights")),
    "curve": SurfaceKind((("", on_curve),), ("point", "ball"), ("curve",), moves=True, beside=(0.0, 0.0, 1.0)),
    "sphere": SurfaceKind((), ("point", "ball", "rod"), ("size",), moves=True),
    "capsule": SurfaceKind((), ("point", "ball", "rod"), ("size",), moves=True),
    "box": SurfaceKind((), ("point", "ball", "rod", "corner", "socket", "edges"), ("size",), moves=True),
}
"""The kinds of surfaces by name."""


def surface_kind(name: str, where: str = "") -> SurfaceKind:
    """Return a kind of surface by name."""
    if name not in SURFACES:
        raise unknown_name("kind of surface", name, SURFACES, where=where)
    return SURFACES[name]
