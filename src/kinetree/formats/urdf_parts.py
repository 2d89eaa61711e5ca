"""The links and joints of a URDF as bodies, joints and couplings; inertias are rotated into the link's frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..algebra.vectors import Matrix, Vector, from_moments, matmul, symmetric, to_moments, transpose
from ..errors import ModelError, quote, unknown_name
from ..model.parts import Body, Coupling, Joint, Limits
from .report import Group
from .urdf_shapes import Color, read_origin, read_shapes, unit
from .xml import Element, Source

KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
ONE_AXIS = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Mimic:
    """A coupling with its <mimic> element."""

    coupling: Coupling
    element: Element


def read_link(source: Source, link: Element, colors: dict[str, Color], roots: Sequence[Path]) -> Body:
    """Return the body of a <link>; without <inertial> it is massless."""
    source.rest(link, ("name",), ("inertial", "visual", "collision"))
    name = source.name(link)
    shapes = read_shapes(source, link, colors, roots)
    inertial = source.one(link, "inertial")
    if inertial is None:
        group = Group("links without <inertial> are massless", repr(name))
        source.report.read(f"link {name!r} has no <inertial>: it is massless", link.line, group)
        return Body(name, shapes=shapes)
    source.rest(inertial, (), ("origin", "mass", "inertia"))
    placement = read_origin(source, inertial)
    mass = _mass(source, inertial)
    tensor = symmetric(matmul(matmul(placement.rotation, _inertia(source, inertial)), transpose(placement.rotation)))
    if not all(math.isfinite(x) for row in tensor for x in row):
        raise source.error(inertial, "the inertia is too large for doubles", "check its units: kg m^2")
    return Body(name, mass, placement.translation, to_moments(tensor), shapes)


def _mass(source: Source, inertial: Element) -> float:
    element = source.needed(inertial, "mass")
    source.rest(element, ("value",))
    mass = source.number(element, "value")
    if mass < 0:
        raise source.error(element, f"the mass is {mass:g} kg", "give a mass of zero or more")
    return mass


def _inertia(source: Source, inertial: Element) -> Matrix:
    element = source.one(inertial, "inertia")
    if element is None:
        source.report.suspect("<inertial> has no <inertia>: taken as a point mass", inertial.line)
        return from_moments((0.0,) * 6)
    source.rest(element, ("ixx", "iyy", "izz", "ixy", "iyz", "ixz"))
    moments = [source.number(element, name) for name in ("ixx", "iyy", "izz")]
    products = [source.number(element, name, 0.0) for name in ("ixy", "iyz", "ixz")]
    return from_moments((*moments, *products))


def read_joint(source: Source, element: Element) -> tuple[Joint, Mimic | None]:
    """Return the joint of a <joint> element, and the coupling of its <mimic>, or None."""
    children = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")
    source.rest(element, ("name", "type"), children)
    name, type_ = source.name(element), source.text(element, "type")
    if type_ not in KINDS:
        place = {"file": source.file, "line": element.line, "where": f"joint {name!r}"}
        raise unknown_name("joint type", type_[:80], KINDS, **place)
    damping, friction = _dynamics(source, element, type_)
    joint = Joint(
        name,
        KINDS[type_],
        _end(source, element, "parent"),
        _end(source, element, "child"),
        read_origin(source, element),
        _axis(source, element, type_),
        limits=_limits(source, element, type_),
        damping=damping,
        friction=friction,
    )
    return joint, _mimic(source, element, joint, type_)


def _end(source: Source, joint: Element, tag: str) -> str:
    element = source.needed(joint, tag)
    source.rest(element, ("link",))
    return source.name(element, "link")


def _child(source: Source, joint: Element, tag: str, type_: str, allowed: Sequence[str]) -> Element | None:
    """Return a child that only some joint types use; for other types it is reported as dropped."""
    element = source.one(joint, tag)
    if element is not None and type_ not in allowed:
        name = repr(joint.attributes["name"])
        group = Group(f"<{tag}> of {type_} joints", name)
        source.report.dropped(f"<{tag}> of the {type_} joint {name}", element.line, group)
        return None
    return element


def _axis(source: Source, joint: Element, type_: str) -> Vector:
    element = _child(source, joint, "axis", type_, (*ONE_AXIS, "planar"))
    if element is None:
        return (1.0, 0.0, 0.0)
    source.rest(element, ("xyz",))
    x, y, z = unit(source, element, source.vector(element, "xyz", (1.0, 0.0, 0.0)))
    return x, y, z


def _limits(source: Source, joint: Element, type_: str) -> Limits:
    name = joint.attributes["name"]
    element = _child(source, joint, "limit", type_, ONE_AXIS)
    bounded = type_ in ("revolute", "prismatic")
    if element is None:
        if bounded:
            source.report.suspect(f"the {type_} joint {name!r} has no <limit>: taken as unlimited", joint.line)
        return Limits()
    source.rest(element, ("lower", "upper", "effort", "velocity"))
    lower, upper = (source.number(element, end, 0.0) for end in ("lower", "upper"))
    velocity, effort = (_optional(source, element, end) for end in ("velocity", "effort"))
    if not bounded:
        if lower or upper:
            source.report.dropped(f"lower and upper limit of the continuous joint {name!r}", element.line)
        return Limits(velocity=velocity, effort=effort)
    if lower >= upper:
        source.report.suspect(f"joint {name!r} cannot move: its limits are {lower:g} and {upper:g}", element.line)
    if any(x < 0 for x in (*velocity, *effort)):
        source.report.suspect(f"joint {name!r} has a negative velocity or effort limit", element.line)
    return Limits((lower,), (upper,), velocity, effort)


def _dynamics(source: Source, joint: Element, type_: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    element = _child(source, joint, "dynamics", type_, ONE_AXIS)
    if element is None:
        return (), ()
    source.rest(element, ("damping", "friction"))
    damping, friction = (_optional(source, element, name) for name in ("damping", "friction"))
    if any(x < 0 for x in (*damping, *friction)):
        source.report.suspect(f"joint {joint.attributes['name']!r} has negative damping or friction", element.line)
    return damping, friction


def _optional(source: Source, element: Element, name: str) -> tuple[float, ...]:
    return source.numbers(element, name, 1, ())


def _mimic(source: Source, element: Element, joint: Joint, type_: str) -> Mimic | None:
    mimic = _child(source, element, "mimic", type_, ONE_AXIS)
    if mimic is None:
        return None
    source.rest(mimic, ("joint", "multiplier", "offset"))
    term = (source.name(mimic, "joint"), source.number(mimic, "multiplier", 1.0))
    return Mimic(Coupling(joint.name, joint.name, (term,), source.number(mimic, "offset", 0.0)), mimic)


def read_couplings(source: Source, mimics: Sequence[Mimic], joints: dict[str, Joint]) -> tuple[Coupling, ...]:
    """Return the couplings of joints that mimic joints with a single coordinate."""
    out: dict[str, Coupling] = {}
    for mimic in mimics:
        coupling, other = mimic.coupling, mimic.coupling.terms[0][0]
        place = {"file": source.file, "line": mimic.element.line, "where": f"<mimic> of joint {coupling.joint!r}"}
        fault = _not_mimicked(other, joints)
        if fault:
            source.report.suspect(f"joint {coupling.joint!r} mimics {fault}; left uncoupled", mimic.element.line)
            continue
        out[coupling.joint] = coupling
        while other in out:
            if other == coupling.joint:
                raise ModelError(
                    "joints mimic each other in a circle", remedy="remove one <mimic> of the circle", **place
                )
            other = out[other].terms[0][0]
        if other == coupling.joint:
            raise ModelError("the joint mimics itself", remedy="remove the <mimic>", **place)
    return tuple(out.values())


def _not_mimicked(name: str, joints: dict[str, Joint]) -> str:
    """Return the reason why a joint cannot be mimicked, or an empty text."""
    if name not in joints:
        return f"{quote(name)}, which is not a joint"
    kind = joints[name].kind
    if kind in ("revolute", "prismatic"):
        return ""
    return f"{name!r}, which is a {kind} joint without a single coordinate"
