"""Reader of SDF: `read_sdf` for files, `read_sdf_text` for text; a report lists what was changed or dropped.

A link that is the child of two joints closes a loop, and the later joint is cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._support.tables import count_text
from ..algebra.vectors import Vector, dot, from_moments, times
from ..errors import ModelError, quote, unknown_name
from ..model.checks import impossible_inertias, massless_inertias
from ..model.construction import build_mechanism
from ..model.mechanism import Mechanism
from ..model.pairs import can_be_cut, joint_of, open_rings
from ..model.part_fields import free_name
from ..model.parts import (
    GROUND,
    Body,
    Coupling,
    ForceElement,
    Frame,
    Limits,
    Pair,
    Placement,
    Shape,
    compose,
    inverse,
)
from .merging import merge_fixed, move_loops
from .pairs import report_cuts
from .report import Group, Report, size_text
from .sdf_frames import MODEL, WORLD, Frames, first_model, limit_of, number_of, numbers_of, text_of
from .urdf import MAX_LOOPS, MAX_SHAPES, check_options
from .urdf_parts import placed_body, unit
from .xml import Element, Source, describe_element, mesh_file, parse_xml, read_bytes

KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
    "screw": "helical",
    "fixed": "fixed",
}
GEARBOX = "gearbox"
"""The type of joints that couple the angles of two others."""
PARALLEL = 1e-6
"""The largest sine or cosine of an angle between axes that count as parallel or perpendicular."""
SOLIDS = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def read_sdf(
    path: str | Path, *, base: str = "fixed", fixed: str = "merge", roots: Sequence[str | Path] = ()
) -> tuple[Mechanism, Report]:
    """Return the mechanism of an SDF file and the report of the import, or raise ModelError.

    Args:
        path: the file.
        base: "fixed" fixes links that no joint carries to the ground, "free" lets them float, as SDF itself does.
        fixed: "merge" merges links connected by fixed joints and keeps their names as frames; "keep" keeps the links.
        roots: folders searched for meshes and included models, in addition to the file's own.
    """
    data = read_bytes(path)
    return read_sdf_text(data, file=str(path), base=base, fixed=fixed, roots=(Path(path).parent, *roots))


def read_sdf_text(
    text: str | bytes,
    *,
    file: str = "<text>",
    base: str = "fixed",
    fixed: str = "merge",
    roots: Sequence[str | Path] = (),
) -> tuple[Mechanism, Report]:
    """Return the mechanism of an SDF text and the report of the import; `file` is its name in messages."""
    check_options(base, fixed)
    source = Source(file, Report(file))
    root = parse_xml(text, file=file)
    try:
        read = Frames(source, [Path(r) for r in roots])
        model, gravity = first_model(read, root)
        read.model(model, "", None, 0)
        mechanism = _mechanism(read, source.name(model), gravity, base, fixed, file)
    except ModelError as error:
        raise error.located(file) from None
    return mechanism, source.report


def _body(read: Frames, name: str) -> Body:
    """Return the body of a link; without <inertial> it has SDF's 1 kg and 1 kg m^2."""
    source, link = read.source, read.links[name]
    scope = name[: -len(source.name(link))]
    source.rest(link, ("name",), ("pose", "inertial", "visual", "collision", "gravity"))
    gravity = source.one(link, "gravity")
    if gravity is not None and gravity.text.strip() not in ("true", "1"):
        source.report.suspect(f"link {name!r} has no weight in the file, and has one here", gravity.line)
    shapes = tuple(s for e in link.children if e.tag in ("visual", "collision") if (s := _shape(read, e, scope, name)))
    inertial = source.one(link, "inertial")
    if inertial is None:
        group = Group("links have no <inertial>: each has SDF's 1 kg and 1 kg m^2", repr(name))
        source.report.suspect(f"link {name!r} has no <inertial>: it has SDF's 1 kg and 1 kg m^2", link.line, group)
        return Body(name, 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), shapes=shapes)
    source.rest(inertial, ("auto",), ("pose", "mass", "inertia"))
    if inertial.attributes.get("auto", "false") in ("true", "1"):
        raise source.error(inertial, 'auto="true" is not supported', "give <mass> and <inertia>")
    placement = read.placed(inertial, scope, name)
    mass = number_of(source, inertial, "mass", 1.0)
    if mass < 0:
        raise source.error(inertial, f"the mass is {mass:g} kg", "give a mass of zero or more")
    given = source.one(inertial, "inertia") or Element("inertia", {})
    defaults = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 0.0, "iyz": 0.0, "ixz": 0.0}
    source.rest(given, (), defaults)
    numbers = tuple(number_of(source, given, tag, x) for tag, x in defaults.items())
    return placed_body(source, inertial, name, mass, placement, from_moments(numbers), shapes)


