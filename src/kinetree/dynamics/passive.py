"""The forces that a mechanism describes itself: force elements, and damping and friction of its joints."""

from __future__ import annotations

from ..algebra.spatial import Wrench
from ..algebra.vectors import Vector, add, cross, neg, scale, times, transpose
from . import kinematics
from .force_laws import BETWEEN_POINTS, friction, line


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
        if element.points is None:
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
