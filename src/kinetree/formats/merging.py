"""Merging of bodies connected by fixed joints into one body; all names remain available as frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import joints as joint_kinds
from ..algebra.vectors import (
    ZERO,
    ZERO_MATRIX,
    Matrix,
    Vector,
    add,
    from_moments,
    madd,
    scale,
    sub,
    symmetric,
    to_moments,
)
from ..model.parameters import plain_number
from ..model.parts import GROUND, Body, Frame, Joint, Loop, Placement, Shape, compose, place_body
from .report import Report


@dataclass(frozen=True)
class Weld:
    """A body merged into another (or into the ground), and the fixed joint between them, if there was one."""

    body: str
    carrier: str
    joint: str
    mass: float


@dataclass(frozen=True)
class Merged:
    """A tree without fixed joints, and the results of the merge.

    `hidden` has the names of fixed joints without a frame, because another part has their name. `ground_shapes` are
    those of bodies welded to the ground, which has no shapes of its own.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    welds: tuple[Weld, ...]
    hidden: tuple[str, ...]
    ground_shapes: tuple[Shape, ...]

    @property
    def carriers(self) -> dict[str, Frame]:
        """The frame of each body that was merged, in the body that carries it."""
        return {weld.body: frame for weld, frame in zip(self.welds, self.frames, strict=False)}


def merge_fixed(bodies: Sequence[Body], joints: Sequence[Joint]) -> Merged:
    """Return the tree with all fixed joints merged; a body that is the child of no joint is fixed to the ground.

    Bodies and joints must form trees, with plain numbers; they keep their order.
    """
    where = _carriers(bodies, joints)
    by_child = {j.child: j for j in joints}
    members: dict[str, list[tuple[Placement, Body]]] = {}
    for body in sorted(bodies, key=lambda b: where[b.name][0] != b.name):  # the carrying body comes first
        carrier, placement = where[body.name]
        members.setdefault(carrier, []).append((placement, body))
    fixed = [b for b in bodies if where[b.name][0] != b.name]
    welds = [Weld(b.name, where[b.name][0], _joint_name(by_child, b.name), plain_number(b.mass)) for b in fixed]
    frames = [Frame(b.name, *where[b.name]) for b in fixed]
    taken = {GROUND, *(b.name for b in bodies)}
    held = [w for w in welds if w.joint]
    frames += [Frame(w.joint, *where[w.body]) for w in held if w.joint not in taken]
    return Merged(
        bodies=tuple(combine_bodies(members[b.name]) for b in bodies if where[b.name][0] == b.name),
        joints=tuple(_moved(j, *where[j.parent]) for j in joints if joint_kinds.kind(j.kind).NV),
        frames=tuple(frames),
        welds=tuple(welds),
        hidden=tuple(w.joint for w in held if w.joint in taken),
        ground_shapes=_shapes([place_body(p, b) for p, b in members.get(GROUND, [])]),
    )


def move_loops(loops: Iterable[Loop], where: Mapping[str, Frame], report: Report) -> list[Loop]:
    """Return loops between the bodies that carry those of the file; one within a body is reported as dropped."""
    out = []
    for loop in loops:
        ends = {"a": (loop.body_a, loop.placement_a), "b": (loop.body_b, loop.placement_b)}
        for end, (body, placement) in ends.items():
            if body in where:
                ends[end] = where[body].body, compose(where[body].placement, placement)
        (body_a, a), (body_b, b) = ends.values()
        if body_a == body_b:
            report.dropped(f"the loop {loop.name!r}: both its ends are on {body_a!r}")
        else:
            out.append(replace(loop, body_a=body_a, body_b=body_b, placement_a=a, placement_b=b))
    return out


def combine_bodies(members: Sequence[tuple[Placement, Body]]) -> Body:
    """Return the first body with the mass and shapes of all, given with their placements in the frame of the first."""
    masses = [plain_number(b.mass) for _, b in members]
    moved = [place_body(p, b) for p, b in members]
    centers = [b.com for b in moved]
    heavy = [(m, c) for m, c in zip(masses, centers, strict=True) if m != 0]
    mass = sum(masses)
    com = _center(heavy, mass) if heavy else centers[0]
    inertia = ZERO_MATRIX
    for b in moved:
        inertia = madd(inertia, from_moments(b.inertia))
    for m, c in heavy:
        inertia = madd(inertia, _of_point(m, sub(c, com)))
    return replace(members[0][1], mass=mass, com=com, inertia=to_moments(symmetric(inertia)), shapes=_shapes(moved))


def _carriers(bodies: Sequence[Body], joints: Sequence[Joint]) -> dict[str, tuple[str, Placement]]:
    """Return for each body the moving body (or ground) that it is fixed to, and its placement in that body."""
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    carried = {j.child for j in joints}
    where = {GROUND: (GROUND, Placement())}
    where |= {b.name: (GROUND, Placement()) for b in bodies if b.name not in carried}
    stack = list(where)
    while stack:
        parent = stack.pop()
        carrier, placement = where[parent]
        for joint in children.get(parent, ()):
            welded = not joint_kinds.kind(joint.kind).NV
            where[joint.child] = (
                (carrier, compose(placement, joint.placement)) if welded else (joint.child, Placement())
            )
            stack.append(joint.child)
    return where


def _moved(joint: Joint, carrier: str, placement: Placement) -> Joint:
    return replace(joint, parent=carrier, placement=compose(placement, joint.placement))


def _joint_name(by_child: dict[str, Joint], body: str) -> str:
    return by_child[body].name if body in by_child else ""


def _shapes(bodies: Sequence[Body]) -> tuple[Shape, ...]:
    return tuple(s for b in bodies for s in b.shapes)


def _center(heavy: Sequence[tuple[float, Vector]], mass: float) -> Vector:
    if len(heavy) == 1:
        return heavy[0][1]  # bit for bit, without rounding
    moment = ZERO
    for m, c in heavy:
        moment = add(moment, scale(m, c))
    return (moment[0] / mass, moment[1] / mass, moment[2] / mass)


def _of_point(m: float, r: Vector) -> Matrix:
    """Return m (r.r 1 - r r^T), the inertia of a point mass."""
    xx, yy, zz = (m * x * x for x in r)
    xy, yz, zx = (-m * r[i] * r[(i + 1) % 3] for i in range(3))
    return ((yy + zz, xy, zx), (xy, zz + xx, yz), (zx, yz, xx + yy))
