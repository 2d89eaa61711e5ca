"""Reader of URDF: `read_urdf` for files, `read_urdf_text` for text; a report lists what was changed or dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..algebra.vectors import Matrix, Vector, from_moments, matmul, symmetric, to_moments, transpose
from ..errors import InputError, ModelError, quote, unknown_name
from ..model.checks import impossible_inertias, massless_inertias
from ..model.construction import build_mechanism
from ..model.mechanism import Mechanism
from ..model.part_fields import MAX_NAME
from ..model.parts import GROUND, Body, Coupling, Frame, Joint, Limits, Loop, Shape
from .merging import merge_fixed, move_loops
from .report import Group, Report
from .urdf_shapes import Color, placement_of, read_materials, read_origin, read_shapes, unit
from .xml import EXPAND, Element, Source, parse_xml, read_bytes

# --- The links and joints of a URDF as bodies, joints and couplings; inertias are rotated into the link's frame ---

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


LOOP_KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "spherical": "spherical",
    "fixed": "fixed",
}


def read_loop(source: Source, element: Element) -> Loop:
    """Return the loop of a <loop_joint>, with its ends in two links and its axis in the frame of the first."""
    source.rest(element, ("name", "type"), ("link1", "link2", "axis", "limit", "dynamics"))
    name, type_ = source.name(element), source.text(element, "type")
    if type_ not in LOOP_KINDS:
        place = {"file": source.file, "line": element.line, "where": f"loop_joint {name!r}"}
        raise unknown_name("type of loop joints", type_[:80], LOOP_KINDS, **place)
    for tag in ("limit", "dynamics"):
        if lost := source.one(element, tag):
            source.report.dropped(f"<{tag}> of the loop joint {name!r}", lost.line)
    ends = []
    for tag in ("link1", "link2"):
        end = source.needed(element, tag)
        source.rest(end, ("link", "xyz", "rpy"))
        ends.append((source.name(end, "link"), placement_of(source, end)))
    (one, a), (two, b) = ends
    return Loop(name, LOOP_KINDS[type_], one, two, a, b, axis=_axis(source, element, type_))


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


BASES = ("fixed", "free")
FIXED = ("merge", "keep")
MAX_LINKS = 5_000
MAX_LOOPS = 500
MAX_SHAPES = 10_000
"""Largest numbers of links, loops and shapes, above those of real robots: any file is read or refused in seconds."""


def read_urdf(
    path: str | Path,
    *,
    base: str = "fixed",
    fixed: str = "merge",
    roots: Sequence[str | Path] = (),
    arguments: Mapping[str, object] | None = None,
) -> tuple[Mechanism, Report]:
    """Return the mechanism of a URDF or xacro file and the report of the import, or raise ModelError.

    Args:
        path: the file.
        base: "fixed" fixes the root link to the ground, "free" lets it float on a free joint named "root".
        fixed: "merge" merges links connected by fixed joints and keeps their names as frames; "keep" keeps the links.
        roots: folders searched for meshes, in addition to the file's own: packages, or folders of packages.
        arguments: values of <xacro:arg> by name; they make a .urdf file one of xacro.
    """
    data, path = read_bytes(path), Path(path)
    folders = (path.parent, *roots)
    if path.suffix.lower() != ".xacro" and arguments is None:
        return read_urdf_text(data, file=str(path), base=base, fixed=fixed, roots=folders)
    from .xacro import expand_xacro

    source = Source(str(path), Report(str(path)))
    robot = expand_xacro(source, parse_xml(data, file=str(path)), path, [Path(r) for r in folders], arguments)
    return _read_robot(source, robot, base, fixed, folders)


def read_urdf_text(
    text: str | bytes,
    *,
    file: str = "<text>",
    base: str = "fixed",
    fixed: str = "merge",
    roots: Sequence[str | Path] = (),
) -> tuple[Mechanism, Report]:
    """Return the mechanism of a URDF text and the report of the import; `file` is its name in messages."""
    return _read_robot(Source(file, Report(file)), parse_xml(text, file=file), base, fixed, roots)


def check_options(base: str, fixed: str) -> None:
    """Refuse other values of the options `base` and `fixed` than those of files of links."""
    for label, value, known in (("base", base, BASES), ("fixed", fixed, FIXED)):
        if value not in known:
            raise InputError(f"{label} must be one of {', '.join(known)}, not {value!r}")


def _read_robot(
    source: Source, robot: Element, base: str, fixed: str, roots: Sequence[str | Path]
) -> tuple[Mechanism, Report]:
    check_options(base, fixed)
    file = source.file
    try:
        parts = _read_parts(source, robot, [Path(r) for r in roots])
        parts = _tree(source, parts, base, fixed)
        mechanism = build_mechanism(
            _robot_name(source, robot),
            parts.bodies,
            parts.joints,
            frames=parts.frames,
            loops=parts.loops,
            couplings=parts.couplings,
            scenery=parts.scenery,
            source=file,
            lenient=True,
        )
    except ModelError as error:
        raise error.located(file) from None
    _remarks(source, parts, mechanism)
    return mechanism, source.report


@dataclass(frozen=True)
class _Parts:
    """The parts of a mechanism that is being read, and the elements of its links and joints."""

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    links: dict[str, Element]
    elements: dict[str, Element]
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    frames: tuple[Frame, ...] = ()
    scenery: tuple[Shape, ...] = ()


def _read_parts(source: Source, robot: Element, roots: Sequence[Path]) -> _Parts:
    if robot.tag != "robot":
        raise source.error(robot, "the root element is not <robot>", "give a URDF file")
    source.rest(robot, ("name",), ("link", "joint", "loop_joint", "material"))
    for what, count, most in (
        ("links", len(robot.all("link")), MAX_LINKS),
        ("joints", len(robot.all("joint")), MAX_LINKS),
        ("loop joints", len(robot.all("loop_joint")), MAX_LOOPS),
        ("shapes", sum(len(link.children) for link in robot.all("link")), MAX_SHAPES + MAX_LINKS),
    ):
        if count > most:
            raise source.error(robot, f"has {count} {what}", f"use at most {most}; split the model")
    colors = read_materials(source, robot)
    links, elements = _by_name(source, robot.all("link")), _by_name(source, robot.all("joint"))
    if not links:
        raise source.error(robot, "has no <link>", f"add one; {EXPAND}, if it is a template")
    bodies = [read_link(source, e, colors, roots) for e in links.values()]
    joints, mimics = [], []
    for element in elements.values():
        joint, mimic = read_joint(source, element)
        joints.append(joint)
        mimics += [mimic] if mimic else []
    loops = _read_loops(source, robot, links)
    parts = _Parts(tuple(bodies), tuple(joints), links, elements, loops=loops)
    for name, message in impossible_inertias(Mechanism("", tuple(replace(b, shapes=()) for b in bodies))):
        source.report.suspect(f"link {name!r}: {message}; the numbers are kept", links[name].line)
    couplings = read_couplings(source, mimics, {j.name: j for j in joints})
    return _without_ground(source, replace(parts, couplings=couplings))


def _read_loops(source: Source, robot: Element, links: dict[str, Element]) -> tuple[Loop, ...]:
    out = []
    for name, element in _by_name(source, robot.all("loop_joint")).items():
        loop = read_loop(source, element)
        for end in (loop.body_a, loop.body_b):
            if end not in links:
                place = {"file": source.file, "line": element.line, "where": f"loop_joint {name!r}"}
                raise unknown_name("link", end, links, **place)
        if loop.body_a == loop.body_b:
            raise source.error(element, f"both its ends are on {loop.body_a!r}", "give two links")
        out.append(loop)
    return tuple(out)


def _robot_name(source: Source, robot: Element) -> str:
    name = robot.attributes.get("name", "")
    if not name:
        source.report.suspect("the robot has no name: 'robot' is used", robot.line)
    if len(name) > MAX_NAME:
        raise source.error(robot, f"its name has {len(name)} characters", f"give at most {MAX_NAME}")
    return name or "robot"


def _by_name(source: Source, elements: Sequence[Element]) -> dict[str, Element]:
    out: dict[str, Element] = {}
    for element in elements:
        name = source.name(element)
        if name in out:
            raise source.error(element, f"line {out[name].line} has another one with this name", "rename one of them")
        out[name] = element
    return out


def _without_ground(source: Source, parts: _Parts) -> _Parts:
    """Rename a link that has the name of the fixed world."""
    if GROUND not in parts.links:
        return parts
    new = f"{GROUND}_link"
    while new in parts.links:
        new += "_"
    line = parts.links[GROUND].line
    source.report.changed(f"link {GROUND!r} is renamed to {new!r}: {GROUND!r} is the name of the fixed world", line)

    def renamed(name: str) -> str:
        return new if name == GROUND else name

    return replace(
        parts,
        bodies=tuple(replace(b, name=renamed(b.name)) for b in parts.bodies),
        joints=tuple(replace(j, parent=renamed(j.parent), child=renamed(j.child)) for j in parts.joints),
        loops=tuple(replace(x, body_a=renamed(x.body_a), body_b=renamed(x.body_b)) for x in parts.loops),
        links={renamed(name): element for name, element in parts.links.items()},
    )


def _tree(source: Source, parts: _Parts, base: str, fixed: str) -> _Parts:
    """Return the parts as a tree with the ground as root."""
    root = _root(source, parts)
    joints = parts.joints
    if base == "free" or fixed == "keep":
        name = "root" if "root" not in parts.elements else "root_joint"
        while name in parts.elements:
            name += "_"
        joints = (Joint(name, "free" if base == "free" else "fixed", GROUND, root), *joints)
    if fixed == "keep":
        return replace(parts, joints=joints)
    merged = merge_fixed(parts.bodies, joints)
    for weld in merged.welds:
        by, name = f" (fixed joint {weld.joint!r})" if weld.joint else "", weld.body
        text = f"link {name!r} is merged into {weld.carrier!r}{by} and remains a frame"
        if weld.carrier == GROUND:
            weight = f"; its mass of {weld.mass:g} kg does not move" if weld.mass else ""
            floats = '; base="free" lets it float' if weld.mass and not weld.joint else ""
            text = f"link {name!r} is fixed to the ground{by} as a frame{weight}{floats}"
        into = "fixed to the ground" if weld.carrier == GROUND else "merged into others"
        group = Group(f"links without a joint of their own are {into} and remain frames", quote(name, 80))
        source.report.changed(text, parts.links[name].line, group if weld.joint else None)
    for name in merged.hidden:
        source.report.dropped(f"no frame {name!r} for the fixed joint: a link has its name", parts.elements[name].line)
    return replace(
        parts,
        bodies=merged.bodies,
        joints=merged.joints,
        frames=merged.frames,
        loops=tuple(move_loops(parts.loops, merged.carriers, source.report)),
        scenery=merged.ground_shapes,
    )


def _root(source: Source, parts: _Parts) -> str:
    """Return the only link that is not a child; raise ModelError unless the joints connect all links to a tree."""
    carried: dict[str, Joint] = {}
    for joint in parts.joints:
        element = parts.elements[joint.name]
        for role in ("parent", "child"):
            if (name := getattr(joint, role)) not in parts.links:
                place = {"file": source.file, "line": element.line, "where": f"joint {joint.name!r}, {role}"}
                raise unknown_name("link", name, parts.links, **place)
        if joint.child in carried:
            raise source.error(
                element,
                f"its child {joint.child!r} is already the child of joint {carried[joint.child].name!r}",
                "a link has one parent in URDF; remove one of the joints",
            )
        carried[joint.child] = joint
    loose = [name for name in parts.links if name not in carried]
    known = set(loose)
    for name in parts.links:
        chain = []
        while name not in known:
            known.add(name)
            chain.append(name)
            name = carried[name].parent
        if name in chain:
            circle = " -> ".join([name, *reversed(chain[chain.index(name) :][:20])])
            element = parts.elements[carried[name].name]
            raise source.error(element, f"the links form a circle: {circle}", "remove one joint of the circle")
    if len(loose) > 1:
        listed = ", ".join(quote(name) for name in loose[:10]) + (", ..." if len(loose) > 10 else "")
        raise source.error(
            parts.links[loose[1]],
            f"{len(loose)} links are children of no joint: {listed}",
            "a URDF has one root: connect the others by joints",
        )
    return loose[0]


def _remarks(source: Source, parts: _Parts, mechanism: Mechanism) -> None:
    """Report the numbers of parts that were read, inertias without mass, and crossed limits."""
    for name, message in massless_inertias(mechanism):
        line = parts.links[name].line if name in parts.links else None
        source.report.suspect(f"link {name!r}: {message}; the numbers are kept", line)
    for joint in mechanism.joints:
        for lower, upper in zip(joint.limits.lower, joint.limits.upper, strict=False):
            if lower > upper:
                line = parts.elements[joint.name].line if joint.name in parts.elements else None
                text = (
                    f"joint {joint.name!r}: the lower limit {lower:g} is above the upper limit {upper:g}; both are kept"
                )
                source.report.suspect(text, line)
    source.report.read(
        f"{len(parts.links)} links and {len(parts.elements)} joints: {len(mechanism.bodies)} bodies, "
        f"{mechanism.nv} degrees of freedom, {len(mechanism.frames)} frames, {len(mechanism.couplings)} couplings"
    )
