"""Contacts of bodies with surfaces: shapes, friction and restitution, and their checks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import contacts as kinds
from ..algebra.scalars import is_number
from ..contacts.features import shape_kind
from ..contacts.meeting import FAR
from ..errors import ModelError, Where, at, below, brief, part_at, unknown_name
from . import checks
from .contact_fields import MOST, is_list, list_of, numbers_of, placement_of, refuse_many
from .mechanism import Mechanism, resolved
from .parameters import Number
from .part_fields import check_name
from .parts import GROUND, Placement

LAWS = ("newton", "poisson")
"""Laws of restitution: for the normal velocities, or for the normal impulses of compression and expansion."""

MOST_CONTACTS = 1000
"""The largest number of contacts: the time of their checks and of compilation is bounded."""
SMALLEST = 1e-12
"""The least spacing of heights [m]: its square is not lost beside other numbers."""
STEEPEST = 1e9
"""The largest height, in parts of the spacing: slopes above it have no digits left."""


@dataclass(frozen=True)
class Surface:
    """A surface fixed to the ground or, if it is a plane, to a body; the solid is below it, and z points out of it.

    "plane": the xy plane of its placement. "steps": treads at `heights` [m] along x, separated by risers at the
    `edges` [m], all parallel to y. "heights": a grid of `heights` [m], by rows along x, with a `spacing` (dx, dy) [m],
    whose first corner is the origin; the surface between them is a cubic spline.
    """

    kind: str = "plane"
    body: str = GROUND
    placement: Placement = Placement()
    edges: tuple[float, ...] = ()
    heights: tuple[Any, ...] = ()
    spacing: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Read the placement and the lists of numbers."""
        for name in MOST:
            refuse_many(getattr(self, name), name, f"surface, {name}")
        object.__setattr__(self, "placement", placement_of(self.placement, "surface, placement"))
        for name in ("edges", "spacing"):
            object.__setattr__(self, name, numbers_of(getattr(self, name), f"surface, {name}"))
        rows = [
            numbers_of(x, "surface, heights") if is_list(x) else x for x in list_of(self.heights, "surface, heights")
        ]
        heights = tuple(rows) if any(isinstance(x, tuple) for x in rows) else numbers_of(rows, "surface, heights")
        object.__setattr__(self, "heights", heights)


@dataclass(frozen=True)
class Contact:
    """A contact of a shape of a body with a surface, under Coulomb friction and restitution.

    The shape is a "point", "sphere" (radius), "capsule" (radius, length), "box" (x, y, z), "disc" (radius) or
    "cylinder" (radius, length), with the given sizes [m]; its placement, or the translation alone, is in the body's
    frame. Spheres touch with their lowest point, capsules with their ends, boxes with their corners, discs and
    cylinders with their rims, about the z axis. `friction` is Coulomb's coefficient, `restitution` that of the `law`,
    "newton" or "poisson".
    """

    name: str
    body: str
    shape: str = "point"
    size: tuple[Number, ...] = ()
    placement: Placement = Placement()
    surface: Surface = Surface()
    friction: Number = 0.0
    restitution: Number = 0.0
    law: str = "newton"

    def __post_init__(self) -> None:
        """Check all fields that do not depend on the mechanism."""
        check_name(self.name, "contact")
        where = part_at("contact", self.name)
        size = self.size if is_list(self.size) else (self.size,)
        object.__setattr__(self, "size", numbers_of(size, below(where, "size"), expressions=True))
        object.__setattr__(self, "placement", placement_of(self.placement, below(where, "placement")))
        if not isinstance(self.surface, Surface):
            raise ModelError(
                f"the surface is {brief(self.surface)}", where=where, remedy='give a Surface, such as Surface("plane")'
            )
        for name in ("friction", "restitution"):
            (value,) = numbers_of((getattr(self, name),), below(where, name), expressions=True)
            object.__setattr__(self, name, value)
        check_contact(self)


def check_contact(contact: Contact, values: Mapping[str, Any] | None = None) -> None:
    """Refuse a contact with impossible sizes, coefficients or surface; expressions are checked once `values` exist."""
    where = part_at("contact", contact.name)
    plain = contact if values is None else _resolved(contact, values)
    for name in ("body", "law"):
        if not isinstance(getattr(plain, name), str):
            raise ModelError(f"{brief(getattr(plain, name))} is not a text", where=below(where, name), remedy="name it")
    kind = shape_kind(plain.shape, where)
    if len(plain.size) != len(kind.sizes):
        wanted = ", ".join(kind.sizes) or "none"
        count = f"{len(plain.size)} size" + ("" if len(plain.size) == 1 else "s")
        raise ModelError(f"{count} for a {plain.shape}", where=where, remedy=f"give {wanted}")
    if plain.law not in LAWS:
        raise unknown_name("law of restitution", plain.law, LAWS, where=where)
    for label, value in zip(kind.sizes, plain.size, strict=True):
        _refuse(_below(value, 0.0, equal=True), f"the {label} is {value} m", where, "above zero")
    mu, e = plain.friction, plain.restitution
    _refuse(_below(mu, 0.0), f"the friction is {mu}", where, "of zero or more")
    _refuse(_below(e, 0.0) or _below(1.0, e), f"the restitution is {e}", where, "from 0 to 1")
    _check_surface(plain, below(where, "surface"))


