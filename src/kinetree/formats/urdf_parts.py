"""The parts of a URDF: links with shapes, joints, loops and couplings; inertias are rotated into the link's axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..algebra.rotations import from_quaternion, from_rpy
from ..algebra.vectors import IDENTITY, Matrix, Vector, from_moments, matmul, symmetric, to_moments, transpose
from ..errors import ModelError, quote, unknown_name
from ..joints._common import axes_with_z
from ..model.parts import Body, Coupling, Joint, Limits, Loop, Placement, Shape
from .report import Group
from .xml import Element, Source, describe_element, mesh_file

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
    return placed_body(source, inertial, name, mass, placement, _inertia(source, inertial), shapes)


def placed_body(
    source: Source,
    inertial: Element,
    name: str,
    mass: float,
    placement: Placement,
    inertia: Matrix,
    shapes: tuple[Shape, ...],
) -> Body:
    """Return the body of a link from the inertia about its center of mass, in the axes of a placement in the link."""
    R = placement.rotation
    tensor = inertia if R == IDENTITY else symmetric(matmul(matmul(R, inertia), transpose(R)))
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
    return _direction(source, _child(source, joint, "axis", type_, (*ONE_AXIS, "planar")))


def _direction(source: Source, element: Element | None) -> Vector:
    """Return the unit vector of an axis, by default along x."""
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


LOOP_KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "spherical": "spherical",
    "fixed": "fixed",
}
LOOP_TAGS = {
    "loop_joint": LOOP_KINDS,
    "constraint": LOOP_KINDS | {"cylindrical": "cylindrical", "universal": "universal"},
    "loop": LOOP_KINDS,
}
"""The elements that close loops, of several proposals to extend URDF, and the kinds of their types."""


def read_loop(source: Source, element: Element) -> Loop:
    """Return the loop of a <loop_joint>, <constraint> or <loop>, with its ends in two links."""
    tags = {"loop_joint": ("link1", "link2"), "constraint": ("parent", "child"), "loop": ("predecessor", "successor")}
    ends, kinds = tags[element.tag], LOOP_TAGS[element.tag]
    two_axes = ("parent_origin", "parent_axis", "child_origin", "child_axis")
    source.rest(element, ("name", "type"), (*ends, *(two_axes if element.tag == "constraint" else ("axis",))))
    name, type_ = source.name(element), source.text(element, "type")
    if type_ not in kinds:
        place = {"file": source.file, "line": element.line, "where": f"{element.tag} {name!r}"}
        raise unknown_name(f"type of {element.tag}", type_[:80], kinds, **place)
    (one, a), (two, b) = (_loop_end(source, element, end) for end in ends)
    if element.tag != "constraint":
        return Loop(name, kinds[type_], one, two, a, b, axis=_axis(source, element, type_))
    # an axis at each end: frame b is rotated such that the axes of the loop are the given ones
    first, last = (_direction(source, source.one(element, f"{end}_axis")) for end in ends)
    across = None
    if type_ == "universal":
        across = transpose(axes_with_z(first))[0]  # any direction across the first axis: b has no other one
    own = first if across is None else across
    if own != last:
        turn = matmul(axes_with_z(last), transpose(axes_with_z(own)))
        b = Placement(b.translation, matmul(b.rotation, turn))
    return Loop(name, kinds[type_], one, two, a, b, axis=first, axis2=across)


def _loop_end(source: Source, loop: Element, tag: str) -> tuple[str, Placement]:
    """Return the link of an end of a loop and the placement there, which each proposal has in another place."""
    end = source.needed(loop, tag)
    source.rest(end, ("link", "xyz", "rpy"), ("origin",))
    if loop.tag == "constraint":
        origin = source.one(loop, f"{tag}_origin")
        return source.name(end, "link"), Placement() if origin is None else placement_of(source, origin)
    inside = source.one(end, "origin")
    return source.name(end, "link"), placement_of(source, end if inside is None else inside)


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


# --- Origins, shapes and colors ---

Color = tuple[float, float, float, float]
UNIT = 1e-6
"""Largest deviation of a length from 1 that is corrected without a report: files print about six digits."""

SIZES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}


def read_origin(source: Source, element: Element) -> Placement:
    """Return the placement given by the <origin> of an element; the identity without one."""
    origin = source.one(element, "origin")
    if origin is None:
        return Placement()
    source.rest(origin, ("xyz", "rpy", "quat_xyzw"))
    return placement_of(source, origin)


def placement_of(source: Source, origin: Element) -> Placement:
    """Return the placement given by the attributes xyz and rpy, or quat_xyzw, of an element."""
    xyz = source.vector(origin, "xyz", (0.0, 0.0, 0.0))
    if "quat_xyzw" in origin.attributes:
        if "rpy" in origin.attributes:
            raise source.error(origin, "has both rpy and quat_xyzw", "keep one of them")
        rotation = from_quaternion(unit(source, origin, source.numbers(origin, "quat_xyzw", 4)))
    else:
        rotation = from_rpy(*source.vector(origin, "rpy", (0.0, 0.0, 0.0)))
    return Placement(xyz, rotation)


def unit(source: Source, element: Element, numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Return a vector scaled to unit length; report it if its length is not 1, and refuse zero length."""
    length = math.hypot(*numbers)
    if not 1e-9 < length < math.inf:
        raise source.error(element, f"{numbers} has no direction", "give numbers such as 0 0 1")
    if abs(length - 1.0) > UNIT:
        source.report.changed(f"{describe_element(element)}: scaled from length {length:.9g} to 1", element.line)
    return tuple(x / length for x in numbers)


