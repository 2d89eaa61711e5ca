"""Blocks of equations between frames a and b: r and R are the position and rotation of b in a, w and v their rates.

Rotations are measured by tangents of half angles, which are zero only if the frames agree: a reversed axis is not a
solution. Their rates equal the angular velocity if the loop is closed. Otherwise they differ from it by the order of
the gap, so that Newton's method with n and f converges quadratically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..algebra.scalars import Scalar, atan2, cos, is_number, sin, sqrt
from ..algebra.vectors import IDENTITY, ZERO, Matrix, Vector, dot, scale, sub

X, Y, Z = IDENTITY


@dataclass(frozen=True)
class Equation:
    """One equation: its residual, the direction [n; f] of its reaction on b in the axes of a, and its rate.

    An equation that is not holonomic restricts velocities alone, n . w + f . v = 0. Its residual is zero everywhere.
    """

    label: str
    unit: str
    residual: Scalar
    n: Vector = ZERO
    f: Vector = ZERO
    dn: Vector = ZERO
    df: Vector = ZERO
    holonomic: bool = True


Block = Callable[[Any, Vector, Matrix, Vector, Vector], list[Equation]]


def place(loop, r, R, w, v) -> list[Equation]:
    """Constrain the origin of b to the origin of a."""
    return [Equation(f"position {name}", "m", x, f=e) for name, x, e in zip("xyz", r, IDENTITY, strict=True)]


def across(loop, r, R, w, v) -> list[Equation]:
    """Constrain the origin of b to the z axis of a."""
    return place(loop, r, R, w, v)[:2]


def along(loop, r, R, w, v) -> list[Equation]:
    """Constrain the origin of b to the xy plane of a."""
    return place(loop, r, R, w, v)[2:]


def swing(loop, r, R, w, v) -> list[Equation]:
    """Constrain the z axis of b to the direction of the z axis of a: 2 tan(angle / 2) about x and y."""
    size = 2.0 / (1.0 + R[2][2])
    return [
        Equation("rotation x", "rad", -(R[1][2] * size), n=X),
        Equation("rotation y", "rad", R[0][2] * size, n=Y),
    ]


def turn(loop, r, R, w, v) -> list[Equation]:
    """Constrain the axes of b to those of a: 2 tan(angle / 2) along the axis of the rotation between them."""
    size = 2.0 / (1.0 + R[0][0] + R[1][1] + R[2][2])
    parts = (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])
    return [
        Equation(f"rotation {name}", "rad", x * size, n=e) for name, x, e in zip("xyz", parts, IDENTITY, strict=True)
    ]


def square(loop, r, R, w, v) -> list[Equation]:
    """Constrain the y axis of b to be perpendicular to the x axis of a, as in a Cardan joint."""
    x, y, z = (row[1] for row in R)  # the y axis of b; its rate is w x y
    turned = (0.0, -z, y)
    rate = (0.0, w[1] * x - w[0] * y, w[2] * x - w[0] * z)
    return [Equation("rotation z", "rad", -x, n=turned, dn=rate)]


def screw(loop, r, R, w, v) -> list[Equation]:
    """Constrain the advance of b along z to pitch times its angle about z, up to full rotations along the thread."""
    pitch = loop.pitch
    if is_number(pitch) and pitch == 0.0:
        return along(loop, r, R, w, v)
    angle = r[2] / pitch
    c, s = R[0][0] + R[1][1], R[1][0] - R[0][1]
    slip = atan2(sin(angle) * c - cos(angle) * s, cos(angle) * c + sin(angle) * s)
    return [Equation("screw z", "m", pitch * slip, n=(0.0, 0.0, -pitch), f=Z)]


def distance(loop, r, R, w, v) -> list[Equation]:
    """Constrain the distance between the origins, as a rod does."""
    size = sqrt(dot(r, r))
    f = scale(1.0 / size, r)
    df = scale(1.0 / size, sub(v, scale(dot(f, v), f)))
    return [Equation("length", "m", size - loop.length, f=f, df=df)]
