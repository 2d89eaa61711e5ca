"""What most kinds share: coordinates of a flat space, whose rates are the velocities, and data without an axis.

In a flat space, coordinates are angles and lengths. Kinds without an axis or a sequence accept any data, and their
canonical axes are the child's own.
"""

from __future__ import annotations

from ..algebra.vectors import IDENTITY, Matrix


def check(joint, where: str) -> None:
    """Accept any data: the kind uses none."""


def frame(joint) -> Matrix:
    """Return the child's own axes."""
    return IDENTITY


def rate(joint, q, qd) -> tuple:
    """Return qd."""
    return tuple(qd)


def integrate(joint, q, dq) -> tuple:
    """Return q + dq."""
    return tuple(a + b for a, b in zip(q, dq, strict=True))


def difference(joint, qa, qb) -> tuple:
    """Return qb - qa."""
    return tuple(b - a for a, b in zip(qa, qb, strict=True))
