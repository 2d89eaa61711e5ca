"""Flexible bodies and elastic joints in a mechanism: each becomes several parts.

A body "boom" with a Beam becomes the rigid body "boom", which the joint carries, with the body "boom.elastic" on a
joint "boom.modes" whose coordinates are the modal ones. Their stiffnesses are a joint spring, "boom.stiffness". Each
node is a body without mass, such as "boom.tip", to which children, frames, loops, forces and contacts can be attached.

An elastic joint "elbow" gets a motor before it: the body "elbow.motor" on a joint of the same name, and between the two
joints a transmission, "elbow.spring".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import joints as joint_kinds
from ..algebra.scalars import is_number
from ..algebra.vectors import IDENTITY
from ..errors import ModelError, below, part_at
from ..joints.elastic import elastic_kind, modes_kind
from .checks import JOINT_SPRING, TRANSMISSION
from .mechanism import Mechanism
from .parts import FULL, Body, ForceElement, Joint, Limits, Placement


@dataclass(frozen=True)
class Parts:
    """Bodies, joints and force elements."""

    bodies: tuple[Body, ...] = ()
    joints: tuple[Joint, ...] = ()
    forces: tuple[ForceElement, ...] = ()


def is_modes(joint: Joint | None) -> bool:
    """Return whether a joint carries a deformed body."""
    kind = None if joint is None else elastic_kind(joint.kind)
    return kind is not None and kind.node is None


def modal_entries(mechanism: Mechanism, which: int) -> list[int]:
    """Return the entries of all modal coordinates in q (0) or in qd (1)."""
    slices = (mechanism.q_slices, mechanism.v_slices)[which]
    owned = (own for j, own in zip(mechanism.joints, slices, strict=True) if is_modes(j))
    return [k for own in owned for k in range(own.start, own.stop)]


def with_modal_forces(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism whose only forces are the springs and the damping of its modes."""
    carried = {j.child: j for j in mechanism.joints}
    forces = tuple(f for f in mechanism.forces if f.kind == JOINT_SPRING and is_modes(carried.get(f.body_b)))
    joints = tuple(j if is_modes(j) else replace(j, damping=(), friction=()) for j in mechanism.joints)
    return replace(mechanism, forces=forces, joints=joints)


def with_modes(bodies: Sequence[Body], joints: Sequence[Joint], forces: Sequence[ForceElement]) -> Parts:
    """Return the parts with all flexible bodies as their parts; those that are parts already stay as they are."""
    if all(b.flexible is None for b in bodies):
        return Parts(tuple(bodies), tuple(joints), tuple(forces))
    carried = {j.child: j for j in joints}
    whole = [b for b in bodies if b.flexible is not None and not is_modes(carried.get(b.name))]
    made = {b.name: parts_of(b) for b in whole}
    out_bodies, out_joints = [], []
    for b in bodies:
        out_bodies += [replace(b, flexible=None), *made[b.name].bodies] if b.name in made else [b]
    for j in joints:
        out_joints += [j, *made[j.child].joints] if j.child in made else [j]
    springs = tuple(x for parts in made.values() for x in parts.forces)
    return Parts(tuple(out_bodies), tuple(out_joints), (*forces, *springs))


def in_order(bodies: Sequence[Body], forces: Sequence[ForceElement], given: int) -> tuple[ForceElement, ...]:
    """Return the forces with those that were made, after the given ones, in the order of their bodies."""
    place = {b.name: k for k, b in enumerate(bodies)}
    return (*forces[:given], *sorted(forces[given:], key=lambda f: place[f.body_b]))


