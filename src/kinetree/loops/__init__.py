"""What closes loops: every kind is a list of blocks, and a block a few equations between two frames.

A loop holds frame b of one body to frame a of another. With the place r and the rotation R of b in a, in axes with z
along the loop's axis, the residual of an equation is zero where the loop is closed, and its rate is n . w + f . v of
the relative twist: [n; f] is the direction in which the loop pulls on b. A new kind is a line below; a new block is a
function in blocks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import joints as joint_kinds
from ..algebra.vectors import Matrix
from ..errors import unknown_name
from ..joints._common import axes_with_z
from .blocks import Block, Equation, across, along, distance, place, screw, square, swing, turn

Point = tuple[float, float, float]


@dataclass(frozen=True)
class LoopKind:
    """A kind of loop: its blocks, and what it looks like from outside.

    `data` are the fields of a Loop that it uses; `joint` tells whether it is a cut joint, whose checks, axes and solid
    are those of the joint kind of the same name. `balls` are the ends (0 for a, 1 for b) with a ball in pictures, `bar`
    tells whether a bar is drawn between the ends. `points` stay together along the axes [m], where such points are all
    that the loop holds.
    """

    blocks: tuple[Block, ...]
    data: tuple[str, ...] = ("axis",)
    joint: bool = True
    balls: tuple[int, ...] = ()
    bar: bool = False
    points: tuple[Point, ...] = ()


HERE, AHEAD = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)

KINDS: dict[str, LoopKind] = {
    "revolute": LoopKind((place, swing), points=(HERE, AHEAD)),  # two points give one equation too many
    "prismatic": LoopKind((across, turn), bar=True),
    "helical": LoopKind((across, screw, swing), ("axis", "pitch"), bar=True),
    "cylindrical": LoopKind((across, swing), bar=True),
    "universal": LoopKind((place, square), ("axis", "axis2")),
    "planar": LoopKind((along, swing)),
    "spherical": LoopKind((place,), (), points=(HERE,)),
    "euler": LoopKind((place,), (), points=(HERE,)),
    "fixed": LoopKind((place, turn), ()),
    "rod": LoopKind((distance,), ("length",), joint=False, balls=(0, 1), bar=True),
    "point_on_line": LoopKind((across,), joint=False, balls=(1,), bar=True),
    "point_on_plane": LoopKind((along,), joint=False, balls=(1,)),
}
"""Each kind of loop: all joint kinds that hold something, and what only loops can be."""
_SHIPPED = dict(KINDS)


def kind(name: str, where: str = "") -> LoopKind:
    """Return a kind of loop by name."""
    if name not in KINDS:
        raise unknown_name("loop kind", name, KINDS, where=where)
    return KINDS[name]


def shipped(name: str) -> bool:
    """Tell whether a name stands for the kind of this package, not for one that was added or put in its place."""
    return name in _SHIPPED and KINDS[name] is _SHIPPED[name]


def frame(loop: Any) -> Matrix:
    """Return the axes in which a loop's equations are written, in frame a and, where it is closed, in frame b."""
    if "axis2" in kind(loop.kind).data:
        return joint_kinds.kind(loop.kind).frame(loop)
    return axes_with_z(loop.axis)


def equations(loop: Any, r, R, w, v) -> list[Equation]:
    """Return the equations of a loop from place, rotation and relative twist of frame b in frame a."""
    return [e for block in kind(loop.kind).blocks for e in block(loop, r, R, w, v)]


def labels(loop: Any) -> list[tuple[str, str]]:
    """Return (label, unit) of each equation of a loop."""
    zero, one = (0.0, 0.0, 1.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    return [(e.label, e.unit) for e in equations(loop, zero, one, zero, zero)]


__all__ = ["KINDS", "Equation", "LoopKind", "equations", "frame", "kind", "labels", "shipped"]