def _shape(read: Frames, element: Element, scope: str, link: str) -> Shape | None:
    """Return a visual or collision of a link."""
    source, role = read.source, element.tag
    source.rest(element, ("name",), ("pose", "geometry", *(("material",) if role == "visual" else ())))
    placement = read.placed(element, scope, link)
    geometry, name = source.one(element, "geometry"), element.attributes.get("name", "")
    if geometry is None or not geometry.children:
        source.report.dropped(f"{describe_element(element)}: it has no geometry", element.line)
        return None
    solid = geometry.children[0]
    color = _color(source, element) if role == "visual" else None
    if solid.tag == "mesh":
        source.rest(solid, (), ("uri", "scale"))
        scale = source.one(solid, "scale")
        size = (1.0, 1.0, 1.0) if scale is None else numbers_of(source, scale, 3)
        file = mesh_file(source, solid, text_of(source, source.needed(solid, "uri")), read.roots)
        return Shape("mesh", size, placement, role, file, color, name)
    if solid.tag not in SOLIDS:
        source.report.dropped(f"{describe_element(solid)} of {describe_element(element)} of link {link!r}", solid.line)
        return None
    source.rest(solid, (), SOLIDS[solid.tag])
    size = tuple(
        x for tag in SOLIDS[solid.tag] for x in numbers_of(source, source.needed(solid, tag), 3 if tag == "size" else 1)
    )
    return Shape(solid.tag, size, placement, role, "", color, name)


@dataclass
class _Moving:
    """What a joint of the file becomes: pairs, massless bodies between them, couplings and springs."""

    pairs: list[Pair] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    springs: list[ForceElement] = field(default_factory=list)


def _ends(read: Frames, name: str) -> tuple[str, str]:
    """Return the links of a joint, parent and child; the name of the world is empty."""
    source, (scope, element) = read.source, read.joints[name]
    given = text_of(source, source.needed(element, "parent"))
    parent = "" if given == WORLD else read.link_of(f"{scope}{given}", element)
    child = read.link_of(read.attached[name], element)
    if parent == child:
        raise source.error(element, f"its parent and its child are {quote(child)}", "give two links")
    return parent, child


def _joint(read: Frames, name: str, taken: set[str]) -> _Moving:
    """Return a joint as pairs of bodies: two revolute ones if its axes are not perpendicular."""
    source, (scope, element) = read.source, read.joints[name]
    known = ("pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch")
    source.rest(element, ("name", "type"), known)
    type_ = source.text(element, "type")
    if type_ not in KINDS:
        place = {"file": source.file, "line": element.line, "where": f"joint {name!r}"}
        raise unknown_name("joint type", type_[:80], [*KINDS, GEARBOX], **place)
    kind = KINDS[type_]
    parent, child = _ends(read, name)
    axes = [_axis(read, name, scope, element, tag) for tag in ("axis", "axis2")]
    count = {"revolute": 1, "prismatic": 1, "helical": 1, "universal": 2}.get(kind, 0)
    for tag in ("axis", "axis2")[count:]:
        if lost := source.one(element, tag):
            source.report.dropped(f"<{tag}> of the {type_} joint {name!r}", lost.line)
    axes = axes[:count]
    places = read.relative(parent, name, element), read.relative(child, name, element)
    out = _Moving(couplings=[m for a in axes for m in a.mimic])
    if count == 2 and abs(dot(axes[0].xyz, axes[1].xyz)) > PARALLEL:
        between = free_name(f"{name}_link", taken)
        out.bodies = [Body(between)]
        _add(out, f"{name}_axis", "revolute", (parent or GROUND, between), (places[0], Placement()), axes[:1])
        _add(out, f"{name}_axis2", "revolute", (between, child), (Placement(), places[1]), axes[1:])
        source.report.changed(f"the {type_} joint {name!r} becomes two revolute joints in series", element.line)
        return out
    _add(out, name, kind, (parent or GROUND, child), places, axes, _pitch(read, element) if kind == "helical" else 0.0)
    return out


