"""Planar: q = (x, y [m], angle [rad]) in the plane perpendicular to the axis; x and y are fixed in the parent."""

from __future__ import annotations

import math

from ..algebra.mass import MassMatrix
from ..algebra.rotations import about
from ..algebra.scalars import cos, sin
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import ZERO, transpose
from ._common import TURN, random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import ROTATION, TRANSLATION, Reversal
from .single_axis import check, frame  # noqa: F401 - part of the kind

NQ, NV, UNITS = 3, 3, ("m", "m", "rad")
NAMES = (("x", "y", "angle"),) * 3
DATA = ("axis",)
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = ((0, 0), (1, 1)), False
SOLID, SYMBOL = None, "planar"
PEERS = {}


def steps(joint):
    """Return the translations along x and y and the rotation about the axis."""
    x, y, z = transpose(frame(joint))
    return (TRANSLATION, x), (TRANSLATION, y), (ROTATION, z)


def displacement(joint, q):
    """Return the translation by (x, y), then the rotation about z."""
    return (q[0], q[1], 0.0), about(2, q[2]), ZERO


def motion(joint, q, qd) -> Motion:
    """Return P with Rz(angle)^T x, Rz(angle)^T y and z as columns, and its rate."""
    c, s = cos(q[2]), sin(q[2])
    x, y = Twist(ZERO, (c, -s, 0.0)), Twist(ZERO, (s, c, 0.0))
    dc, ds = -s * qd[2], c * qd[2]
    dx, dy = Twist(ZERO, (dc, -ds, 0.0)), Twist(ZERO, (ds, dc, 0.0))
    return Motion((x, y, TURN[2]), (dx, dy, Twist()))


def common(mass: MassMatrix) -> MassMatrix:
    """Return zero mass: no part of the child is fixed in the parent."""
    return MassMatrix()


def neutral(joint):
    """Return zeros."""
    return (0.0, 0.0, 0.0)


def random(joint, rng, size=None):
    """Return coordinates inside the limits, or within +-1 m and +-pi."""
    return random_in_limits(joint, rng, (1.0, 1.0, math.pi), size)


def reverse(joint) -> Reversal:
    """Return the same joint: the parent's origin in the child's axes, and the opposite angle."""

    def convert(q):
        c, s = cos(q[2]), sin(q[2])
        return (-(c * q[0] + s * q[1]), s * q[0] - c * q[1], -q[2])

    return Reversal(mixed=True, convert=convert)
