"""Joints of several axes split into revolute joints with massless bodies: same motion, same coordinates."""

from __future__ import annotations

from dataclasses import replace

from .. import joints as joint_kinds
from ..algebra.vectors import Vector
from .mechanism import Mechanism, kept_with_mechanism, resolved
from .part_fields import free_name
from .parts import Body, Joint, Placement


@kept_with_mechanism
def split_joints(mechanism: Mechanism) -> tuple[Mechanism, tuple[int | None, ...]]:
    """Return the mechanism with joints of several rotations split, and each body's old index, None for new bodies.

    Coordinates, velocities and torques keep their order. Successive revolute joints require less arithmetic than one
    joint whose motion matrix depends on q. Numbers must not depend on free parameters.
    """
    values = mechanism.values()
    bodies: list[Body] = []
    joints: list[Joint] = []
    origin: list[int | None] = []
    taken, named = {b.name for b in mechanism.bodies}, {j.name for j in mechanism.joints}
    given, guess = dict(mechanism.guess), dict[str, tuple[float, ...]]()
    for index, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        axes = _axes(resolved(joint, values))
        above, place = joint.parent, joint.placement
        for k, axis in enumerate(axes[:-1]):
            name = free_name(f"{body.name}_{k + 1}", taken)
            bodies.append(Body(name))
            origin.append(None)
            joints.append(_part(joint, k, above, name, place, axis, named))
            above, place = name, Placement()
        bodies.append(body)
        origin.append(index)
        last = len(axes) - 1
        joints.append(_part(joint, last, above, body.name, place, axes[-1], named) if axes else joint)
        if joint.name in given:
            parts = joints[-len(axes) :] if axes else [joint]
            numbers = given[joint.name]
            guess |= {p.name: numbers[k : k + 1] if axes else numbers for k, p in enumerate(parts)}
    return replace(mechanism, bodies=tuple(bodies), joints=tuple(joints), guess=tuple(guess.items())), tuple(origin)


def _axes(joint: Joint) -> list[Vector]:
    """Return the axes of a joint that consists of several successive rotations; none for every other joint."""
    steps = joint_kinds.kind(joint.kind).steps(joint) or ()
    turns = len(steps) > 1 and all(what == joint_kinds.ROTATION for what, _ in steps)
    return [axis for _, axis in steps] if turns else []


def _part(joint: Joint, k: int, parent: str, child: str, place: Placement, axis: Vector, named: set[str]) -> Joint:
    name = free_name(f"{joint.name}_{k + 1}", named)  # unique, since couplings refer to joints by name
    return Joint(name, "revolute", parent, child, place, axis, armature=joint.armature[k : k + 1])
