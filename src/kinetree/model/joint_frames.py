"""Bodies given in frames of their own, such as those of a CAD file, moved into the frames of their joints.

A joint with a placement in its child is the place of the child's frame: the equations of a body are about the origin
of its joint. All data in the given frame are moved, and the given frame remains as a named frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..algebra.vectors import add, times
from ..errors import below, part_at
from . import checks
from .mechanism import Mechanism
from .part_fields import free_name
from .parts import GROUND, Frame, Placement
from .placing import composed, inverse, placed


def given_frames(mechanism: Mechanism) -> dict[str, tuple[str, Placement]]:
    """Return (name, placement in the joint's frame) of the given frame of each body that is not given at its joint.

    The name is that of the body followed by "_frame", with further underscores if another part has it.
    """
    taken = {GROUND, *(b.name for b in mechanism.bodies), *(f.name for f in mechanism.frames)}
    values, out = mechanism.values(), {}
    for joint in mechanism.joints:
        place = joint.child_placement
        if place is None or place == Placement():
            continue
        checks.placement(place, values, below(part_at("joint", joint.name), "child_placement"))
        out[joint.child] = free_name(f"{joint.child}_frame", taken), inverse(place)
    return out


def at_joints(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with all data of its bodies in the frames of their joints, and no placement in a child."""
    if all(j.child_placement is None for j in mechanism.joints):
        return mechanism
    given = given_frames(mechanism)
    frames = tuple(Frame(name, body, place) for body, (name, place) in given.items())
    where = {body: place for body, (_, place) in given.items()}
    return replace(
        mechanism,
        bodies=tuple(placed(where[b.name], b) if b.name in where else b for b in mechanism.bodies),
        joints=tuple(
            replace(j, placement=_moved(where, j.parent, j.placement), child_placement=None) for j in mechanism.joints
        ),
        frames=tuple(replace(f, placement=_moved(where, f.body, f.placement)) for f in mechanism.frames) + frames,
        loops=tuple(
            replace(
                x,
                placement_a=_moved(where, x.body_a, x.placement_a),
                placement_b=_moved(where, x.body_b, x.placement_b),
            )
            for x in mechanism.loops
        ),
        forces=tuple(
            replace(x, point_a=_point(where, x.body_a, x.point_a), point_b=_point(where, x.body_b, x.point_b))
            for x in mechanism.forces
        ),
        contacts=tuple(_contact(where, x) for x in mechanism.contacts),
    )


def _contact(where: Mapping[str, Placement], contact: Any) -> Any:
    surface = contact.surface
    moved = replace(surface, placement=_moved(where, surface.body, surface.placement))
    return replace(contact, placement=_moved(where, contact.body, contact.placement), surface=moved)


def _moved(where: Mapping[str, Placement], body: str, place: Placement) -> Placement:
    return composed(where[body], place) if body in where else place


def _point(where: Mapping[str, Placement], body: str, point):
    return add(where[body].translation, times(where[body].rotation, point)) if body in where else point
