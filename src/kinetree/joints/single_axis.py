"""Kinds whose only direction is the joint's axis: its check, canonical axes with z along it, and its reversal."""

from __future__ import annotations

from ..algebra.vectors import Matrix, neg
from ._common import axes_with_z, check_axis
from .protocol import Reversal


def check(joint, where: str) -> None:
    """Refuse a zero axis."""
    check_axis(joint.axis, where)


def frame(joint) -> Matrix:
    """Return axes with z along the joint axis."""
    return axes_with_z(joint.axis)


def reverse(joint) -> Reversal:
    """Return the joint about or along the opposite axis: its coordinates stay."""
    return Reversal({"axis": neg(joint.axis)})
