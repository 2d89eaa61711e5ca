"""`assemble`: makes a checked Mechanism in depth order from loose parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import at
from .checks import check, unique_names
from .contacts import Contact, check_all, contact_list
from .joint_frames import at_joints
from .mechanism import Mechanism
from .parameters import Number, Parameter
from .part_fields import check_name
from .parts import Body, Coupling, ForceElement, Frame, Joint, Loop, Shape
from .tidying import guessed, listed, vector
from .topology import depth_order


def assemble(
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
    guess: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
    contacts: Iterable[Contact] = (),
    lenient: bool = False,
) -> Mechanism:
    """Return the mechanism made of these parts, parents first, or raise a ModelError that names the faulty part.

    `guess` has coordinates by joint name, near which the loops close: one number per coordinate of the joint. `lenient`
    accepts impossible inertias, for files from elsewhere; `checks.impossible_inertias` lists them.
    """
    sorts: dict[str, tuple[Any, type]] = {
        "body": (bodies, Body), "joint": (joints, Joint), "frame": (frames, Frame), "loop": (loops, Loop),
        "coupling": (couplings, Coupling), "force": (forces, ForceElement), "parameter": (parameters, Parameter),
        "scenery": (scenery, Shape),
    }  # fmt: skip
    parts = {sort: listed(given, kind, sort) for sort, (given, kind) in sorts.items()}
    check_name(name, "mechanism", least=0)
    loose = Mechanism(
        name=name,
        bodies=parts["body"],
        joints=parts["joint"],
        frames=parts["frame"],
        loops=parts["loop"],
        couplings=parts["coupling"],
        forces=parts["force"],
        gravity=vector(gravity, 3, at("gravity")),
        parameters=parts["parameter"],
        scenery=parts["scenery"],
        source=source,
        description=description,
        guess=guessed(guess),
        contacts=contact_list(contacts),
    )
    unique_names(loose)
    ordered_bodies, ordered_joints = depth_order(loose.bodies, loose.joints)
    mechanism = at_joints(replace(loose, bodies=tuple(ordered_bodies), joints=tuple(ordered_joints)))
    check(mechanism, lenient=lenient)
    check_all(mechanism)
    return mechanism