def parts_of(body: Body) -> Parts:
    """Return the parts of a flexible body beside its frame at the joint."""
    assert body.flexible is not None, "a rigid body has no further parts"
    modal, name, elastic = body.flexible.modal, body.name, f"{body.name}.elastic"
    if not modal.names:  # a rigid body, which fixed joints connect to its nodes
        fixed = (
            Joint(f"{name}.{node.name}", "fixed", elastic, f"{name}.{node.name}", Placement(node.x))
            for node in modal.nodes
        )
        bodies = (Body(elastic, **modal.rigid), *(Body(f"{name}.{node.name}") for node in modal.nodes))
        return Parts(bodies, (Joint(f"{name}.modes", "fixed", name, elastic), *fixed))
    damping = modal.damping if any(x != 0.0 for x in modal.damping) else ()
    limits = Limits(tuple(-x for x in modal.valid), modal.valid)
    modes = Joint(f"{name}.modes", modes_kind(modal.names), name, elastic, limits=limits, damping=damping)
    coefficients = tuple((f"stiffness_{k + 1}", x) for k, x in enumerate(modal.stiffness))
    spring = ForceElement(f"{name}.stiffness", "joint_spring", name, elastic, coefficients=coefficients)
    nodes = [f"{name}.{node.name}" for node in modal.nodes]
    links = (Joint(x, f"node({node.name})", elastic, x) for x, node in zip(nodes, modal.nodes, strict=True))
    deformed = Body(elastic, **modal.rigid, flexible=body.flexible)
    return Parts((deformed, *map(Body, nodes)), (modes, *links), (spring,))


# --- Elastic joints ---


def with_elastic_joints(bodies: Sequence[Body], joints: Sequence[Joint], forces: Sequence[ForceElement]) -> Parts:
    """Return the parts with a motor and a spring before each elastic joint; those that have them stay as they are."""
    known = {b.name for b in bodies}
    out_bodies, out_joints, springs = [*bodies], [], []
    for j in joints:
        if j.elastic is not None and motor_name(j) not in known:
            j = _moved_armature(j)
            parts = motor_parts(j)
            out_bodies += parts.bodies
            out_joints += parts.joints
            springs += parts.forces
        out_joints.append(j)
    return Parts(tuple(out_bodies), tuple(out_joints), (*forces, *springs))


def motor_name(joint: Joint) -> str:
    """Return the name of the motor of an elastic joint, of its body and of its joint."""
    return f"{joint.name}.motor"


def _moved_armature(joint: Joint) -> Joint:
    """Return an elastic joint whose rotor has the inertia that the joint had as its armature."""
    elastic, where = joint.elastic, below(part_at("joint", joint.name), "elastic")
    assert elastic is not None, "a rigid joint has no rotor"
    own: Any = joint.armature if any(not is_number(x) or x for x in joint.armature) else ()
    if elastic.inertia is not None and own:
        raise ModelError(
            "its rotor has an inertia, and the joint an armature",
            where=where,
            remedy="leave out inertia, so that the armature is that of the rotor, or the armature",
        )
    if elastic.inertia is None and not own:
        raise ModelError(
            "its rotor has no inertia",
            where=where,
            remedy="give inertia [kg m^2], that of the rotor about its axis, or the joint an armature",
        )
    if elastic.inertia is None:
        elastic = replace(elastic, inertia=own[0] / (elastic.ratio * elastic.ratio))
    return replace(joint, armature=(), elastic=elastic)


