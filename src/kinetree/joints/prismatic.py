"""Prismatic: q is the displacement of the child along the axis [m]."""

from __future__ import annotations

from ..algebra.mass import MassMatrix
from ..algebra.rotations import ONE
from ..algebra.spatial import Motion
from ..algebra.vectors import ZERO, transpose
from ._common import SLIDE, random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import TRANSLATION
from .single_axis import check, frame, reverse  # noqa: F401 - part of the kind

NQ, NV, UNITS = 1, 1, ("m",)
NAMES = (("",),) * 3
DATA = ("axis",)
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = TRANSLATION, True
FLOATS, ADVANCES = (), True
SOLID, SYMBOL = "box", "P"
PEERS = {}


def steps(joint):
    """Return the translation along the axis."""
    return ((TRANSLATION, transpose(frame(joint))[2]),)


def displacement(joint, q):
    """Return the translation along z by q."""
    return ZERO, ONE, (0.0, 0.0, q[0])


def motion(joint, q, qd) -> Motion:
    """Return p = [0; e].                                                                    [Saha2013] (36b)"""
    return Motion((SLIDE[2],))


def common(mass: MassMatrix) -> MassMatrix:
    """Return the second moment of mass: the child rotates with the parent, so that either may have it."""
    return MassMatrix(0.0, ZERO, mass.J)


def neutral(joint):
    """Return zero."""
    return (0.0,)


def random(joint, rng, size=None):
    """Return a displacement inside the limits, or within +-1 m."""
    return random_in_limits(joint, rng, (1.0,), size)
