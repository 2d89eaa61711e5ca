"""Helical: q is the rotation angle about the axis [rad]; the child advances along it by pitch [m/rad] times q."""

from __future__ import annotations

import math

from ..algebra.mass import MassMatrix
from ..algebra.rotations import about
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import ZERO
from ._common import Z, random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .single_axis import check, frame, reverse  # noqa: F401 - part of the kind

NQ, NV, UNITS = 1, 1, ("rad",)
NAMES = (("",),) * 3
DATA = ("axis", "pitch")
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, False
FLOATS, ADVANCES = (), True
SOLID, SYMBOL = "cylinder", "helical"
PEERS = {"pinocchio": "JointModelHelicalUnaligned"}


def steps(joint):
    """Return None: one coordinate rotates and translates at once."""
    return None


def displacement(joint, q):
    """Return the rotation about z by q and the translation along z by pitch q."""
    return ZERO, about(2, q[0]), (0.0, 0.0, joint.pitch * q[0])


def motion(joint, q, qd) -> Motion:
    """Return p = [e; pitch e]."""
    return Motion((Twist(Z, (0.0, 0.0, joint.pitch)),))


def common(mass: MassMatrix) -> MassMatrix:
    """Return zero mass: no part of the child is fixed in the parent."""
    return MassMatrix()


def neutral(joint):
    """Return zero."""
    return (0.0,)


def random(joint, rng, size=None):
    """Return an angle inside the limits, or within +-pi."""
    return random_in_limits(joint, rng, (math.pi,), size)