def motor_parts(joint: Joint) -> Parts:
    """Return the motor before an elastic joint, and the transmission between them."""
    elastic, where = joint.elastic, below(part_at("joint", joint.name), "elastic")
    kind = joint_kinds.kind(joint.kind, where=part_at("joint", joint.name))
    if (kind.NQ, kind.NV) != (1, 1) or elastic is None or elastic.inertia is None:
        raise ModelError(
            f"a {joint.kind} joint has no single coordinate",
            where=where,
            remedy="use revolute, prismatic or helical joints",
        )
    name, ratio, inertia = motor_name(joint), elastic.ratio, elastic.inertia
    losses = {
        key: (x,) if not is_number(x) or x else ()
        for key, x in (("damping", elastic.motor_damping), ("friction", elastic.motor_friction))
    }
    limits = Limits(velocity=joint.limits.velocity, effort=joint.limits.effort)
    motor = replace(joint, name=name, child=name, elastic=None, limits=limits, **losses)
    if elastic.model == FULL:
        if kind.AXIAL != joint_kinds.ROTATION:
            raise ModelError(
                f"the full model is for revolute joints; this one is {joint.kind}",
                where=where,
                remedy='give model="spong"',
            )
        own = elastic.carrier in ("", joint.parent)
        place = elastic.placement or (joint.placement if own else Placement())
        motor = replace(
            motor,
            kind="rotor",
            ratio=ratio,
            parent=elastic.carrier or joint.parent,
            placement=place,
            axis=elastic.axis or joint.axis,
            child_placement=None,
        )
        z = tuple(row[2] for row in kind.frame(motor))
        moments = tuple(0.5 * inertia * (IDENTITY[i][k] + z[i] * z[k]) for i, k in MOMENTS)
        body = Body(name, elastic.mass, inertia=moments)
    else:
        motor = replace(motor, armature=(ratio * ratio * inertia,), child_placement=None)
        body = Body(name)
    numbers = (("stiffness", elastic.stiffness), ("damping", elastic.damping), ("backlash", elastic.backlash))
    given = tuple((key, x) for key, x in numbers if key == "stiffness" or not is_number(x) or x)
    spring = ForceElement(f"{joint.name}.spring", TRANSMISSION, name, joint.child, coefficients=given)
    return Parts((body,), (motor,), (spring,))


MOMENTS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
"""The entries xx, yy, zz, xy, yz, zx of an inertia."""


