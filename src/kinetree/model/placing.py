"""Placements composed and inverted, and bodies given in another frame; numbers may be expressions of parameters."""

from __future__ import annotations

from dataclasses import replace

from ..algebra.rotations import snapped
from ..algebra.vectors import add, from_moments, matmul, neg, symmetric, times, to_moments, transpose
from .parts import Body, Placement


def composed(a: Placement, b: Placement) -> Placement:
    """Return the placement b, given in a frame with placement a, in the frame in which a is given."""
    return Placement(add(a.translation, times(a.rotation, b.translation)), snapped(matmul(a.rotation, b.rotation)))


def inverse(a: Placement) -> Placement:
    """Return the placement of the outer frame in the inner one."""
    back = transpose(a.rotation)
    return Placement(neg(times(back, a.translation)), back)


def placed(a: Placement, body: Body) -> Body:
    """Return a body whose frame has the placement a, with its data in the frame in which a is given."""
    inertia = matmul(matmul(a.rotation, from_moments(body.inertia)), transpose(a.rotation))
    return replace(
        body,
        com=add(a.translation, times(a.rotation, body.com)),
        inertia=to_moments(symmetric(inertia)),
        shapes=tuple(replace(s, placement=composed(a, s.placement)) for s in body.shapes),
    )
