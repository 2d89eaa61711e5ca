"""Loop kinds: each is a list of blocks, and each block is a few equations between two frames.

A loop constrains frame b of one body relative to frame a of another. The position r and the rotation R of b in a are
given in axes with z along the loop's axis. The residual of an equation is zero if the loop is closed. Its rate is
n . w + f . v of the relative twist, and [n; f] is the direction of the loop's reaction on b. Equations that are not
holonomic restrict velocities alone. A new kind is a line below; a new block is a function in blocks.py, in rolling.py
for equations of velocities, or in higher_pairs.py for contacts of curves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import joints as joint_kinds
from ..algebra.vectors import Matrix
from ..errors import unknown_name
from ..joints._common import axes_with_z
from . import higher_pairs
from .blocks import Block, Equation, across, along, distance, place, screw, square, swing, turn
from .curves import pieces as starts
from .rolling import ball, blade, disc, rollers

Point = tuple[float, float, float]


@dataclass(frozen=True)
class LoopKind:
    """A kind of loop: its blocks of equations, and its properties for other modules.

    `data` are the fields of a Loop that it uses. `joint` is true for a cut joint, whose checks, axes and solid are
    those of the joint kind of the same name. `balls` are the ends (0 for a, 1 for b) drawn with a ball, and `bar` is
    true if a bar is drawn between the ends. `points`, given in the loop's axes [m], are points that coincide in both
    frames, for loops that such points describe completely. `aligned` is false if frame b may tilt, so that the loop's
    axis is fixed in frame a alone.
    """

    blocks: tuple[Block, ...]
    data: tuple[str, ...] = ("axis",)
    joint: bool = True
    balls: tuple[int, ...] = ()
    bar: bool = False
    points: tuple[Point, ...] = ()
    aligned: bool = True


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
    "rolling_disc": LoopKind((disc,), ("axis", "axis2", "radius"), joint=False, aligned=False),
    "rolling_ball": LoopKind((ball,), ("axis", "radius"), joint=False, aligned=False),
    "rolling_rollers": LoopKind((rollers,), ("axis", "axis2", "radius", "angle"), joint=False, aligned=False),
    "point_on_curve": LoopKind((higher_pairs.point,), ("axis", "curve"), joint=False, balls=(1,), aligned=False),
    "roller_on_curve": LoopKind((higher_pairs.roller,), ("axis", "curve", "radius"), joint=False, aligned=False),
    "rolling_on_curve": LoopKind((higher_pairs.rolling,), ("axis", "curve", "radius"), joint=False, aligned=False),
    "face_on_curve": LoopKind((higher_pairs.face,), ("axis", "axis2", "curve"), joint=False, aligned=False),
    "curve_on_curve": LoopKind((higher_pairs.curves,), ("axis", "curve", "curve_b"), joint=False, aligned=False),
    "knife_edge": LoopKind((blade,), ("axis", "axis2"), joint=False, aligned=False),
}
"""The kinds of loops by name: all joint kinds that constrain a motion, and kinds that exist only for loops."""
_SHIPPED = dict(KINDS)


def kind(name: str, where: str = "") -> LoopKind:
    """Return a kind of loop by name."""
    if name not in KINDS:
        raise unknown_name("loop kind", name, KINDS, where=where)
    return KINDS[name]


def is_shipped(name: str) -> bool:
    """Return whether a name refers to a kind of this package, not to one that was added or replaced from outside."""
    return name in _SHIPPED and KINDS[name] is _SHIPPED[name]


def frame(loop: Any) -> Matrix:
    """Return the axes in which a loop's equations are written: in frame a and, if the loop is closed, in frame b."""
    if kind(loop.kind).joint and "axis2" in kind(loop.kind).data:
        return joint_kinds.kind(loop.kind).frame(loop)
    return axes_with_z(loop.axis)


def equations(loop: Any, r, R, w, v) -> list[Equation]:
    """Return the equations of a loop for the position, rotation and relative twist of frame b in frame a."""
    return [e for block in kind(loop.kind).blocks for e in block(loop, r, R, w, v)]


def labels(loop: object) -> list[tuple[str, str, bool]]:
    """Return (label, unit, holonomic) of each equation of a loop."""
    some = (0.48, -0.64, 0.6)
    tilted = ((0.6, 0.0, 0.8), (0.64, 0.6, -0.48), (-0.48, 0.8, 0.36))  # at which no direction is singular by design
    return [(e.label, e.unit, e.holonomic) for e in equations(loop, some, tilted, some, some)]


__all__ = ["KINDS", "Equation", "LoopKind", "equations", "frame", "is_shipped", "kind", "labels", "starts"]
