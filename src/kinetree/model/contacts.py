"""Contacts of bodies with surfaces: shapes, friction and restitution, and their checks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import contact_geometry as kinds
from .._support.tables import count_text
from ..algebra.scalars import Scalar, is_number
from ..algebra.vectors import Vector
from ..contact_geometry import features, labels, shape_kind
from ..contact_geometry.surfaces import FAR
from ..errors import ModelError, Where, at, below, brief, part_at, unknown_name
from . import checks
from .curves import Curve
from .mechanism import Mechanism, resolve_parts
from .parameters import Expression, Number
from .part_fields import check_name, not_a_number
from .parts import GROUND, Placement
from .scales import characteristic_length
from .tidying import tidy

# --- Fields of contacts: placements and lists of numbers, read as soon as a contact is created ---

MOST = {"heights": 10_000, "edges": 1000}
"""The largest numbers of heights and edges of a surface: all are in the compiled code, which then takes a minute."""


def placement_of(x: object, where: str) -> Placement:
    """Return a placement; three numbers are its translation."""
    if isinstance(x, Placement):
        entries = (*x.translation, *(y for row in x.rotation for y in row))
        if any(_is_traced(y) and not isinstance(y, Expression) for y in entries):
            return x  # it was tidied before its formulas got values
        return tidy(x, where)
    shift: Vector = numbers_of(x, where, expressions=True)
    if len(shift) != 3:
        raise ModelError(f"{len(shift)} numbers", where=where, remedy="give three, or a Placement")
    return Placement(shift)


def is_list(x: object) -> bool:
    """Return whether a value is a list, a tuple or an array."""
    return (isinstance(x, Sequence) and not isinstance(x, str)) or hasattr(x, "tolist")


def list_of(x: Any, where: str) -> list:
    """Return a list, tuple or array as a list, or raise ModelError."""
    if not is_list(x):
        raise ModelError(f"{brief(x)} is not a list of numbers", where=where, remedy="give a tuple of numbers")
    return list(x.tolist() if hasattr(x, "tolist") else x)


def numbers_of(x: object, where: str, *, expressions: bool = False) -> tuple[Scalar, ...]:
    """Return a list of finite numbers as a tuple, or raise ModelError; `expressions` of parameters may be allowed."""
    out = []
    for value in list_of(x, where):
        if expressions and (isinstance(value, Expression) or _is_traced(value)):
            out.append(value)
            continue
        if isinstance(value, Expression):
            raise ModelError(f"'{value}' is a formula of parameters", where=where, remedy="give a number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise not_a_number(value, where)
        if not math.isfinite(value):
            raise ModelError(f"a number is {value}", where=where, remedy="give a finite number")
        out.append(float(value))
    return tuple(out)


def _is_traced(x: object) -> bool:
    """Return whether a value stands for a number in code that is being compiled: it has a sign but no value."""
    return hasattr(x, "__neg__") and not hasattr(x, "__float__") and not isinstance(x, complex)


def refuse_many(x: object, name: str, where: str) -> None:
    """Raise a ModelError if a surface has more heights or edges than its code can have."""
    count = sum(len(row) if is_list(row) else 1 for row in list_of(x, where))
    if count > MOST[name]:
        raise ModelError(f"{count} {name}", where=where, remedy=f"give no more than {MOST[name]}, of a coarser surface")


LAWS = ("newton", "poisson")
"""Laws of restitution: for the normal velocities, or for the normal impulses of compression and expansion."""

MOST_CONTACTS = 1000
"""The largest number of contacts: the time of their checks and of compilation is bounded."""
SMALLEST = 1e-12
"""The least spacing of heights [m]: its square is not lost beside other numbers."""
STEEPEST = 1e9
"""The largest height, relative to the spacing: slopes above it have no digits left."""


@dataclass(frozen=True)
class Surface:
    """A surface fixed to the ground or, if it is a plane, a curve or a solid, to a body.

    "plane": the xy plane of its placement. "steps": treads at `heights` [m] along x, separated by risers at the
    `edges` [m], all parallel to y. "heights": a grid of `heights` [m], by rows along x, with a `spacing` (dx, dy) [m],
    whose first corner is the origin; the surface between them is a cubic spline. Material is below these three, and z
    points out of it. "sphere" (radius), "capsule" (radius, length along z between the centers of its ends) and "box"
    (x, y, z) are solids about the origin of the placement, of a `size` [m]. "curve": the outside of a closed `curve` in
    the xy plane of the placement, such as that of a cam, at all z.
    """

    kind: str = "plane"
    body: str = GROUND
    placement: Placement = Placement()
    edges: tuple[float, ...] = ()
    heights: tuple[Any, ...] = ()
    spacing: tuple[float, ...] = ()
    size: tuple[Number, ...] = ()
    curve: Curve | None = None

    def __post_init__(self) -> None:
        """Read the placement and the lists of numbers."""
        size = self.size if is_list(self.size) else (self.size,)
        object.__setattr__(self, "size", numbers_of(size, "surface, size", expressions=True))
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


def check_contact(contact: Contact, values: Mapping[str, object] | None = None) -> None:
    """Refuse a contact with impossible sizes, coefficients or surface; expressions are checked once `values` exist."""
    where = part_at("contact", contact.name)
    plain = contact if values is None else _resolved(contact, values)
    for name in ("body", "law"):
        if not isinstance(getattr(plain, name), str):
            raise ModelError(f"{brief(getattr(plain, name))} is not a text", where=below(where, name), remedy="name it")
    kind = shape_kind(plain.shape, where)
    _check_count(plain.shape, kind.sizes, plain.size, where)
    if plain.law not in LAWS:
        raise unknown_name("law of restitution", plain.law, LAWS, where=where)
    _check_sizes(kind.sizes, plain.size, where)
    mu, e = plain.friction, plain.restitution
    _refuse(_below(mu, 0.0), f"the friction is {mu}", where, "of zero or more")
    _refuse(_below(e, 0.0) or _below(1.0, e), f"the restitution is {e}", where, "from 0 to 1")
    _check_surface(plain, below(where, "surface"))


def _check_count(shape: str, wanted: Sequence[str], given: Sequence[object], where: Where) -> None:
    if len(given) != len(wanted):
        what = f"{count_text(len(given), 'size')} for a {shape}"
        raise ModelError(what, where=where, remedy=f"give {', '.join(wanted) or 'none'}")


def _check_sizes(names: Sequence[str], sizes: Sequence[Scalar], where: Where) -> None:
    for label, value in zip(names, sizes, strict=True):
        _refuse(_below(value, 0.0, equal=True), f"the {label} is {value} m", where, "above zero")


def misfit(shape: str, size: Sequence[Scalar], surface: Surface) -> tuple[str, str]:
    """Return why a shape has no contact with a surface, and what to do; empty texts if it has one."""
    kind = kinds.surface_kind(surface.kind)
    found = features(shape, size, on_solid=surface.kind in kinds.SOLIDS)
    for sort in sorted({f.sort for f in found} - set(kind.takes)):
        if surface.kind in kinds.SOLIDS and shape in kinds.SOLIDS:
            return f"a {shape} touches no {surface.kind} as its surface", "exchange the two: name the larger kind last"
        what = f"the {sort} of a {shape} has no contact with {surface.kind}"
        return what, f"touch it with a {' or '.join(kind.takes)}"
    return "", ""


def _check_surface(contact: Contact, where: Where) -> None:
    surface = contact.surface
    kind = kinds.surface_kind(surface.kind, where)
    what, remedy = misfit(contact.shape, contact.size, surface)
    if what:
        raise ModelError(what, where=where, remedy=remedy)
    if surface.kind in kinds.SOLIDS:
        sizes = kinds.SOLIDS[surface.kind].sizes
        _check_count(surface.kind, sizes, surface.size, where)
        _check_sizes(sizes, surface.size, where)
    elif surface.size:
        raise ModelError(f"{surface.kind} with a size", where=where, remedy="leave out size")
    if (surface.curve is not None) != ("curve" in kind.data):
        what = "no curve" if surface.curve is None else "a curve"
        remedy = "leave it out" if surface.curve is not None else "give curve=kt.Curve(...), against the clock"
        raise ModelError(f"{surface.kind} with {what}", where=where, remedy=remedy)
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


def require_fitting_contacts(mechanism: Mechanism, contacts: object) -> tuple[Contact, ...]:
    """Return contacts that fit a mechanism: one, or a sequence; raise a ModelError that names the faulty one."""
    out = contact_list(contacts)
    check_all(replace(mechanism, contacts=out))
    return out


def contact_list(contacts: object) -> tuple[Contact, ...]:
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


def _resolved(contact: Contact, values: Mapping[str, object]) -> Contact:
    try:
        return resolve_parts(contact, values)
    except ModelError as error:
        raise ModelError(error.what, where=part_at("contact", contact.name), remedy=error.remedy) from None


def _below(a: Scalar, b: Scalar, *, equal: bool = False) -> bool:
    """Return whether a number is below another; formulas and numbers of compiled code count as fitting."""
    return is_number(a) and is_number(b) and (a < b or (equal and a == b))


def _refuse(fault: bool, what: str, where: str, wanted: str) -> None:
    if fault:
        raise ModelError(what, where=where, remedy=f"give a number {wanted}")


# --- The numbers of all contacts of a mechanism by candidate, and the sizes with which gaps and speeds are compared.


@dataclass(frozen=True)
class ContactNumbers:
    """The contacts of a mechanism, and the strength of gravity [m/s^2], with the parameters of one run inserted."""

    mechanism: Mechanism
    contacts: tuple[Any, ...]
    gravity: float
    parameters: Sequence[float] | None = None

    @classmethod
    def of(cls, mechanism: Mechanism, parameters: Sequence[float] | None = None) -> ContactNumbers:
        """Return the numbers for values of the free parameters; with None, their nominal ones."""
        values = mechanism.values(parameters)
        strength = math.hypot(*resolve_parts(mechanism.gravity, values)) or 10.0
        return cls(mechanism, resolve_parts(mechanism.contacts, values), strength, parameters)

    @cached_property
    def by_candidate(self) -> tuple[Any, ...]:
        """The contact of each candidate, in order."""
        return tuple(c for c in self.contacts for _ in labels(c))

    @cached_property
    def friction(self) -> np.ndarray:
        """Coulomb's coefficients by candidate."""
        return np.array([c.friction for c in self.by_candidate])

    @cached_property
    def grounded(self) -> np.ndarray:
        """Whether candidates touch the ground, not another body."""
        return np.array([c.surface.body == GROUND for c in self.by_candidate], dtype=bool)

    @cached_property
    def length(self) -> float:
        """The characteristic length [m], from the mechanism and the sizes of the contacts."""
        sizes = [abs(x) for c in self.contacts for x in (*c.size, *c.surface.size, *c.placement.translation) if x]
        lengths = [*self.mechanism.lengths, *sizes]
        return float(np.mean(lengths)) if lengths else characteristic_length(self.mechanism)

    @cached_property
    def weight(self) -> float:
        """The weight of the mechanism [N]."""
        bodies = resolve_parts(self.mechanism.bodies, self.mechanism.values(self.parameters))
        return self.gravity * float(sum(b.mass for b in bodies))

    @property
    def speed(self) -> float:
        """The characteristic velocity sqrt(g l) [m/s]."""
        return math.sqrt(self.gravity * self.length)
