"""Cylindrical: q = (angle about the axis [rad], displacement along it [m])."""

from __future__ import annotations

import math

from ..algebra.mass import MassMatrix
from ..algebra.rotations import about
from ..algebra.spatial import Motion
from ..algebra.vectors import ZERO, transpose
from ._common import SLIDE, TURN, random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import ROTATION, TRANSLATION
from .single_axis import check, frame, reverse  # noqa: F401 - part of the kind

NQ, NV, UNITS = 2, 2, ("rad", "m")
NAMES = (("angle", "shift"),) * 3
DATA = ("axis",)
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = (), True
SOLID, SYMBOL = "cylinder", "cylindrical"
PEERS = {}


def steps(joint):
    """Return the rotation about the axis and the translation along it."""
    z = transpose(frame(joint))[2]
    return (ROTATION, z), (TRANSLATION, z)


def displacement(joint, q):
    """Return the rotation about z by q1 and the translation along z by q2; the two commute."""
    return ZERO, about(2, q[0]), (0.0, 0.0, q[1])


def motion(joint, q, qd) -> Motion:
    """Return P = [e 0; 0 e]."""
    return Motion((TURN[2], SLIDE[2]))


def common(mass: MassMatrix) -> MassMatrix:
    """Return zero mass: no part of the child is fixed in the parent."""
    return MassMatrix()


def neutral(joint):
    """Return zeros."""
    return (0.0, 0.0)


def random(joint, rng, size=None):
    """Return coordinates inside the limits, or within +-pi and +-1 m."""
    return random_in_limits(joint, rng, (math.pi, 1.0), size)