def without_circuits(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism without its motors and their circuits."""
    gone = {motor.circuit for motor in mechanism.motors}
    return replace(
        mechanism,
        bodies=tuple(b for b in mechanism.bodies if b.name not in gone),
        joints=tuple(j for j in mechanism.joints if j.name not in gone),
        guess=tuple((name, x) for name, x in mechanism.guess if name not in gone),
        motors=(),
    )


def with_rigid_joints(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism whose elastic joints are rigid, without motors and circuits.

    The inertia of a rotor becomes the armature of its joint, and its losses those of the joint. A rotor that is a body
    of the full model is fixed to its carrier.
    """
    mechanism = without_circuits(mechanism)
    by_name = {j.name: j for j in mechanism.joints}
    elastic = {j.name: by_name.get(motor_name(j)) for j in mechanism.joints if j.elastic is not None}
    gone = {m.child for m in elastic.values() if m is not None and m.kind != ROTOR}
    joints = []
    for j in mechanism.joints:
        motor = elastic.get(j.name)
        if j.child in gone:
            continue
        if j.name.removesuffix(".motor") in elastic and j.kind == ROTOR:
            j = Joint(j.name, "fixed", j.parent, j.child, j.placement)
        elif motor is not None and j.elastic is not None:
            ratio, inertia = j.elastic.ratio, j.elastic.inertia
            own = motor.armature if inertia is None or motor.kind != ROTOR else (ratio * ratio * inertia,)
            losses = {key: _sum(getattr(j, key), getattr(motor, key)) for key in ("damping", "friction")}
            j = replace(j, elastic=None, armature=own, **losses)
        joints.append(j)
    motors = {f"{name}.motor" for name in elastic}
    return replace(
        mechanism,
        bodies=tuple(b for b in mechanism.bodies if b.name not in gone),
        joints=tuple(joints),
        forces=tuple(f for f in mechanism.forces if f.kind != TRANSMISSION or f.body_a not in motors),
        guess=tuple((name, x) for name, x in mechanism.guess if name in {j.name for j in joints}),
    )


def _sum(a: tuple, b: tuple) -> tuple:
    return (a[0] + b[0],) if a and b else a or b


ROTOR = "rotor"
"""The kind of the joint of a motor in the full model."""


def without_modes(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism, for files, whose flexible bodies and elastic joints have one part; changed ones keep all."""
    by_name = {b.name: b for b in mechanism.bodies}
    frames, hidden = {}, Parts()
    for joint in mechanism.joints:
        flexible = by_name[joint.child].flexible
        if flexible is None or not is_modes(joint) or joint.parent not in by_name:
            continue
        whole = replace(by_name[joint.parent], flexible=flexible)
        parts = parts_of(whole)
        if _contained(parts, mechanism):
            frames[whole.name] = whole
            hidden = Parts(hidden.bodies + parts.bodies, hidden.joints + parts.joints, hidden.forces + parts.forces)
    for joint in mechanism.joints:
        if joint.elastic is not None and _contained(parts := motor_parts(joint), mechanism):
            hidden = Parts(hidden.bodies + parts.bodies, hidden.joints + parts.joints, hidden.forces + parts.forces)
    return replace(
        mechanism,
        bodies=tuple(frames.get(b.name, b) for b in mechanism.bodies if b not in hidden.bodies),
        joints=tuple(j for j in mechanism.joints if j not in hidden.joints),
        forces=tuple(f for f in mechanism.forces if f not in hidden.forces),
    )


def _contained(parts: Parts, mechanism: Mechanism) -> bool:
    pairs = ((parts.bodies, mechanism.bodies), (parts.joints, mechanism.joints), (parts.forces, mechanism.forces))
    return all(x in whole for some, whole in pairs for x in some)


def check_flexible(mechanism: Mechanism) -> None:
    """Refuse parts of flexible bodies that do not fit together, and parts of others that are attached to no node."""
    deformed = {b.name: b.flexible.modal for b in mechanism.bodies if b.flexible is not None}
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        where, kind = part_at("joint", joint.name), elastic_kind(joint.kind)
        if joint.parent in deformed and (kind is None or kind.node is None):
            raise _off(joint.parent, deformed[joint.parent], where)
        if kind is None:
            continue
        if joint.placement != Placement():
            raise ModelError(
                "a joint within a flexible body has a placement",
                where=where,
                remedy="leave it out: the shape functions place the nodes",
            )
        if kind.node is not None:
            if joint.parent not in deformed:
                raise ModelError(
                    f"its parent {joint.parent!r} is not flexible", where=where, remedy="use a fixed joint"
                )
            deformed[joint.parent].node(kind.node)
        elif body.flexible is None or kind.names != deformed[body.name].names:
            names = "none" if body.flexible is None else ", ".join(deformed[body.name].names)
            raise ModelError(
                f"its child {body.name!r} has other modal coordinates: {names}", where=where, remedy="name these"
            )
    for body in mechanism.bodies:
        if body.flexible is not None and any(getattr(body, k) != x for k, x in deformed[body.name].rigid.items()):
            raise ModelError(
                "its mass, com or inertia is not that of its shape at rest",
                where=part_at("body", body.name),
                remedy="change the beam; mass at the joint belongs to the body before it, payloads to a body at a node",
            )
    _check_places(mechanism, deformed)


def _check_places(mechanism: Mechanism, deformed: dict[str, Any]) -> None:
    named = [(part_at("frame", f.name), f.body) for f in mechanism.frames]
    for sort, parts in (("loop", mechanism.loops), ("force", mechanism.forces)):
        named += [
            (part_at(sort, x.name), body)
            for x in parts
            for body in (x.body_a, x.body_b)
            if getattr(x, "kind", "") != "joint_spring"
        ]
    for contact in mechanism.contacts:
        named += [(part_at("contact", contact.name), body) for body in (contact.body, contact.surface.body)]
    for where, body in named:
        if body in deformed:
            raise _off(body, deformed[body], where)


def _off(body: str, modal: Any, where: Any) -> ModelError:
    whole = body.removesuffix(".elastic")
    nodes = ", ".join(repr(f"{whole}.{node.name}") for node in modal.nodes)
    return ModelError(
        f"it is attached to the deformed body {body!r}, which has no one place",
        where=where,
        remedy=f"attach it to a node, {nodes}, or to the frame at the joint, {whole!r}",
    )
