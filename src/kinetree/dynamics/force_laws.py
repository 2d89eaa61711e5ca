"""Laws of forces on any scalar: springs and dampers between two points or two joints, and friction in joints.

A force between two points acts along the line between them. The length of this line is computed as sqrt(d . d +
TINY^2), so that there is no division by zero. Between coinciding points the direction is zero and no force acts. At a
distance of a millimeter the relative error of the length is 5e-13. The force is the exact derivative of the energy.
"""

from __future__ import annotations

from ..algebra.scalars import Scalar, absolute, is_number, maximum, minimum, sqrt, where
from ..algebra.spatial import Wrench
from ..algebra.vectors import Vector, add, cross, dot, neg, scale, sub, times, transpose
from . import kinematics

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


SOFT = 0.05
"""The part of a backlash over which a gear reaches its full stiffness at each end: it keeps the torque smooth."""


TIGHT = 1e-12
"""The least such part [rad, m], for a play that is a free parameter with the value zero."""


def transmission(
    x: Scalar, rate: Scalar, stiffness: Scalar, damping: Scalar, backlash: Scalar
) -> tuple[Scalar, Scalar]:
    """Return the torque of an elastic gear from its motor to its joint, and the energy that it stores.

    x is the coordinate of the motor minus that of the joint, and rate its rate. With backlash the torque vanishes for
    |x| <= backlash / 2. Beyond, with y = |x| - backlash / 2 and s = SOFT backlash, it is k y^2 / (2 s) up to y = s and
    k (y - s / 2) from there; the damper acts in proportion to the slope.
    """
    if is_number(backlash) and backlash == 0:
        return stiffness * x + damping * rate, stiffness * x * x * 0.5
    soft = maximum(SOFT * backlash, TIGHT)
    beyond = absolute(x) - 0.5 * backlash
    bend, straight = minimum(maximum(beyond, 0.0), soft), maximum(beyond - soft, 0.0)
    pull = stiffness * (bend * bend / (2.0 * soft) + straight)
    energy = stiffness * (bend * bend * bend / (6.0 * soft) + straight * (straight + soft) * 0.5)
    return where(x < 0.0, -pull, pull) + damping * (bend / soft) * rate, energy


BETWEEN_POINTS = {
    "spring_damper": (spring_damper, ("stiffness", "damping", "free_length", "preload")),
    "linear_actuator": (linear_actuator, ("force",)),
}
"""The laws of force elements between two points by kind, with the coefficients in the order of their arguments."""


# --- The forces that a mechanism describes itself: force elements, and damping and friction of its joints ---


def passive_forces(tree):
    """Return the joint torques of springs, damping and friction in joints, and the wrenches of forces between points.

    The wrenches act on the bodies, about their origins in their own frames. Friction opposes the velocity and vanishes
    at rest.
    """
    kinematics.place(tree)
    kinematics.move(tree)
    for i in (*tree.records, tree.ground):
        i.pushed = Wrench()

    @tree.each
    def resist(i):
        rates = zip(i.qd, i.joint.damping or (0.0,) * len(i.qd), i.joint.friction or (0.0,) * len(i.qd), strict=True)
        i.tau = [-(c * qd) - friction(qd, f) if _acts(f) else -(c * qd) for qd, c, f in rates]

    for element in tree.forces:
        if element.ends is not None:
            a, b = element.ends
            pull, _ = transmission(a.q[0] - b.q[0], a.qd[0] - b.qd[0], *element.coefficients.values())
            a.tau, b.tau = [a.tau[0] - pull], [b.tau[0] + pull]
        elif element.points is None:
            i = element.record
            pairs = zip(i.tau, i.q, element.stiffness, element.rest, strict=True)
            i.tau = [tau - k * (q - rest) for tau, q, k, rest in pairs]
        else:
            push_apart(element)

    @tree.each
    def unturn(i):
        i.own = i.in_body(i.pushed)

    return tree.joints("tau"), tree.bodies("own")


def push_apart(element) -> None:
    """Add the force of an element to the wrenches of its two bodies, in their working frames."""
    a, b = element.points
    length, rate, direction = line(*_motion(a), *_motion(b))
    law, names = BETWEEN_POINTS[element.kind]
    f = scale(law(length, rate, *(element.coefficients[name] for name in names)), direction)
    for end, force in ((b, f), (a, neg(f))):
        own = times(transpose(end.record.T.R), force)
        end.record.pushed = end.record.pushed + Wrench(cross(end.r, own), own)


def _motion(end) -> tuple[Vector, Vector]:
    """Return position and velocity of a point that is fixed to a body, in the axes of the ground."""
    i = end.record
    return i.T.place(end.r), times(i.T.R, add(i.t.v, cross(i.t.w, end.r)))


def _acts(coefficient) -> bool:
    return not (isinstance(coefficient, int | float) and coefficient == 0)
