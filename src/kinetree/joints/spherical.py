"""Spherical: q = a unit quaternion (x, y, z, w); qd = the angular velocity in the child's frame [rad/s]."""

from __future__ import annotations

import math

import numpy as np

from ..algebra.mass import MassMatrix
from ..algebra.quaternions import conjugate, exponential, logarithm, normalized, product
from ..algebra.rotations import Full, Rotation, from_quaternion
from ..algebra.spatial import Motion
from ..algebra.vectors import ZERO
from ._common import TURN
from .plain import check, frame  # noqa: F401 - part of the kind
from .protocol import Reversal

NQ, NV, UNITS = 4, 3, ("rad", "rad", "rad")
NAMES = (("qx", "qy", "qz", "qw"), ("wx", "wy", "wz"), ("nx", "ny", "nz"))
DATA = ()
QUATERNION, ANGLES = 0, "euler"
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = "ball", "S"
PEERS = {"pinocchio": "JointModelSpherical", "mujoco": "ball"}


def steps(joint):
    """Return None: the coordinates are a quaternion."""
    return None


def displacement(joint, q):
    """Return the rotation of the quaternion, which is first scaled to unit length."""
    return ZERO, Rotation((Full(from_quaternion(normalized(q))),)), ZERO


def motion(joint, q, qd) -> Motion:
    """Return P = [1; 0]."""
    return Motion(TURN)


def common(mass: MassMatrix) -> MassMatrix:
    """Return the mass as a point mass at the joint center, which is also a point of the parent."""
    return MassMatrix(mass.m)


def rate(joint, q, qd):
    """Return q o (w/2, 0)."""
    x, y, z = qd
    return product(q, (0.5 * x, 0.5 * y, 0.5 * z, 0.0))


def neutral(joint):
    """Return the quaternion of the identity rotation."""
    return (0.0, 0.0, 0.0, 1.0)


def integrate(joint, q, dq):
    """Return q o exp(dq), scaled to unit length."""
    return normalized(product(q, exponential(dq)))


def difference(joint, qa, qb):
    """Return the shorter rotation from qa to qb, as a vector in the frame of qa."""
    return logarithm(product(conjugate(qa), qb))


def random(joint, rng, size=None):
    """Return a uniformly distributed rotation."""
    if size is None:
        v = rng.normal(size=4)
        return tuple(float(x) for x in v / math.sqrt(float(v @ v)))
    v = rng.normal(size=(4, *size))
    return tuple(v / np.sqrt((v * v).sum(axis=0)))


def reverse(joint) -> Reversal:
    """Return the same joint with the inverse rotation."""
    return Reversal(mixed=True, convert=conjugate)