def _add(
    out: _Moving,
    name: str,
    kind: str,
    ends: tuple[str, str],
    places: tuple[Placement, Placement],
    axes: Sequence[_Axis],
    pitch: float = 0.0,
) -> None:
    """Add a pair with the limits and springs of its axes."""
    none = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
    limits = Limits(**{key: _of_axes(axes, key, x) for key, x in none.items()})
    damping, friction = (_of_axes(axes, key, 0.0) for key in ("damping", "friction"))
    first, second = axes[0].xyz if axes else (0.0, 0.0, 1.0), axes[1].xyz if len(axes) == 2 else None
    out.pairs.append(Pair(
        name, kind, *ends, *places, first, second, pitch, limits=limits, damping=damping, friction=friction
    ))  # fmt: skip
    if stiff := tuple((f"{key}_{k}", x) for k, a in enumerate(axes, 1) for key, x in a.spring):
        out.springs.append(ForceElement(f"{name}_spring", "joint_spring", *ends, coefficients=stiff))


def _joints(read: Frames) -> _Moving:
    """Return all joints of the file; one whose child has a joint already is cut."""
    out, source = _Moving(), read.source
    carried, taken = dict[str, str](), {*read.links, *read.joints}
    gears = {name: e for name, (_, e) in read.joints.items() if e.attributes.get("type") == GEARBOX}
    for joint, (_, element) in read.joints.items():
        made = _Moving() if joint in gears else _joint(read, joint, taken)
        for pair in made.pairs:
            cut = pair.body_b in carried
            if cut and not can_be_cut(pair):
                what = f"its child {pair.body_b!r} is that of joint {carried[pair.body_b]!r} too, and {pair.kind} is no"
                raise source.error(element, f"{what} loop", "exchange the order of the joints")
            carried.setdefault(pair.body_b, joint)
            out.pairs.append(replace(pair, cut=True) if cut else pair)
        out.bodies += made.bodies
        out.couplings += made.couplings
        out.springs += made.springs
        if len(out.pairs) - len(carried) > MAX_LOOPS:
            raise source.error(element, f"closes one of more than {MAX_LOOPS} loops", "split the model")
    turning = {frozenset((p.body_a, p.body_b)): p for p in reversed(out.pairs) if p.kind == "revolute"}
    out.couplings += [gear for name in gears if (gear := _gearbox(read, name, turning)) is not None]
    return out


def _gearbox(read: Frames, name: str, turning: Mapping[frozenset[str], Pair]) -> Coupling | None:
    """Return a gearbox as a coupling of the revolute joints by which its reference body carries its two links.

    The angle of the child is -ratio times that of the parent, about axis2 and axis, both seen from the reference body.
    `turning` has the revolute joints by the two links that they connect.
    """
    source, (scope, element) = read.source, read.joints[name]
    known = ("pose", "parent", "child", "axis", "axis2", "gearbox_ratio", "gearbox_reference_body")
    source.rest(element, ("name", "type"), known)
    given = text_of(source, source.needed(element, "gearbox_reference_body"))
    reference = "" if given == WORLD else read.link_of(f"{scope}{given}", element)
    found = []
    for link, tag in zip(_ends(read, name), ("axis", "axis2"), strict=True):
        pair = turning.get(frozenset((reference or GROUND, link or GROUND)))
        if pair is None:
            what = f"no revolute joint connects {quote(link or GROUND)} and {quote(reference or GROUND)}"
            source.report.suspect(f"the gearbox {name!r} is left out: {what}", element.line)
            return None
        outer = "" if pair.body_a == GROUND else pair.body_a
        own = times(read.relative(outer, name, element).rotation, _axis(read, name, scope, element, tag).xyz)
        cosine = float(dot(own, times(pair.placement_a.rotation, pair.axis)))
        if abs(cosine) < 1.0 - PARALLEL:
            what = f"its <{tag}> is not parallel to that of joint {pair.name!r}"
            source.report.suspect(f"the gearbox {name!r} is left out: {what}", element.line)
            return None
        found.append((pair.name, math.copysign(1.0, cosine) * (1.0 if pair.body_b == (link or GROUND) else -1.0)))
    (one, a), (two, b) = found
    return Coupling(name, two, ((one, -number_of(source, element, "gearbox_ratio", 1.0) * a * b),))


def _pitch(read: Frames, element: Element) -> float:
    """Return the pitch of a screw [m/rad]."""
    source = read.source
    if source.one(element, "screw_thread_pitch") is not None:
        return number_of(source, element, "screw_thread_pitch", 1.0) / (2.0 * math.pi)
    old = number_of(source, element, "thread_pitch", 1.0)  # rad per m, positive for a left-handed thread
    if abs(old) < 1e-12:
        raise source.error(element, f"the thread_pitch is {old:g}", "give screw_thread_pitch, in m per revolution")
    return -1.0 / old


