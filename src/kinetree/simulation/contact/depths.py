"""Starts with contacts under their surfaces."""

from __future__ import annotations

from collections.abc import Sequence

from ...algebra.arrays import Numbers
from ...errors import InputError


def refuse_depth(names: Sequence[str], gaps: Numbers, allowed: float, remedy: str, start: str = "q0") -> None:
    """Raise InputError if a gap [m] of a start is below zero by more than is allowed; it names the deepest contact."""
    deep = [i for i, gap in enumerate(gaps) if gap < -allowed]
    if not deep:
        return
    worst = min(deep, key=lambda i: gaps[i])
    others = f", and {len(deep) - 1} others" if len(deep) > 1 else ""
    raise InputError(f"{start} puts contact {names[worst]!r} {-gaps[worst]:.6g} m under its surface{others}; {remedy}")
