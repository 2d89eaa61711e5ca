"""Contacts from the shapes of bodies, such as the collision geometry of a URDF or the geoms of an MJCF file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..contact_geometry import SURFACES, features
from ..errors import unknown_name
from ..model.contacts import Contact, Surface, refuse_many_contacts
from ..model.mechanism import Mechanism
from ..model.part_fields import free_name
from .report import Report

KINDS = ("sphere", "capsule", "box", "cylinder")
"""The shapes that become contacts; their sizes have the same meaning."""


def contacts_from_shapes(
    mechanism: Mechanism, report: Report, *, role: str | None, bodies: Iterable[str] | None, surface: Surface, law: Any
) -> tuple[Contact, ...]:
    """Return a contact for every shape of a role that can touch the surface; the report lists all others.

    `law` are friction, restitution and the law of all contacts.
    """
    wanted = [b.name for b in mechanism.bodies] if bodies is None else list(bodies)
    for name in wanted:
        if name not in mechanism.body_indices:
            raise unknown_name("body", name, [b.name for b in mechanism.bodies])
    out, taken = [], set[str]()
    for body in mechanism.bodies:
        for shape in body.shapes if body.name in wanted else ():
            if role is not None and shape.role != role:
                continue
            name = shape.name or f"{body.name}_{shape.kind}"
            if shape.kind not in KINDS:
                report.dropped(f"{shape.kind} {name!r} of body {body.name!r}: only {', '.join(KINDS)} become contacts")
                continue
            if reason := misfit(shape.kind, shape.size, surface):
                report.dropped(f"{shape.kind} {name!r} of body {body.name!r}: {reason}")
                continue
            refuse_many_contacts(len(out) + 1)
            out.append(
                Contact(free_name(name, taken), body.name, shape.kind, shape.size, shape.placement, surface, **law)
            )
    if not out:
        kind = "shapes" if role is None else f"{role} shapes"
        report.suspect(f"no {kind} of the bodies became contacts")
    report.read(f"{len(out)} contacts from shapes")
    return tuple(out)


def misfit(kind: str, size: tuple[float, ...], surface: Surface) -> str:
    """Return why a shape has no contact with a surface, or an empty text if it has."""
    takes = SURFACES[surface.kind].takes
    for sort in sorted({f.sort for f in features(Contact("shape", "shape", kind, size))} - set(takes)):
        return f"the {sort} of a {kind} has no contact with {surface.kind}"
    return ""
