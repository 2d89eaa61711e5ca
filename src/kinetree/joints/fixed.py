"""Fixed: no motion; kept in the tree so that its reaction can be computed."""

from __future__ import annotations

from ..algebra.mass import MassMatrix
from ..algebra.rotations import ONE
from ..algebra.spatial import Motion
from ..algebra.vectors import ZERO
from .plain import check, difference, frame, integrate, rate  # noqa: F401 - part of the kind
from .protocol import Reversal

NQ, NV, UNITS = 0, 0, ()
NAMES = ((),) * 3
DATA = ()
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = None, "fixed"
PEERS = {}


def steps(joint):
    """Return no steps: nothing moves."""
    return ()


def displacement(joint, q):
    """Return no displacement."""
    return ZERO, ONE, ZERO


def motion(joint, q, qd) -> Motion:
    """Return a motion without columns."""
    return Motion()


def common(mass: MassMatrix) -> MassMatrix:
    """Return all of the child's mass: the child is fixed in the parent."""
    return mass


def neutral(joint):
    """Return no coordinates."""
    return ()


def random(joint, rng, size=None):
    """Return no coordinates."""
    return ()


def reverse(joint) -> Reversal:
    """Return the same joint."""
    return Reversal()
