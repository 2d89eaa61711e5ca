"""Kinds without an axis or a sequence: any data are accepted, and the canonical axes are the child's own."""

from __future__ import annotations

from ..algebra.vectors import IDENTITY, Matrix


def check(joint, where: str) -> None:
    """Accept any data: the kind uses none."""


def frame(joint) -> Matrix:
    """Return the child's own axes."""
    return IDENTITY
