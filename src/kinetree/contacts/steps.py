"""Steps: treads at heights over x, risers between them, and their outer edges, all parallel to y.

The solid is below the treads. A ball meets the floor (the nearest tread or outer edge) and a wall (the nearest riser).
Points meet treads and risers only, since they have no extent around an edge.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..algebra.scalars import logical_and, logical_not, sqrt, where
from .meeting import FAR, Ball, Meeting, nearer

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


def _beyond(ball: Ball, edge: float, before: float, after: float) -> Any:
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
    dn = tuple(where(near, x, 0.0) for x in dn)
    return Meeting(where(near, length - ball.radius, FAR), n, dn)  # type: ignore[arg-type]


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
