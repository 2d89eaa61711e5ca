"""Trees of ropes, and nets: ropes that branch, and ropes tied to each other by loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._support.checks import positive, vector
from ..algebra.vectors import Matrix
from ..model import GROUND, Body, ForceElement, Frame, Joint, Loop, Mechanism, Placement
from ..model.topology import depth_order
from .chains import UPRIGHT, Link, check_count, rope_link, rope_parts

SIDEWAYS: Matrix = ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
"""Rotation from the axes of a hanging rope to axes whose x is the ground's."""


class _Ropes:
    """Bodies, joints and springs of ropes, collected one rope at a time."""

    def __init__(self, link: Link, joint: str, bending: float, damping: float) -> None:
        self.link, self._same = link, {"joint": joint, "bending": bending, "damping": damping}
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.springs: list[ForceElement] = []

    @property
    def end(self) -> Placement:
        """The end of a link."""
        return Placement((self.link.length, 0.0, 0.0))

    def add(self, n: int, prefix: str, parent: str, start: Placement) -> None:
        """Add a rope of n links that begins at a placement on a parent."""
        bodies, joints, springs = rope_parts(self.link, n, parent=parent, start=start, prefix=prefix, **self._same)
        self.bodies += bodies
        self.joints += joints
        self.springs += springs

    def mechanism(self, name: str, frames: list[Frame], loops: Sequence[Loop], gravity: Sequence[float]) -> Mechanism:
        """Return the mechanism of all ropes, each followed by those that hang from it."""
        bodies, joints = depth_order(self.bodies, self.joints)
        return Mechanism(
            name,
            tuple(bodies),
            tuple(joints),
            tuple(frames),
            tuple(loops),
            forces=tuple(self.springs),
            gravity=vector(gravity, "the gravity"),
        )


def rope_tree_mechanism(
    length: float,
    n: int,
    *,
    levels: int,
    branches: int = 2,
    angle: float = 0.6,
    mass_per_metre: float,
    radius: float,
    bending: float = 0.0,
    damping: float = 0.0,
    joint: str = "universal",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "rope_tree",
) -> Mechanism:
    """Return a rope that hangs from the ground's origin, with ropes at its end, ropes at their ends, and so on.

    Args:
        length: of each rope [m].
        n: the links of each rope.
        levels: how often ropes branch; 0 is a single rope. There are as many ropes as the sum of
            branches^k, k = 0 to levels.
        branches: ropes at the end of each.
        angle: between neighbors at q = 0, in the x-z plane [rad].
        mass_per_metre: [kg/m].
        radius: [m].
        bending: the bending stiffness EI [N m^2]; ropes are hinged where they branch.
        damping: [N m^2 s], as for a rope.
        joint: as for a rope.
        gravity: [m/s^2].
        name: of the mechanism.

    Rope k, counted level by level from 1, has the bodies "rope{k}_link1", ...; frame "tip{k}" is its end.
    """
    count, wide = check_count(n, "n", "links"), check_count(branches, "branches", "ropes")
    depth = check_count(levels, "levels", "levels", least=0)
    link = rope_link(positive(length, "the length"), count, mass_per_metre, radius)
    ropes = _Ropes(link, joint, bending, damping)
    ropes.add(count, "rope1_", GROUND, Placement(rotation=UPRIGHT))
    above, made = [1], 1
    for _ in range(depth):
        below = []
        for k in above:
            for b in range(wide):
                made += 1
                turned = Placement(ropes.end.translation, _about_y(angle * (b - (wide - 1) / 2)))
                ropes.add(count, f"rope{made}_", f"rope{k}_link{count}", turned)
                below.append(made)
        above = below
    tips = [Frame(f"tip{k}", f"rope{k}_link{count}", ropes.end) for k in range(1, made + 1)]
    return ropes.mechanism(name, tips, (), gravity)


def net_mechanism(
    rows: int,
    columns: int,
    *,
    mesh: float,
    n: int = 1,
    mass_per_metre: float,
    radius: float,
    bending: float = 0.0,
    damping: float = 0.0,
    joint: str = "universal",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "net",
) -> Mechanism:
    """Return a net that hangs in the x-z plane: vertical ropes from the ground, tied by horizontal ropes.

    Args:
        rows: of knots, the first one mesh below the ground.
        columns: of knots: ropes that hang at x = 0, mesh, 2 mesh, ...
        mesh: the side of a mesh [m].
        n: the links of a side.
        mass_per_metre: [kg/m].
        radius: [m].
        bending: the bending stiffness EI [N m^2]; the horizontal ropes are hinged at the knots.
        damping: [N m^2 s], as for a rope.
        joint: as for a rope.
        gravity: [m/s^2].
        name: of the mechanism.

    Bodies are "down{c}_link1", ... and "across{r}_{c}_link1", ...; the horizontal rope begins at column c, and the loop
    "knot{r}_{c + 1}" ties its end to the next one. Frame "knot{r}_{c}" is a knot. All loops are closed at q = 0.
    """
    high, wide = check_count(rows, "rows", "rows"), check_count(columns, "columns", "columns")
    count = check_count(n, "n", "links")
    side = positive(mesh, "the mesh")
    link = rope_link(side, count, mass_per_metre, radius)
    ropes = _Ropes(link, joint, bending, damping)
    for c in range(1, wide + 1):
        ropes.add(high * count, f"down{c}_", GROUND, Placement(((c - 1) * side, 0.0, 0.0), UPRIGHT))
    knots, loops = [], []
    for r in range(1, high + 1):
        for c in range(1, wide + 1):
            knot = f"down{c}_link{r * count}"
            knots.append(Frame(f"knot{r}_{c}", knot, ropes.end))
            if c < wide:
                ropes.add(count, f"across{r}_{c}_", knot, Placement(ropes.end.translation, SIDEWAYS))
                last, there = f"across{r}_{c}_link{count}", f"down{c + 1}_link{r * count}"
                loops.append(Loop(f"knot{r}_{c + 1}", "spherical", last, there, ropes.end, ropes.end))
    return ropes.mechanism(name, knots, loops, gravity)


def _about_y(angle: float) -> Matrix:
    c, s = math.cos(angle), math.sin(angle)
    return ((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c))
