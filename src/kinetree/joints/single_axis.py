"""Kinds whose only direction is the joint's axis: its check, and canonical axes with z along it."""

from __future__ import annotations

from ..algebra.vectors import Matrix
from ._common import axes_with_z, check_axis


def check(joint, where: str) -> None:
    """Refuse a zero axis."""
    check_axis(joint.axis, where)


def frame(joint) -> Matrix:
    """Return axes with z along the joint axis."""
    return axes_with_z(joint.axis)
