"""Joint kinds, one file each, with the same functions in the same order.

protocol.py defines the fields and functions of a kind. A new kind is a new file and a line below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import unknown_name
from . import (
    circuit,
    cylindrical,
    euler,
    fixed,
    free,
    free_euler,
    helical,
    planar,
    prismatic,
    revolute,
    rotor,
    spherical,
    universal,
)
from .elastic import Elastic, elastic_kind
from .protocol import ROTATION, TRANSLATION, JointKind, Reversal

KINDS: dict[str, JointKind] = {
    "fixed": fixed,
    "revolute": revolute,
    "prismatic": prismatic,
    "helical": helical,
    "cylindrical": cylindrical,
    "universal": universal,
    "planar": planar,
    "spherical": spherical,
    "euler": euler,
    "free": free,
    "free_euler": free_euler,
    "rotor": rotor,
    "circuit": circuit,
}
_SHIPPED = dict(KINDS)
ELSEWHERE = {
    "hinge": "revolute", "pin": "revolute", "rotary": "revolute", "continuous": "revolute", "slider": "prismatic",
    "slide": "prismatic", "linear": "prismatic", "screw": "helical", "ball": "spherical", "cardan": "universal",
    "hooke": "universal", "floating": "free", "weld": "fixed", "rigid": "fixed",
}  # fmt: skip
"""Names of kinds in URDF, MJCF and CAD programs, for error messages."""


def kind(name: str, where: str = "") -> JointKind:
    """Return a joint kind by name, or one of those within flexible bodies, whose names list their coordinates."""
    if name not in KINDS:
        within = elastic_kind(name) if isinstance(name, str) else None
        if within is not None:
            return within
        raise unknown_name("joint kind", name, KINDS, elsewhere=ELSEWHERE, where=where)
    return KINDS[name]


def is_shipped(name: str) -> bool:
    """Return whether a name refers to a kind of this package, not to one that was added or replaced from outside."""
    if name not in KINDS:
        return elastic_kind(name) is not None
    return name in _SHIPPED and KINDS[name] is _SHIPPED[name]


def draw_coordinates(joints: Iterable[tuple[Any, Any]], rng: np.random.Generator, lead: tuple[int, ...]) -> Numbers:
    """Return random coordinates [*lead, nq] for pairs (joint, kind), drawn joint by joint for all samples at once."""
    drawn = [x for joint, kind in joints for x in kind.random(joint, rng, lead or None)]
    return np.stack(drawn, axis=-1) if drawn else np.zeros((*lead, 0))


__all__ = [
    "KINDS",
    "ROTATION",
    "TRANSLATION",
    "Elastic",
    "JointKind",
    "Reversal",
    "draw_coordinates",
    "is_shipped",
    "kind",
]
