"""What closes loops: every kind is a list of blocks, and a block a few equations between two frames.

A loop holds frame b of one body to frame a of another. With the place r and the rotation R of b in a, in axes with z
along the loop's axis, the residual of an equation is zero where the loop is closed, and its rate is n . w + f . v of
the relative twist: [n; f] is the direction in which the loop pulls on b. A new kind is a line below; a new block is a
function in blocks.py.
"""

from __future__ import annotations

from typing import Any

from .. import joints as joint_kinds
from ..algebra.vectors import Matrix
from ..errors import unknown_name
from ..joints._common import axes_with_z
from .blocks import Block, Equation, across, along, distance, place, screw, square, swing, turn

KINDS: dict[str, tuple[Block, ...]] = {
    "revolute": (place, swing),
    "prismatic": (across, turn),
    "helical": (across, screw, swing),
    "cylindrical": (across, swing),
    "universal": (place, square),
    "planar": (along, swing),
    "spherical": (place,),
    "euler": (place,),
    "fixed": (place, turn),
    "rod": (distance,),
    "point_on_line": (across,),
    "point_on_plane": (along,),
}
"""The blocks of each kind of loop: all joint kinds that hold something, and what only loops can be."""


def kind(name: str, where: str = "") -> tuple[Block, ...]:
    """Return the blocks of a kind of loop by name."""
    if name not in KINDS:
        raise unknown_name("loop kind", name, KINDS, where=where)
    return KINDS[name]


def frame(loop: Any) -> Matrix:
    """Return the axes in which a loop's equations are written, in frame a and, where it is closed, in frame b."""
    if loop.kind == "universal":
        return joint_kinds.kind("universal").frame(loop)
    return axes_with_z(loop.axis)


def equations(loop: Any, r, R, w, v) -> list[Equation]:
    """Return the equations of a loop from place, rotation and relative twist of frame b in frame a."""
    return [e for block in kind(loop.kind) for e in block(loop, r, R, w, v)]


def labels(loop: Any) -> list[tuple[str, str]]:
    """Return (label, unit) of each equation of a loop."""
    zero, one = (0.0, 0.0, 1.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    return [(e.label, e.unit) for e in equations(loop, zero, one, zero, zero)]


__all__ = ["KINDS", "Equation", "equations", "frame", "kind", "labels"]
