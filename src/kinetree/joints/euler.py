"""Euler: q = three angles about the moving axes of a sequence such as "zyx" or "zxz" [rad]; qd are their rates.

The Euler-angle joints of [Saha2013]: three revolute joints whose axes meet, with massless bodies in between. At the
singular middle angle of the sequence the three axes lie in a plane; use a spherical joint to pass through it.
"""

from __future__ import annotations

import math

import numpy as np

from ..algebra.mass import MassMatrix
from ..algebra.rotations import ONE, about
from ..algebra.spatial import Motion, Twist
from ..algebra.vectors import IDENTITY, ZERO, cross, scale
from ..errors import ModelError
from ._common import random_in_limits
from .plain import difference, integrate, rate  # noqa: F401 - part of the kind
from .protocol import ROTATION, Reversal

NQ, NV, UNITS = 3, 3, ("rad", "rad", "rad")
NAMES = (("angle1", "angle2", "angle3"),) * 3
DATA = ("sequence",)
QUATERNION, ANGLES = None, None
AXIAL, PERIODIC = None, True
FLOATS, ADVANCES = (), False
SOLID, SYMBOL = "ball", "euler"
PEERS = {}

SEQUENCES = tuple(a + b + c for a in "xyz" for b in "xyz" for c in "xyz" if a != b != c)
"""The twelve sequences of axes in which no axis follows itself."""


def check(joint, where: str) -> None:
    """Refuse a sequence that is not one of the twelve."""
    if joint.sequence not in SEQUENCES:
        raise ModelError(
            f"{joint.sequence[:20]!r} is not an Euler sequence",
            where=where,
            remedy="use one of " + ", ".join(SEQUENCES),
        )


def frame(joint):
    """Return the child's own axes, which the letters of the sequence refer to."""
    return IDENTITY


def steps(joint):
    """Return the rotations of the sequence."""
    return tuple((ROTATION, IDENTITY["xyz".index(letter)]) for letter in joint.sequence)


def displacement(joint, q):
    """Return the three rotations of the sequence."""
    return ZERO, rotation(joint.sequence, q), ZERO


def rotation(sequence: str, angles):
    """Return R_a(q1) R_b(q2) R_c(q3)."""
    r = ONE
    for letter, angle in zip(sequence, angles, strict=True):
        r = r @ about("xyz".index(letter), angle)
    return r


def motion(joint, q, qd) -> Motion:
    """Return P, each axis in the child's frame after the rotations that follow it, and its rate."""
    columns, rates = angular_columns(joint.sequence, q, qd)
    return Motion(tuple(Twist(e) for e in columns), tuple(Twist(d) for d in rates))


def angular_columns(sequence: str, q, qd):
    """Return the axes in the child's frame, and their rates there.

    Axis e_k is R^T e_k in the child's frame, with R = R_{k+1} ... R_3 the rotations that follow it. It rotates there
    with minus their angular velocity w: d(R^T e) = (R^T e) x w.
    """
    axes = [IDENTITY["xyz".index(letter)] for letter in sequence]
    columns, rates, w = [], [], ZERO
    for k in (2, 1, 0):
        seen = axes[k]
        for j in range(k + 1, 3):
            seen = about("xyz".index(sequence[j]), q[j]).T @ seen
        columns.append(seen)
        rates.append(cross(seen, w))
        w = tuple(a + b for a, b in zip(w, scale(qd[k], seen), strict=True))
    return columns[::-1], rates[::-1]


def common(mass: MassMatrix) -> MassMatrix:
    """Return the mass as a point mass at the joint center, which is also a point of the parent."""
    return MassMatrix(mass.m)


def neutral(joint):
    """Return zeros."""
    return (0.0, 0.0, 0.0)


def random(joint, rng, size=None):
    """Return angles inside the limits; without limits, the middle one keeps away from the singular angle."""
    middle_sine = joint.sequence[0] == joint.sequence[2]  # proper Euler angles are singular at 0
    a, b, c = random_in_limits(joint, rng, (math.pi, 1.2, math.pi), size)
    if middle_sine and not joint.limits.lower and not joint.limits.upper:
        b = b + (math.copysign(0.3, b) if size is None else np.copysign(0.3, b))
    return a, b, c


def reverse(joint) -> Reversal:
    """Return the opposite sequence with opposite angles: Rc(-q3) Rb(-q2) Ra(-q1)."""
    return Reversal({"sequence": joint.sequence[::-1]}, sign=-1.0, back=True)
