"""Reader of URDF: `read_urdf` for files, `read_urdf_text` for text; a report lists what was changed or dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .._support.tables import count_text
from ..errors import InputError, ModelError, quote, unknown_name
from ..model.checks import impossible_inertias, massless_inertias
from ..model.construction import build_mechanism
from ..model.mechanism import Mechanism
from ..model.part_fields import MAX_NAME
from ..model.parts import GROUND, Body, Coupling, Frame, Joint, Loop, Shape
from .merging import merge_fixed, move_loops
from .report import Group, Report, size_text
from .urdf_parts import LOOP_TAGS, read_couplings, read_joint, read_link, read_loop, read_materials
from .xml import EXPAND, Element, Source, parse_xml, read_bytes

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
    source.rest(robot, ("name",), ("link", "joint", *LOOP_TAGS, "material"))
    for what, count, most in (
        ("links", len(robot.all("link")), MAX_LINKS),
        ("joints", len(robot.all("joint")), MAX_LINKS),
        ("loops", sum(len(robot.all(tag)) for tag in LOOP_TAGS), MAX_LOOPS),
        ("shapes", sum(len(link.children) for link in robot.all("link")), MAX_SHAPES + MAX_LINKS),
    ):
        if count > most:
            raise source.error(robot, f"has {count} {what}", f"use at most {most}; split the model")
    colors = read_materials(source, robot)
    links, elements = _by_name(source, robot.all("link")), _by_name(source, robot.all("joint"))
    if not links:
        template = any(x.tag.startswith("xacro:") for x in robot.children)
        remedy = EXPAND if template else "add one, or give the file that includes this one and calls its macros"
        raise source.error(robot, "has no <link>", remedy)
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
    for name, element in _by_name(source, [x for x in robot.children if x.tag in LOOP_TAGS]).items():
        loop = read_loop(source, element)
        for end in (loop.body_a, loop.body_b):
            if end not in links:
                place = {"file": source.file, "line": element.line, "where": f"{element.tag} {name!r}"}
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
        f"{count_text(len(parts.links), 'link')} and {count_text(len(parts.elements), 'joint')}: "
        f"{size_text(mechanism)}, {count_text(len(mechanism.frames), 'frame')}, "
        f"{count_text(len(mechanism.couplings), 'coupling')}"
    )
