"""Revolute: q is the rotation angle of the child about the axis [rad]."""

from __future__ import annotations

import math

from ..algebra.mass import MassMatrix
from ..algebra.rotations import about
from ..algebra.spatial import Motion
from ..algebra.vectors import ZERO, transpose
from ._common import TURN, random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import ROTATION
from .single_axis import check, frame, reverse  # noqa: F401 - part of the kind

NQ, NV, UNITS = 1, 1, ("rad",)
NAMES = (("",),) * 3
DATA = ("axis",)
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = ROTATION, True
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = "cylinder", "R"
PEERS = {}


def steps(joint):
    """Return the rotation about the axis."""
    return ((ROTATION, transpose(frame(joint))[2]),)


def displacement(joint, q):
    """Return the rotation about z by q."""
    return ZERO, about(2, q[0]), ZERO


def motion(joint, q, qd) -> Motion:
    """Return p = [e; 0].                                                                    [Saha2013] (36b)"""
    return Motion((TURN[2],))


def common(mass: MassMatrix) -> MassMatrix:
    """Return the part of the child's mass that lies on the axis, where child and parent move together."""
    J = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, mass.J[2][2]))
    return MassMatrix(mass.m, (0.0, 0.0, mass.mc[2]), J)


def neutral(joint):
    """Return zero."""
    return (0.0,)


def random(joint, rng, size=None):
    """Return an angle inside the limits, or within +-pi."""
    return random_in_limits(joint, rng, (math.pi,), size)
