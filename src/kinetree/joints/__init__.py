"""Joint kinds, one file each, with the same functions in the same order.

A kind is a module with

    NQ, NV, UNITS                   numbers of coordinates and speeds, units of the speeds' integrals
    check(joint, where)             refuse data that make no joint
    frame(joint)                    the canonical axes in the child's frame (z along the axis, where there is one)
    displacement(joint, q)          (a, E, b): shift a, turn E, then shift b along the turned axes
    motion(joint, q, qd)            P and dP/dt as seen in the child: its twist is P qd
    common(mass)                    the part of the child's mass that the parent could carry as well, at every q
    rate(joint, q, qd)              dq/dt
    neutral(joint)                  the coordinates of no displacement
    integrate(joint, q, dq)         move on by dq, exactly, for a constant twist dq over a unit of time
    difference(joint, qa, qb)       the dq with integrate(qa, dq) = qb
    random(joint, rng, size=None)   random coordinates inside the limits: numbers, or arrays of this shape

Displacement and motion are in canonical axes; all work on any scalar. Kinds whose coordinates are plain angles and
lengths take rate, integrate and difference from flat.py. A new kind is a new file and a line below.
"""

from __future__ import annotations

from types import ModuleType

from ..errors import unknown_name
from . import cylindrical, euler, fixed, free, free_euler, helical, planar, prismatic, revolute, spherical, universal

KINDS: dict[str, ModuleType] = {
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
}


def kind(name: str, where: str = "") -> ModuleType:
    """Return the module of a joint kind by name."""
    if name not in KINDS:
        raise unknown_name("joint kind", name, KINDS, where=where)
    return KINDS[name]


__all__ = ["KINDS", "kind"]
