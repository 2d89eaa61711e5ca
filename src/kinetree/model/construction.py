"""`build_mechanism`: makes a checked Mechanism in depth order from loose parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..algebra.vectors import add, times
from ..errors import at, below, part_at
from . import checks
from .checks import check, unique_names
from .contacts import Contact, check_all, contact_list
from .drives import Actuator, Keyframe, Motor, check_drives, listed_drives, with_circuits
from .flexible import check_flexible, in_order, with_elastic_joints, with_modes
from .mechanism import Mechanism
from .parameters import Number, Parameter
from .part_fields import check_name, free_name
from .parts import (
    GROUND,
    Body,
    Coupling,
    ForceElement,
    Frame,
    Joint,
    Loop,
    Placement,
    Shape,
    compose,
    inverse,
    place_body,
)
from .tidying import tidy_guess, tidy_list, vector
from .topology import depth_order

# --- Bodies given in frames of their own, such as those of a CAD file, moved into the frames of their joints ---
#
# A joint with a placement in its child is the place of the child's frame: the equations of a body are about the origin
# of its joint. All data in the given frame are moved, and the given frame remains as a named frame.


def given_frames(mechanism: Mechanism) -> dict[str, tuple[str, Placement]]:
    """Return (name, placement in the joint's frame) of the given frames of children with a `child_placement`.

    The name is that of the body followed by "_frame", with further underscores if another part has it. A body that is
    given at its joint has one, too: with pairs, the chosen tree decides where joints are, but not which frames exist.
    """
    taken = {GROUND, *(b.name for b in mechanism.bodies), *(f.name for f in mechanism.frames)}
    values, out = mechanism.values(), {}
    for joint in mechanism.joints:
        place = joint.child_placement
        if place is None:
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
        bodies=tuple(place_body(where[b.name], b) if b.name in where else b for b in mechanism.bodies),
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


def _contact(where: Mapping[str, Placement], contact: Contact) -> Contact:
    surface = contact.surface
    moved = replace(surface, placement=_moved(where, surface.body, surface.placement))
    return replace(contact, placement=_moved(where, contact.body, contact.placement), surface=moved)


def _moved(where: Mapping[str, Placement], body: str, place: Placement) -> Placement:
    return compose(where[body], place) if body in where else place


def _point(where: Mapping[str, Placement], body: str, point):
    return add(where[body].translation, times(where[body].rotation, point)) if body in where else point


def build_mechanism(
    name: str,
    bodies: Iterable[Body],
    joints: Iterable[Joint],
    *,
    frames: Iterable[Frame] = (),
    loops: Iterable[Loop] = (),
    couplings: Iterable[Coupling] = (),
    forces: Iterable[ForceElement] = (),
    gravity: tuple[Number, Number, Number] = (0.0, 0.0, -9.81),
    parameters: Iterable[Parameter] = (),
    scenery: Iterable[Shape] = (),
    source: str = "",
    description: str = "",
    guess: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    contacts: Iterable[Contact] = (),
    actuators: Iterable[Actuator] = (),
    keyframes: Iterable[Keyframe] = (),
    motors: Iterable[Motor] = (),
    lenient: bool = False,
) -> Mechanism:
    """Return the mechanism made of these parts, parents first, or raise a ModelError that names the faulty part.

    `guess` has coordinates by joint name, near which the loops close: one number per coordinate of the joint. `lenient`
    accepts impossible inertias, for files from elsewhere; `checks.impossible_inertias` lists them.
    """
    sorts: dict[str, tuple[object, type]] = {
        "body": (bodies, Body),
        "joint": (joints, Joint),
        "frame": (frames, Frame),
        "loop": (loops, Loop),
        "coupling": (couplings, Coupling),
        "force": (forces, ForceElement),
        "parameter": (parameters, Parameter),
        "scenery": (scenery, Shape),
    }
    parts = {sort: tidy_list(given, kind, sort) for sort, (given, kind) in sorts.items()}
    check_name(name, "mechanism", least=0)
    made = with_modes(parts["body"], parts["joint"], parts["force"])
    made = with_elastic_joints(made.bodies, made.joints, made.forces)
    driving = listed_drives(motors, Motor, "motor")
    all_bodies, all_joints = with_circuits(made.bodies, made.joints, driving)
    loose = Mechanism(
        name=name,
        bodies=tuple(all_bodies),
        joints=tuple(all_joints),
        frames=parts["frame"],
        loops=parts["loop"],
        couplings=parts["coupling"],
        forces=made.forces,
        gravity=vector(gravity, 3, at("gravity")),
        parameters=parts["parameter"],
        scenery=parts["scenery"],
        source=source,
        description=description,
        guess=tidy_guess(guess),
        contacts=contact_list(contacts),
        actuators=listed_drives(actuators, Actuator, "actuator"),
        keyframes=listed_drives(keyframes, Keyframe, "keyframe"),
        motors=driving,
    )
    unique_names(loose)
    ordered_bodies, ordered_joints = depth_order(loose.bodies, loose.joints)
    forces = in_order(ordered_bodies, loose.forces, len(parts["force"]))
    ordered = replace(loose, bodies=tuple(ordered_bodies), joints=tuple(ordered_joints), forces=forces)
    mechanism = at_joints(ordered)
    check(mechanism, lenient=lenient)
    check_flexible(mechanism)
    check_all(mechanism)
    check_drives(mechanism)
    return mechanism
