"""Kinds of force elements: the names of their coefficients, and what makes an element possible."""

from __future__ import annotations

from collections.abc import Mapping

from .. import joints as joint_kinds
from ..errors import ModelError, unknown_name
from .mechanism import Mechanism
from .parts import ForceElement, Joint

JOINT_SPRING = "joint_spring"
COEFFICIENTS = {
    "spring_damper": ("stiffness", "damping", "free_length", "preload"),
    "linear_actuator": ("force",),
}
"""Those of forces between two points; those of a joint spring follow from its joint."""


def forces(mechanism: Mechanism) -> None:
    """Refuse force elements of an unknown kind, with an unknown coefficient, or in a joint that is not there."""
    carried = {j.child: j for j in mechanism.joints} if mechanism.forces else {}
    for element in mechanism.forces:
        coefficient_names(element, carried)


def coefficient_names(element: ForceElement, carried: Mapping[str, Joint]) -> tuple[str, ...]:
    """Return the names that an element's coefficients may have, or refuse an element that has others.

    The joints are given by the bodies that they carry.
    """
    where = f"force {element.name!r}"
    if element.kind == JOINT_SPRING:
        count = joint_kinds.kind(spring_joint(element, carried).kind).NV
        names = tuple(f"{what}_{k + 1}" for what in ("stiffness", "rest") for k in range(count))
    elif element.kind in COEFFICIENTS:
        names = COEFFICIENTS[element.kind]
    else:
        raise unknown_name("kind of force", element.kind, (*COEFFICIENTS, JOINT_SPRING), where=where)
    for name, _ in element.coefficients:
        if name not in names:
            raise unknown_name("coefficient", name, names, where=where)
    return names


def spring_joint(element: ForceElement, carried: Mapping[str, Joint]) -> Joint:
    """Return the joint that carries body_b of a joint spring on its body_a."""
    joint = carried.get(element.body_b)
    if joint is None or joint.parent != element.body_a:
        raise ModelError(
            f"no joint carries {element.body_b!r} on {element.body_a!r}",
            where=f"force {element.name!r}",
            remedy="name a parent and its child",
        )
    return joint