def _check_surface(contact: Contact, where: Where) -> None:
    surface = contact.surface
    kind = kinds.surface_kind(surface.kind, where)
    for sort in {f.sort for f in kinds.features(contact)} - set(kind.takes):
        raise ModelError(
            f"the {sort} of a {contact.shape} has no contact with {surface.kind}",
            where=where,
            remedy=f"touch it with a {' or '.join(kind.takes)}",
        )
    if surface.body != GROUND and not kind.moves:
        raise ModelError(
            f"{surface.kind} are fixed to {brief(surface.body)}", where=where, remedy="fix them to the ground"
        )
    for name in ("edges", "heights", "spacing"):
        if bool(getattr(surface, name)) != (name in kind.data):
            remedy = f"give {name}" if name in kind.data else f"leave out {name}"
            raise ModelError(f"{surface.kind} with {len(getattr(surface, name))} {name}", where=where, remedy=remedy)
    if surface.kind == "steps":
        _check_steps(surface, where)
    if surface.kind == "heights":
        _check_heights(surface, where)


def _check_steps(surface: Surface, where: Where) -> None:
    edges, heights = surface.edges, surface.heights
    if len(heights) != len(edges) + 1 or any(isinstance(h, tuple) for h in heights):
        raise ModelError(
            f"{len(heights)} heights for {len(edges)} edges", where=where, remedy="give one height more than edges"
        )
    if any(b <= a for a, b in itertools.pairwise(edges)):
        raise ModelError(f"the edges are {list(edges)}", where=where, remedy="give edges that increase")
    if any(a == b for a, b in itertools.pairwise(heights)):
        raise ModelError(
            "two neighboring treads have one height", where=where, remedy="leave out the edge between them"
        )


def _check_heights(surface: Surface, where: Where) -> None:
    rows = surface.heights
    sizes = {len(row) if isinstance(row, tuple) else 0 for row in rows}
    if len(rows) < 2 or len(sizes) != 1 or min(sizes) < 2:
        raise ModelError("the heights are not a grid", where=where, remedy="give rows of equal length, 2 by 2 at least")
    if len(surface.spacing) != 2 or min(surface.spacing) <= 0:
        raise ModelError(f"the spacing is {list(surface.spacing)}", where=where, remedy="give dx and dy, above zero")
    high, least = max(abs(h) for row in rows for h in row), min(surface.spacing)
    if not (SMALLEST <= least and max(*surface.spacing, high) <= FAR and high <= STEEPEST * least):
        raise ModelError(
            f"heights of up to {high:.3g} m at distances of {least:.3g} m", where=where, remedy="give both in meters"
        )


def fitting(mechanism: Mechanism, contacts: Any) -> tuple[Contact, ...]:
    """Return contacts that fit a mechanism: one, or a sequence; raise a ModelError that names the faulty one."""
    out = contact_list(contacts)
    check_all(replace(mechanism, contacts=out))
    return out


def contact_list(contacts: Any) -> tuple[Contact, ...]:
    """Return one contact, or a sequence of them, as a tuple, or raise ModelError."""
    given = (contacts,) if isinstance(contacts, Contact) else contacts
    if not isinstance(given, Iterable):
        raise ModelError(f"contacts are {brief(contacts)}", remedy="give a list of Contact(...)")
    out = tuple(given)
    for x in out:
        if not isinstance(x, Contact):
            raise ModelError(f"{brief(x)} is not a contact", remedy="give Contact(...)")
    return out


def refuse_many_contacts(count: int) -> None:
    """Raise a ModelError for more contacts than a mechanism can have."""
    if count > MOST_CONTACTS:
        raise ModelError(
            f"{count} contacts", where=at("contact"), remedy=f"give up to {MOST_CONTACTS}, those that can touch"
        )


def check_all(mechanism: Mechanism) -> None:
    """Refuse contacts of a mechanism with equal names, unknown bodies, or a body with itself."""
    refuse_many_contacts(len(mechanism.contacts))
    seen: set[str] = set()
    bodies = [b.name for b in mechanism.bodies]
    values = mechanism.values()
    for contact in mechanism.contacts:
        where = part_at("contact", contact.name)
        if contact.name in seen:
            raise ModelError(f"the contact name {contact.name!r} is used twice", remedy="rename one of them")
        seen.add(contact.name)
        if contact.body not in bodies:
            raise unknown_name("body", contact.body, bodies, where=where)
        if contact.surface.body not in (*bodies, GROUND):
            raise unknown_name("body", contact.surface.body, [*bodies, GROUND], where=below(where, "surface"))
        if contact.surface.body == contact.body:
            raise ModelError(
                f"the shape and the surface are both of {contact.body!r}", where=where, remedy="name another body"
            )
        check_contact(contact, values)
        for place in (contact.placement, contact.surface.placement):
            checks.placement(place, values, where)


def _resolved(contact: Contact, values: Mapping[str, Any]) -> Contact:
    try:
        return resolved(contact, values)
    except ModelError as error:
        raise ModelError(error.what, where=part_at("contact", contact.name), remedy=error.remedy) from None


def _below(a: Any, b: Any, *, equal: bool = False) -> bool:
    """Return whether a number is below another; formulas and numbers of compiled code count as fitting."""
    return is_number(a) and is_number(b) and (a < b or (equal and a == b))


def _refuse(fault: bool, what: str, where: str, wanted: str) -> None:
    if fault:
        raise ModelError(what, where=where, remedy=f"give a number {wanted}")
