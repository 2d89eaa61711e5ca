"""Universal (Cardan): q = angles about axis, fixed in the parent, and about axis2, fixed in the child [rad]."""

from __future__ import annotations

import math

from ..algebra.mass import MassMatrix
from ..algebra.rotations import about
from ..algebra.scalars import cos, is_number, sin
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import ZERO, cross, dot, neg, transpose
from ..errors import ModelError
from ._common import TURN, axes_with_z, check_axis, random_in_limits, unit
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import ROTATION, Reversal

NQ, NV, UNITS = 2, 2, ("rad", "rad")
NAMES = (("angle1", "angle2"),) * 3
DATA = ("axis", "axis2")
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = "ball", "U"
PEERS = {}


def check(joint, where: str) -> None:
    """Refuse zero axes, and axes that are not perpendicular."""
    check_axis(joint.axis, where)
    if joint.axis2 is not None:
        check_axis(joint.axis2, where, "axis2")
        slope = dot(unit(joint.axis), unit(joint.axis2))
        if is_number(slope) and abs(slope) > 1e-9:
            raise ModelError(
                f"the two axes of a universal joint enclose {math.degrees(math.acos(slope)):.6g} degrees",
                where=where,
                remedy="they must be perpendicular; use two revolute joints for other angles",
            )


def frame(joint):
    """Return axes with x along the first and y along the second axis."""
    if joint.axis2 is None:
        m = axes_with_z(joint.axis)  # z is the first axis, x the second
        x, y, z = transpose(m)
        return transpose((z, x, y))
    first, second = unit(joint.axis), unit(joint.axis2)
    return transpose((first, second, cross(first, second)))


def steps(joint):
    """Return the rotations about the two axes."""
    first, second, _ = transpose(frame(joint))
    return (ROTATION, first), (ROTATION, second)


def displacement(joint, q):
    """Return the rotation about x by q1, then about the rotated y by q2."""
    return ZERO, about(0, q[0]) @ about(1, q[1]), ZERO


def motion(joint, q, qd) -> Motion:
    """Return P = [Ry(q2)^T x, y; 0 0] and its rate."""
    c, s = cos(q[1]), sin(q[1])
    first = Twist((c, 0.0, s))
    turning = Twist((-s * qd[1], 0.0, c * qd[1]))
    return Motion((first, TURN[1]), (turning, Twist()))


def common(mass: MassMatrix) -> MassMatrix:
    """Return the mass as a point mass at the joint center, which is also a point of the parent."""
    return MassMatrix(mass.m)


def neutral(joint):
    """Return zeros."""
    return (0.0, 0.0)


def random(joint, rng, size=None):
    """Return angles inside the limits, or within +-pi."""
    return random_in_limits(joint, rng, (math.pi, math.pi), size)


def reverse(joint) -> Reversal:
    """Return the joint with its axes exchanged and opposite: Ry(-q2) Rx(-q1)."""
    first, second = joint.axis, joint.axis2
    if second is None:
        first, second, _ = transpose(frame(joint))
    return Reversal({"axis": neg(second), "axis2": neg(first)}, back=True)
