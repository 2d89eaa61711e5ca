"""Rolling and sliding on a plane: the plane is the xy plane of a, z its normal, and a wheel or blade is fixed to b.

The contact point lies at p from the origin of b. The material point of b there has the velocity v + w x p relative to
the plane, and an equation along e is e . (v + w x p) = 0 with the direction [p x e; e]: a force at the contact. Along
z this is the rate of a height. In the plane it is an equation of velocities alone, which has no residual: positions on
both sides of a path are as good. p and e move with the heading of the wheel, and so do their rates.
(docs/theory/rolling.md)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..algebra.scalars import Scalar, cos, sin, sqrt, where
from ..algebra.vectors import ZERO, Vector, add, cross, scale, times, transpose
from ..joints._common import axes_with_z, unit
from .blocks import Equation, Z

LYING = 1e-4
"""The sine of the angle between axle and normal below which a disc lies flat and has no lowest point.

Closer to it, its equations turn around within less than a time step, and a run would go on with wrong numbers."""


@dataclass(frozen=True)
class Heading:
    """An axis of b and its directions in the plane: across it (`ahead`), along it (`aside`), and the rate of heading.

    `flat` is the length of the axis in the plane, the sine of its angle to the normal.
    """

    axis: Vector
    rate: Vector
    flat: Scalar
    ahead: Vector
    aside: Vector
    turning: Scalar


def heading(loop: Any, R, w) -> Heading:
    """Return the heading of the second axis of a loop, which is fixed to b; not finite where it is along the normal."""
    s = times(R, times(transpose(axes_with_z(loop.axis)), unit(loop.axis2)))
    ds = cross(w, s)
    square = s[0] * s[0] + s[1] * s[1]
    flat = sqrt(square)
    flat = where(flat < LYING, 0.0, flat)
    aside = (s[0] / flat, s[1] / flat, 0.0)
    return Heading(s, ds, flat, (aside[1], -aside[0], 0.0), aside, (s[0] * ds[1] - s[1] * ds[0]) / square)


@dataclass(frozen=True)
class Contact:
    """The contact point of a wheel from the origin of b, its rate, and its height below b."""

    at: Vector
    rate: Vector
    depth: Scalar


def lowest(loop: Any, h: Heading) -> Contact:
    """Return the lowest point of a thin disc about the origin of b: -radius u, with u the direction upward in it."""
    up = (-h.axis[2] * h.aside[0], -h.axis[2] * h.aside[1], h.flat)
    rising = h.axis[0] * h.rate[0] + h.axis[1] * h.rate[1]
    sweep = scale(-h.axis[2], _turned(h.aside, h.turning))
    tilt = (-h.rate[2] * h.aside[0], -h.rate[2] * h.aside[1], rising / h.flat)
    return Contact(scale(-loop.radius, up), scale(-loop.radius, add(sweep, tilt)), loop.radius * h.flat)


def below(loop: Any) -> Contact:
    """Return the lowest point of a ball about the origin of b."""
    return Contact((0.0, 0.0, -loop.radius), ZERO, loop.radius)


def along(label: str, c: Contact, e: Vector, de: Vector) -> Equation:
    """Return the equation of velocities at a contact point along e, a direction in the plane with the rate de."""
    dn = add(cross(c.rate, e), cross(c.at, de))
    return Equation(label, "m", 0.0, cross(c.at, e), e, dn, de, holonomic=False)


def height(c: Contact, r) -> Equation:
    """Return the equation that holds a contact point in the plane."""
    return Equation("height", "m", r[2] - c.depth, cross(c.at, Z), Z, cross(c.rate, Z))


def disc(loop, r, R, w, v) -> list[Equation]:
    """Let a thin disc roll about its second axis: its lowest point is in the plane and at rest relative to it."""
    h = heading(loop, R, w)
    c = lowest(loop, h)
    ahead = along("rolling", c, h.ahead, _turned(h.ahead, h.turning))
    return [height(c, r), ahead, along("sideslip", c, h.aside, _turned(h.aside, h.turning))]


def rollers(loop, r, R, w, v) -> list[Equation]:
    """Let a disc with free rollers on its rim touch the plane: its lowest point does not slip along the roller's axis.

    That axis is the horizontal direction of the second axis turned about the normal by the loop's angle.
    """
    h = heading(loop, R, w)
    c = lowest(loop, h)
    e = add(scale(cos(loop.angle), h.aside), scale(-sin(loop.angle), h.ahead))
    return [height(c, r), along("roller", c, e, _turned(e, h.turning))]


def ball(loop, r, R, w, v) -> list[Equation]:
    """Let a ball roll: its lowest point is in the plane and at rest relative to it."""
    c = below(loop)
    return [height(c, r), *(along(f"rolling {name}", c, e, ZERO) for name, e in (("x", X), ("y", Y)))]


def blade(loop, r, R, w, v) -> list[Equation]:
    """Let the origin of b move in the plane only along its second axis, as an ice skate does."""
    h = heading(loop, R, w)
    here = Contact(ZERO, ZERO, 0.0)
    return [along("sideslip", here, h.ahead, _turned(h.ahead, h.turning))]


X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def _turned(e: Vector, turning: Scalar) -> Vector:
    """Return the rate of a direction in the plane that rotates about the normal."""
    return (-turning * e[1], turning * e[0], 0.0)
