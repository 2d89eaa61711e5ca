"""Steps: treads at heights over x, risers between them, and their outer edges, all parallel to y.

The solid is below the treads. A ball meets the floor (the nearest tread or outer edge) and a wall (the nearest riser).
Points meet treads and risers only, since they have no extent around an edge.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..algebra.scalars import logical_and, sqrt, where
from .meeting import FAR, Ball, Meeting, nearer

SKIN = 1e-9
"""The part of the height of a riser by which its top is lowered [1]: a point that stands on a tread, up to rounding,
touches no riser below it."""


def on_treads(surface: Any, ball: Ball) -> Meeting:
    """Return where a ball meets the nearest tread or outer edge."""
    x, z = ball.c[0], ball.c[2]
    ends = (-FAR, *surface.edges, FAR)
    found = None
    for (low, high), height in zip(pairwise(ends), surface.heights, strict=True):
        inside = _between(x, low, high)
        tread = Meeting(where(inside, z - height - ball.radius, FAR), (0.0, 0.0, 1.0))
        found = tread if found is None else nearer(found, tread)
    assert found is not None, "steps have at least one tread"
    if isinstance(ball.radius, int | float) and ball.radius == 0:
        return found
    for edge, (before, after) in zip(surface.edges, pairwise(surface.heights), strict=True):
        found = nearer(found, _outer_edge(ball, edge, before, after))
    return found


def _between(x: Any, low: float, high: float) -> Any:
    """Return whether low < x < high; ends that are far away are not compared."""
    if low == -FAR:
        return True if high == FAR else x < high
    return low < x if high == FAR else logical_and(low < x, x < high)


def _outer_edge(ball: Ball, edge: float, before: float, after: float) -> Meeting:
    """Return where a ball meets the edge at the top of a riser, if the edge is the nearest part of the steps."""
    dx, dz = ball.c[0] - edge, ball.c[2] - max(before, after)
    outside = dx < 0.0 if after > before else dx > 0.0
    near = logical_and(outside, dz > 0.0)
    length = sqrt(where(near, dx * dx + dz * dz, 1.0))
    n = (where(near, dx / length, 0.0), 0.0, where(near, dz / length, 1.0))
    along = n[0] * ball.v[0] + n[2] * ball.v[2]
    dn = ((ball.v[0] - along * n[0]) / length, 0.0, (ball.v[2] - along * n[2]) / length)
    dn = tuple(where(near, x, 0.0) for x in dn)
    return Meeting(where(near, length - ball.radius, FAR), n, dn)  # type: ignore[arg-type]


def on_walls(surface: Any, ball: Ball) -> Meeting:
    """Return where a ball meets the nearest riser, below the top of it and on its free side."""
    found = Meeting(FAR, (-1.0, 0.0, 0.0))
    for edge, (before, after) in zip(surface.edges, pairwise(surface.heights), strict=True):
        sign = -1.0 if after > before else 1.0
        low, high = min(before, after), max(before, after)
        skin = SKIN * (high - low)
        away = sign * (ball.c[0] - edge)
        level = logical_and(low - (high - low) < ball.c[2], ball.c[2] < high - skin)
        near = logical_and(level, -(high - low) < away)
        found = nearer(found, Meeting(where(near, away - ball.radius, FAR), (sign, 0.0, 0.0)))
    return found
