"""Laws of forces on any scalar: springs and dampers between two points, and friction in joints.

A force between two points acts along the line between them. The length of this line is computed as sqrt(d . d +
TINY^2), so that there is no division by zero. Between coinciding points the direction is zero and no force acts. At a
distance of a millimeter the relative error of the length is 5e-13. The force is the exact derivative of the energy.
"""

from __future__ import annotations

from ..algebra.scalars import Scalar, sqrt
from ..algebra.vectors import Vector, dot, scale, sub

TINY = 1e-9
"""The length that is computed for two coinciding points [m]."""
SLIP_SPEED = 1e-3
"""The default velocity at which friction reaches 71 % of its full force [rad/s, m/s]."""


def line(a: Vector, va: Vector, b: Vector, vb: Vector) -> tuple[Scalar, Scalar, Vector]:
    """Return the distance of two points, its rate, and the direction from a to b (shorter than one near zero)."""
    d = sub(b, a)
    length = sqrt(dot(d, d) + TINY * TINY)  # [Goncalves2023] (20)
    direction = scale(1.0 / length, d)
    return length, dot(direction, sub(vb, va)), direction


def spring_damper(
    length: Scalar, rate: Scalar, stiffness: Scalar, damping: Scalar, free_length: Scalar, preload: Scalar
) -> Scalar:
    """Return the force of a spring and a damper that pushes two points apart [N].    [Goncalves2023] (35)"""
    return stiffness * (free_length - length) + preload - damping * rate


def linear_actuator(length: Scalar, rate: Scalar, force: Scalar) -> Scalar:
    """Return the force of an actuator that pushes two points apart [N]."""
    return force


def friction(speed: Scalar, force: Scalar, slip_speed: float = SLIP_SPEED) -> Scalar:
    """Return Coulomb friction with a smooth transition at rest, force speed / sqrt(speed^2 + slip_speed^2)."""
    return force * (speed / sqrt(speed * speed + slip_speed * slip_speed))


BETWEEN_POINTS = {
    "spring_damper": (spring_damper, ("stiffness", "damping", "free_length", "preload")),
    "linear_actuator": (linear_actuator, ("force",)),
}
"""The laws of force elements between two points by kind, with the coefficients in the order of their arguments."""
