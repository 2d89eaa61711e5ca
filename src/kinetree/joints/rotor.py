"""Rotor: the child rotates about the axis by ratio times q [rad], such as the rotor of a motor before a gear."""

from __future__ import annotations

import math

from ..algebra.mass import MassMatrix
from ..algebra.rotations import about
from ..algebra.scalars import is_number
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import ZERO
from ..errors import ModelError
from . import revolute, single_axis
from ._common import random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .single_axis import frame, reverse  # noqa: F401 - part of the kind

NQ, NV, UNITS = 1, 1, ("rad",)
NAMES = (("",),) * 3
DATA = ("axis", "ratio")
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, False
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = None, "rotor"
PEERS = {}


def check(joint, where: str) -> None:
    """Refuse a zero axis, and a ratio that is missing or zero."""
    single_axis.check(joint, where)
    if joint.ratio is None or (is_number(joint.ratio) and joint.ratio == 0):
        raise ModelError(
            "a rotor has no ratio",
            where=where,
            remedy="give ratio, its rotation per unit of the coordinate, or use a revolute joint",
        )


def steps(joint):
    """Return None: the rotation is a multiple of the coordinate."""
    return None


def displacement(joint, q):
    """Return the rotation about z by ratio q."""
    return ZERO, about(2, joint.ratio * q[0]), ZERO


def motion(joint, q, qd) -> Motion:
    """Return p = [ratio e; 0]."""
    return Motion((Twist((0.0, 0.0, joint.ratio), ZERO),))


def common(mass: MassMatrix) -> MassMatrix:
    """Return the part of the child's mass that lies on the axis, where child and parent move together."""
    return revolute.common(mass)


def neutral(joint):
    """Return zero."""
    return (0.0,)


def random(joint, rng, size=None):
    """Return a coordinate inside the limits, or within +-pi."""
    return random_in_limits(joint, rng, (math.pi,), size)