def _axis(read: Frames, name: str, scope: str, joint: Element, tag: str) -> _Axis:
    """Return the <axis> or <axis2> of a joint, by default along z and without limits."""
    source, element = read.source, read.source.one(joint, tag)
    if element is None:
        return _Axis()
    source.rest(element, (), ("xyz", "limit", "dynamics", "mimic", "use_parent_model_frame"))
    xyz, old = source.one(element, "xyz"), source.one(element, "use_parent_model_frame")  # the latter before SDF 1.7
    x, y, z = (0.0, 0.0, 1.0) if xyz is None else unit(source, xyz, numbers_of(source, xyz, 3))
    within = MODEL if old is not None and old.text.strip() in ("true", "1") else ""
    within = within if xyz is None else xyz.attributes.get("expressed_in", within)
    if within:
        base = "" if within == WORLD else f"{scope}{within}"
        x, y, z = times(read.relative(name, base, element).rotation, (x, y, z))
    out = _Axis((x, y, z))
    if limit := source.one(element, "limit"):
        source.rest(limit, (), ("lower", "upper", "effort", "velocity"))
        low, high = (limit_of(source, limit, end, none) for end, none in (("lower", -math.inf), ("upper", math.inf)))
        if math.isfinite(low) or math.isfinite(high):
            out.lower, out.upper = (low,), (high,)
        for key in ("velocity", "effort"):
            most = limit_of(source, limit, key, math.inf)
            setattr(out, key, (most,) if 0 <= most < math.inf else ())  # SDF's -1 is no limit
    if dynamics := source.one(element, "dynamics"):
        source.rest(dynamics, (), ("damping", "friction", "spring_reference", "spring_stiffness"))
        damping, friction = (number_of(source, dynamics, key, 0.0) for key in ("damping", "friction"))
        out.damping, out.friction = (damping,) if damping else (), (friction,) if friction else ()
        if stiffness := number_of(source, dynamics, "spring_stiffness", 0.0):
            rest = number_of(source, dynamics, "spring_reference", 0.0)
            out.spring = (("stiffness", stiffness), ("rest", rest))
    if mimic := source.one(element, "mimic"):
        source.rest(mimic, ("joint", "axis"), ("multiplier", "offset", "reference"))
        ratio, offset, reference = (
            number_of(source, mimic, key, x) for key, x in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        other = f"{scope}{source.name(mimic, 'joint')}"
        if other not in read.joints:
            place = {"file": source.file, "line": mimic.line, "where": f"<mimic> of joint {name!r}"}
            raise unknown_name("joint", other, read.joints, **place)
        out.mimic = [Coupling(name, name, ((other, ratio),), offset - ratio * reference)]
    return out


@dataclass
class _Axis:
    """One axis of a joint: its direction, limits, dynamics, spring and coupling."""

    xyz: Vector = (0.0, 0.0, 1.0)
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    spring: tuple[tuple[str, float], ...] = ()
    mimic: list[Coupling] = field(default_factory=list)


def _of_axes(axes: Sequence[_Axis], key: str, none: float) -> tuple[float, ...]:
    """Return one number per axis, or nothing if no axis has one."""
    given = [getattr(a, key) for a in axes]
    return tuple((x or (none,))[0] for x in given) if any(given) else ()


def _mechanism(read: Frames, name: str, gravity: Vector, base: str, fixed: str, file: str) -> Mechanism:
    """Return the mechanism of what was read: a tree, with joints of links that have one already as loops."""
    source, report = read.source, read.source.report
    if not read.links:
        raise source.error(next(iter(read.nodes.values())).element, "has no <link>", "add one")
    count = sum(len(link.all("visual")) + len(link.all("collision")) for link in read.links.values())
    if count > MAX_SHAPES:
        link = next(iter(read.links.values()))
        raise source.error(link, f"its model has {count} shapes", f"use at most {MAX_SHAPES}; split the model")
    bodies = [_body(read, link) for link in read.links]
    for part, message in impossible_inertias(Mechanism("", tuple(replace(b, shapes=()) for b in bodies))):
        report.suspect(f"link {part!r}: {message}; the numbers are kept", read.links[part].line)
    read_all = _joints(read)
    bodies, couplings, springs = [*bodies, *read_all.bodies], read_all.couplings, read_all.springs
    pairs = [*_bases(read, read_all.pairs, "fixed" if read.static else base), *read_all.pairs]
    frames = [
        Frame(key, (link := read.link_of(key, e)), read.relative(link, key, e))
        for key, e in ((key, node.element) for key, node in read.nodes.items() if node.element.tag == "frame")
    ]
    joints, loops, guess = [joint_of(p) for p in pairs], [], ()
    if len({p.body_b for p in pairs}) < len(pairs):
        opened = open_rings(bodies, pairs, couplings=couplings, forces=springs, guess=())
        report_cuts(opened, report, lambda x: read.joints[x][1].line if x in read.joints else None)
        joints, loops, springs, guess = opened.joints, opened.loops, opened.forces, opened.guess
    joints = [replace(j, child_placement=None) if j.child_placement == Placement() else j for j in joints]
    bodies, joints, frames, loops, scenery = _merged(read, bodies, joints, frames, loops, fixed)
    by_child = {j.child: j.parent for j in joints}
    springs = [replace(x, body_a=by_child[x.body_b]) if x.body_b in by_child else x for x in springs]
    known = {j.name for j in joints}
    mechanism = build_mechanism(
        name, bodies, joints, frames=frames, loops=loops, couplings=[c for c in couplings if c.joint in known],
        forces=springs, gravity=gravity, scenery=scenery, source=file, guess=guess, lenient=True,
    )  # fmt: skip
    for part, message in massless_inertias(mechanism):
        report.suspect(f"link {part!r}: {message}; the numbers are kept", None)
    report.read(
        f"{count_text(len(read.links), 'link')} and {count_text(len(read.joints), 'joint')}: {size_text(mechanism)}, "
        f"{count_text(len(mechanism.frames), 'frame')}, {count_text(len(mechanism.loops), 'loop')}"
    )
    return mechanism


def _bases(read: Frames, pairs: Sequence[Pair], base: str) -> list[Pair]:
    """Return fixed or free joints from the ground to links that nothing carries: at least one per connected part."""
    report, carried = read.source.report, {p.body_b for p in pairs}
    neighbors: dict[str, set[str]] = {}
    for pair in pairs:
        neighbors.setdefault(pair.body_a, set()).add(pair.body_b)
        neighbors.setdefault(pair.body_b, set()).add(pair.body_a)
    taken, out, reached = set(read.joints), [], _connected(GROUND, neighbors)
    for link in sorted(read.links, key=lambda x: x in carried):  # those that nothing carries come first
        if link in carried and link in reached:
            continue
        reached |= _connected(link, neighbors)
        name = free_name("root" if not out else f"{link}_root", taken)
        place = read.relative("", link, read.links[link])
        out.append(Pair(name, "free" if base == "free" else "fixed", GROUND, link, place, cut=False))
        if base == "fixed" and not read.static:
            text = f'link {link!r} floats in SDF, and is fixed to the ground here; base="free" lets it float'
            report.changed(text, read.links[link].line)
    return out


def _connected(start: str, neighbors: dict[str, set[str]]) -> set[str]:
    out, stack = {start}, [start]
    while stack:
        for other in neighbors.get(stack.pop(), ()):
            if other not in out:
                out.add(other)
                stack.append(other)
    return out


def _merged(read: Frames, bodies, joints, frames: list[Frame], loops, fixed: str):
    """Return the parts with links on fixed joints merged into others, unless they are kept."""
    if fixed == "keep":
        return bodies, joints, frames, loops, ()
    report = read.source.report
    # a link on a fixed joint has its own frame where the joint has one elsewhere
    joints = [
        replace(j, placement=compose(j.placement, inverse(j.child_placement)), child_placement=None)
        if j.kind == "fixed" and j.child_placement is not None
        else j
        for j in joints
    ]
    merged = merge_fixed(bodies, joints)
    for weld in merged.welds:
        group = Group("links on fixed joints are merged into others and remain frames", quote(weld.body, 80))
        report.changed(f"link {weld.body!r} is merged into {weld.carrier!r} and remains a frame", None, group)
    where, names = merged.carriers, {f.name for f in frames} | {f.name for f in merged.carriers.values()}
    moved = [
        replace(f, body=where[f.body].body, placement=compose(where[f.body].placement, f.placement))
        if f.body in where
        else f
        for f in frames
    ]
    welded = [f for f in merged.frames if f.name not in names or f in where.values()]
    bases = {weld.joint for weld in merged.welds if weld.joint not in read.joints}
    out = [*moved, *(f for f in welded if f.name not in bases)]
    return merged.bodies, merged.joints, out, move_loops(loops, where, report), merged.ground_shapes


def _color(source: Source, visual: Element) -> tuple[float, float, float, float] | None:
    material = source.one(visual, "material")
    if material is None:
        return None
    source.rest(material, (), ("diffuse", "ambient", "specular", "emissive"))
    diffuse = source.one(material, "diffuse")
    if diffuse is None:
        return None
    red, green, blue, alpha = numbers_of(source, diffuse, 4)
    return red, green, blue, alpha
