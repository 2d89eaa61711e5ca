"""Kinds of force elements: the names of their coefficients, and the checks of an element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import joints as joint_kinds
from ..errors import InputError, ModelError, part_at, unknown_name
from .mechanism import Mechanism
from .parts import ForceElement, Joint

JOINT_SPRING = "joint_spring"
COEFFICIENTS = {
    "spring_damper": ("stiffness", "damping", "free_length", "preload"),
    "linear_actuator": ("force",),
}
"""Coefficients of forces between two points, by kind; those of a joint spring depend on its joint."""
KINDS = (*COEFFICIENTS, JOINT_SPRING)


def check_kind(kind: str, where: str) -> str:
    """Return the kind of a force element if it is known, or raise UnknownNameError."""
    if kind not in KINDS:
        raise unknown_name("kind of force", kind, KINDS, where=where)
    return kind


def forces(mechanism: Mechanism) -> None:
    """Refuse force elements of an unknown kind, with an unknown coefficient, or at a missing joint."""
    carried = {j.child: j for j in mechanism.joints} if mechanism.forces else {}
    for element in mechanism.forces:
        coefficient_names(element, carried)


def coefficient_names(element: ForceElement, carried: Mapping[str, Joint]) -> tuple[str, ...]:
    """Return the names that an element's coefficients may have, or refuse an element that has others.

    `carried` has the joints by the name of their child body.
    """
    where = part_at("force", element.name)
    if element.kind == JOINT_SPRING:
        count = joint_kinds.kind(spring_joint(element, carried).kind).NV
        names = tuple(f"{what}_{k + 1}" for what in ("stiffness", "rest") for k in range(count))
    else:
        names = COEFFICIENTS[check_kind(element.kind, where)]
    for name, _ in element.coefficients:
        if name not in names:
            raise unknown_name("coefficient", name, names, where=where)
    return names


def spring_joint(element: ForceElement, carried: Mapping[str, Joint]) -> Joint:
    """Return the joint of a joint spring, whose parent is body_a and whose child is body_b."""
    joint = carried.get(element.body_b)
    if joint is None or joint.parent != element.body_a:
        raise ModelError(
            f"no joint has the parent {element.body_a!r} and the child {element.body_b!r}",
            where=part_at("force", element.name),
            remedy="name a body and one of its children",
        )
    return joint


def require_flat(
    joint: Any,
    who: str,
    remedy: str = "use joints with as many of both, such as euler or free_euler",
    *,
    key: str = "joint",
) -> None:
    """Raise an InputError for a joint whose velocities are not the rates of its coordinates."""
    kind = joint_kinds.kind(joint.kind)
    if kind.NQ != kind.NV:
        raise InputError(
            f"{who} cannot act on the joint {joint.name!r}: a {joint.kind} joint has {kind.NQ} coordinates for "
            f"{kind.NV} velocities; {remedy}",
            path=(key,),
        )
