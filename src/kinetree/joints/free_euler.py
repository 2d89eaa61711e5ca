"""Free with Euler angles: q = (x, y, z [m], three angles of the sequence [rad]) in the parent; qd are their rates."""

from __future__ import annotations

from ..algebra.mass import MassMatrix
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import IDENTITY, ZERO, cross, neg, scale
from . import euler
from ._common import random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import TRANSLATION, Reversal

NQ, NV, UNITS = 6, 6, ("m", "m", "m", "rad", "rad", "rad")
NAMES = (("x", "y", "z", "angle1", "angle2", "angle3"),) * 3
DATA = ("sequence",)
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = ((0, 0), (1, 1), (2, 2)), False
SOLID, SYMBOL = None, "free_euler"
PEERS = {}


def check(joint, where: str) -> None:
    """Refuse a sequence that is not one of the twelve."""
    euler.check(joint, where)


def frame(joint):
    """Return the child's own axes, which the letters of the sequence refer to."""
    return IDENTITY


def steps(joint):
    """Return the translations along the parent's axes, then the rotations of the sequence."""
    return (*((TRANSLATION, e) for e in IDENTITY), *euler.steps(joint))


def displacement(joint, q):
    """Return the translation by (x, y, z), then the three rotations of the sequence."""
    return tuple(q[:3]), euler.rotation(joint.sequence, q[3:]), ZERO


def motion(joint, q, qd) -> Motion:
    """Return P, the parent's axes and the Euler axes in the child's frame, and its rate.

    The parent's axes rotate in the child's frame with minus the child's angular velocity: d(R^T e) = (R^T e) x w.
    """
    R = euler.rotation(joint.sequence, q[3:]).matrix()
    turning, turning_rates = euler.angular_columns(joint.sequence, q[3:], qd[3:])
    w = ZERO
    for speed, e in zip(qd[3:], turning, strict=True):
        w = tuple(a + b for a, b in zip(w, scale(speed, e), strict=True))
    sliding = [Twist(ZERO, row) for row in R]  # the rows of R are the columns of R^T
    sliding_rates = [Twist(ZERO, cross(row, w)) for row in R]
    return Motion(
        (*sliding, *(Twist(e) for e in turning)),
        (*sliding_rates, *(Twist(d) for d in turning_rates)),
    )


def common(mass: MassMatrix) -> MassMatrix:
    """Return zero mass: no part of the child is fixed in the parent."""
    return MassMatrix()


def neutral(joint):
    """Return zeros."""
    return (0.0,) * 6


def random(joint, rng, size=None):
    """Return a position inside the limits, or within +-1 m per axis, and angles away from the singular one."""
    position = random_in_limits(joint, rng, (1.0,) * 6, size)[:3]
    return (*position, *_angles(joint, rng, size))


def _angles(joint, rng, size):
    if joint.limits.lower or joint.limits.upper:
        return random_in_limits(joint, rng, (1.0,) * 3 + (3.0, 1.2, 3.0), size)[3:]
    return euler.random(joint, rng, size)


def reverse(joint) -> Reversal:
    """Return the joint of the opposite sequence: the parent's origin in the child's axes, and opposite angles."""

    def convert(q):
        back = euler.rotation(joint.sequence, q[3:]).T
        return (*neg(back @ tuple(q[:3])), -q[5], -q[4], -q[3])

    return Reversal({"sequence": joint.sequence[::-1]}, mixed=True, convert=convert)
