"""Circuit: q is the charge that has passed [C], and qd the current [A]; the child does not move.

The inductance [H] is the armature of the joint, the resistance [Ohm] its damping, and its torque is a voltage [V]:
L di/dt + R i = u is the equation of motion of an inertia with a damper.
"""

from __future__ import annotations

from ..algebra.mass import MassMatrix
from ..algebra.rotations import ONE
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import ZERO
from ._common import random_in_limits
from .plain import check, difference, frame, integrate, rate  # noqa: F401 - part of the kind
from .protocol import Reversal

NQ, NV, UNITS = 1, 1, ("C",)
NAMES = (("",),) * 3
DATA = ()
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, False
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = None, "circuit"
PEERS = {}


def steps(joint):
    """Return None: the coordinate is no displacement."""
    return None


def displacement(joint, q):
    """Return no displacement."""
    return ZERO, ONE, ZERO


def motion(joint, q, qd) -> Motion:
    """Return p = 0: a current moves no body."""
    return Motion((Twist(),))


def common(mass: MassMatrix) -> MassMatrix:
    """Return the whole mass: the child does not move in its parent."""
    return mass


def neutral(joint):
    """Return zero charge."""
    return (0.0,)


def random(joint, rng, size=None):
    """Return a charge inside the limits, or within +-1 C."""
    return random_in_limits(joint, rng, (1.0,), size)


def reverse(joint) -> Reversal:
    """Return the same joint."""
    return Reversal()