def read_materials(source: Source, robot: Element) -> dict[str, Color]:
    """Return the colors of all named materials: first the robot's, then the ones defined in links."""
    colors: dict[str, Color] = {}
    for material in robot.all("material"):
        color = _own_color(source, material)
        name = material.attributes.get("name", "")
        if name in colors and color != colors[name]:
            source.report.suspect(
                f"{describe_element(material)} is already defined; the first definition is kept", material.line
            )
        if color is not None:
            colors.setdefault(name, color)
    for link in robot.all("link"):
        for visual in link.all("visual"):
            for material in visual.all("material")[:1]:
                name, colored = material.attributes.get("name", ""), material.all("color")
                if name and colored and name not in colors:
                    colors[name] = _rgba(source, colored[0])
    return colors


def read_shapes(source: Source, link: Element, colors: dict[str, Color], roots: Sequence[Path]) -> tuple[Shape, ...]:
    """Return the visuals and collisions of a link, in the order of the file."""
    out = []
    for element in link.children:
        if element.tag in ("visual", "collision"):
            shape = _shape(source, element, colors, roots)
            if shape is not None:
                out.append(shape)
    return tuple(out)


def _shape(source: Source, element: Element, colors: dict[str, Color], roots: Sequence[Path]) -> Shape | None:
    role = element.tag
    source.rest(element, ("name",), ("origin", "geometry", *(("material",) if role == "visual" else ())))
    placement = read_origin(source, element)
    color = _color(source, element, colors) if role == "visual" else None
    geometry = source.one(element, "geometry")
    if geometry is None or not geometry.children:
        source.report.dropped(f"{describe_element(element)}: it has no geometry", element.line)
        return None
    solid = geometry.children[0]
    source.rest(geometry, (), (solid.tag,))
    for extra in geometry.all(solid.tag)[1:]:
        source.unread(extra, geometry)
    name = element.attributes.get("name", "")
    if solid.tag == "mesh":
        source.rest(solid, ("filename", "scale"))
        scale = source.numbers(solid, "scale", 3, (1.0, 1.0, 1.0))
        file = mesh_file(source, solid, source.text(solid, "filename"), roots)
        return Shape("mesh", scale, placement, role, file, color, name)
    if solid.tag not in SIZES:
        known = ", ".join([*SIZES, "mesh"])
        source.report.dropped(
            f"{describe_element(solid)} of {describe_element(element)}: known shapes are {known}", solid.line
        )
        return None
    source.rest(solid, [attribute for attribute, _ in SIZES[solid.tag]])
    size = tuple(x for attribute, count in SIZES[solid.tag] for x in source.numbers(solid, attribute, count))
    if min(size) < 0:
        source.report.suspect(f"{describe_element(solid)} has a negative size", solid.line)
    return Shape(solid.tag, size, placement, role, "", color, name)


def _color(source: Source, visual: Element, colors: dict[str, Color]) -> Color | None:
    material = source.one(visual, "material")
    if material is None:
        return None
    color, name = _own_color(source, material), material.attributes.get("name", "")
    if color is None and name and name not in colors and source.one(material, "texture") is None:
        source.report.suspect(f"{describe_element(material)} has no color and is not defined elsewhere", material.line)
    return color or colors.get(name)


def _own_color(source: Source, material: Element) -> Color | None:
    source.rest(material, ("name",), ("color",))
    color = source.one(material, "color")
    if color is None:
        return None
    source.rest(color, ("rgba",))
    return _rgba(source, color)


def _rgba(source: Source, color: Element) -> Color:
    red, green, blue, alpha = source.numbers(color, "rgba", 4)
    return red, green, blue, alpha
