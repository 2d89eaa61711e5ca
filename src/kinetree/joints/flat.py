"""Coordinates of a flat space: angles and lengths, whose time derivatives are the joint velocities."""

from __future__ import annotations


def rate(joint, q, qd) -> tuple:
    """Return qd."""
    return tuple(qd)


def integrate(joint, q, dq) -> tuple:
    """Return q + dq."""
    return tuple(a + b for a, b in zip(q, dq, strict=True))


def difference(joint, qa, qb) -> tuple:
    """Return qb - qa."""
    return tuple(b - a for a, b in zip(qa, qb, strict=True))
