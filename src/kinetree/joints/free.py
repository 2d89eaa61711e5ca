"""Free: q = (x, y, z, qx, qy, qz, qw), position in the parent [m] and unit quaternion; qd = [omega; v] in the child."""

from __future__ import annotations

from ..algebra.mass import MassMatrix
from ..algebra.quaternions import conjugate, exponential, logarithm, normalized, product, sweep, unsweep
from ..algebra.rotations import Full, Rotation, from_quaternion
from ..algebra.spatial import Motion
from ..algebra.vectors import ZERO, add, neg, sub, times, transpose
from . import spherical
from ._common import SLIDE, TURN
from .plain import check, frame  # noqa: F401 - part of the kind
from .protocol import Reversal

NQ, NV, UNITS = 7, 6, ("rad", "rad", "rad", "m", "m", "m")
NAMES = (
    ("x", "y", "z", "qx", "qy", "qz", "qw"),
    ("wx", "wy", "wz", "vx", "vy", "vz"),
    ("nx", "ny", "nz", "fx", "fy", "fz"),
)
DATA = ()
QUATERNION, ANGLES = 3, "free_euler"
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = ((0, 3), (1, 4), (2, 5)), False
SOLID, SYMBOL = None, "free"
PEERS = {"pinocchio": "JointModelFreeFlyer", "mujoco": "free"}


def steps(joint):
    """Return None: the quaternion is not a sequence of single rotations."""
    return None


def displacement(joint, q):
    """Return the translation by (x, y, z), then the rotation of the quaternion."""
    return tuple(q[:3]), Rotation((Full(from_quaternion(normalized(q[3:]))),)), ZERO


def motion(joint, q, qd) -> Motion:
    """Return P = 1."""
    return Motion((*TURN, *SLIDE))


def common(mass: MassMatrix) -> MassMatrix:
    """Return zero mass: no part of the child is fixed in the parent."""
    return MassMatrix()


def rate(joint, q, qd):
    """Return the velocity in the parent's axes and the rate of the quaternion."""
    R = from_quaternion(normalized(q[3:]))
    return (*times(R, tuple(qd[3:])), *spherical.rate(joint, q[3:], qd[:3]))


def neutral(joint):
    """Return zero translation and the identity rotation."""
    return (0.0, 0.0, 0.0, *spherical.neutral(joint))


def integrate(joint, q, dq):
    """Return q moved by the twist [omega; v] = dq for a unit of time: the exponential map of rigid motions."""
    R = from_quaternion(normalized(q[3:]))
    position = add(tuple(q[:3]), times(R, sweep(dq[:3], tuple(dq[3:]))))
    return (*position, *normalized(product(q[3:], exponential(dq[:3]))))


def difference(joint, qa, qb):
    """Return the constant twist that leads from qa to qb in a unit of time."""
    turn = logarithm(product(conjugate(qa[3:]), qb[3:]))
    R = from_quaternion(normalized(qa[3:]))
    shift = times(transpose(R), sub(tuple(qb[:3]), tuple(qa[:3])))
    return (*turn, *unsweep(turn, shift))


def random(joint, rng, size=None):
    """Return a position within +-1 m per axis and a uniformly distributed rotation."""
    position = (rng.uniform(-1.0, 1.0, size) for _ in range(3))
    return (*position, *spherical.random(joint, rng, size))


def reverse(joint) -> Reversal:
    """Return the same joint: the parent's origin in the child's axes, and the inverse rotation."""

    def convert(q):
        back = transpose(from_quaternion(normalized(q[3:])))
        return (*neg(times(back, tuple(q[:3]))), *conjugate(q[3:]))

    return Reversal(mixed=True, convert=convert)
