"""Write a mechanism as SDF 1.10: links at their joints, joints at their parents, frames, springs, gravity, and loops.

Every pose is relative to the joint or link before it. SDF has no coordinates apart from the poses of its links: a loop
closes where they are. So a closed mechanism is written at an assembled position, from which coordinates are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

from .. import joints as joint_kinds
from ..algebra.rotations import rpy_of
from ..algebra.scalars import Scalar
from ..algebra.vectors import times, transpose
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import plain_number
from ..model.part_fields import free_name
from ..model.parts import GROUND, Body, Coupling, ForceElement, Frame, Joint, Loop, Placement, Shape, compose, inverse
from .merging import displacement, loop_gap
from .report import Group, Report
from .series import EARTH, Series, commented, ends, in_series, linear_couplings, report_acting, report_losses

KINDS = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "helical": "screw",
    "universal": "universal",
    "spherical": "ball",
    "fixed": "fixed",
    "free": "",
}
"""The kinds of joints and loops that SDF has, by the names of Kinetree; a link without a joint is free."""
WORLD, MODEL = "world", "__model__"
"""SDF's names of the ground and of the frame of a model."""
CLOSED = 1e-9
"""The largest residual of a loop that counts as closed [rad, or m per meter of the largest offset]."""


@dataclass(frozen=True)
class _Link:
    """A body of the file, the joint that carries it, the displacement of that joint in the file, and its place."""

    name: str
    body: Body
    joint: Joint
    start: Placement
    at: tuple[float, ...]
    parent: str


def write_sdf(mechanism: Mechanism, position: Mapping[str, Sequence[float]] | None = None) -> tuple[str, Report]:
    """Return the mechanism as SDF, at the values of its parameters, and a report of what is left out or changed.

    `position` has coordinates by joint at which loops close; the coordinates of the file are zero there. Without it,
    they are those of the mechanism. A comment on top of the text has the same list as the report.
    """
    report = Report(mechanism.name)
    report_losses(mechanism, report, ("force", "loop", "coupling", "gravity"), what="SDF")
    values, parts = (
        {p.name: p.value for p in mechanism.parameters},
        ("bodies", "joints", "frames", "loops", "couplings"),
    )
    plain = {key: resolve_parts(getattr(mechanism, key), values) for key in (*parts, "forces", "gravity")}
    m = replace(mechanism, parameters=(), **plain)
    inner = any(j.kind == "free" and j.parent != GROUND for j in m.joints)
    position = None if inner else position
    if position:
        report.changed("coordinates are counted from an assembled position, at which the loops close")
    names = _link_names(m, report)
    taken = set(names.values())
    framed = {f.name: free_name(f.name.replace("::", "_"), taken) for f in m.frames}
    for name, new in framed.items():
        if name != new:
            report.changed(f"frame {name!r} is named {new!r}: SDF has another use for the name")
    own = _joint_names(m, taken, report)
    couplings = [_renamed(c, own) for c in m.couplings]
    links: list[_Link] = []
    for body, joint in zip(m.bodies, m.joints, strict=True):
        given = tuple(position[joint.name]) if position else ()
        kept = KINDS.keys() - ({"free"} if inner else {"universal"} if position else set())
        chain = in_series(replace(joint, name=own[joint.name]), kept, taken, report, "SDF")
        links += _links(chain, body, names, taken, given)
        couplings += chain.couplings
    starts = {x.joint.name: x.at[0] for x in links if len(x.at) == 1}
    springs, mimics = _springs(m.forces, links, starts, report), _mimics(couplings, starts, report)
    gravity = tuple(map(float, m.gravity))
    body_lines: list[str] = _ground(m, framed, taken, report)
    for link in links:
        if link.joint.kind == "free":
            report.changed(f'joint {link.joint.name!r} (free): a link without a joint is free, with base="free"')
        else:
            body_lines += _joint(link, springs.get(link.joint.name, ""), mimics.get(link.joint.name, ""))
        body_lines += _link(link, report)
    for frame in m.frames:
        if frame.body != GROUND:
            body_lines += _frame(replace(frame, name=framed[frame.name]), names[frame.body])
    body_lines += _loop_joints(m, names, own, position, report)
    world = gravity != EARTH
    lines = ['<?xml version="1.0"?>', '<sdf version="1.10">']
    lines += [f"<world name={quoteattr(m.name)}>", f"<gravity>{_text(gravity)}</gravity>"] if world else []
    lines += [
        f"<model name={quoteattr(m.name)}>",
        *body_lines,
        "</model>",
        *(["</world>"] if world else []),
        "</sdf>",
        "",
    ]
    return commented("\n".join(lines), report), report


def _link_names(m: Mechanism, report: Report) -> dict[str, str]:
    """Return the names of links by body: SDF reserves some, and :: separates models."""
    taken: set[str] = set()
    out = {GROUND: WORLD}
    for body in m.bodies:
        name = body.name.replace("::", "_")
        if name == WORLD or (name.startswith("__") and name.endswith("__")):
            name = f"{name.strip('_')}_link"
        out[body.name] = free_name(name, taken)
        if out[body.name] != body.name:
            report.changed(f"body {body.name!r} is named {out[body.name]!r}: SDF has another use for the name")
    return out


def _joint_names(m: Mechanism, taken: set[str], report: Report) -> dict[str, str]:
    """Return the names of joints and loops, and add them to `taken`: in SDF they differ from those of links."""
    names = [*(j.name for j in m.joints), *(x.name for x in m.loops)]
    out = {}
    for name in names:
        new = name.replace("::", "_")
        out[name] = free_name(new if new not in taken else f"{new}_joint", taken)
        if out[name] != name:
            group = Group("joints have other names: in SDF a link and a joint cannot have the same", repr(name))
            report.changed(f"joint {name!r} is named {out[name]!r}: a link or frame has the name", group=group)
    return out


def _renamed(coupling: Coupling, own: Mapping[str, str]) -> Coupling:
    terms = tuple((own[joint], ratio) for joint, ratio in coupling.terms)
    return replace(coupling, joint=own[coupling.joint], terms=terms)


def _links(
    chain: Series, body: Body, names: Mapping[str, str], taken: set[str], given: tuple[float, ...]
) -> list[_Link]:
    """Return the links of a joint's chain, with massless ones between its single joints."""
    out, parent = [], names[chain.joints[0].parent]
    for k, single in enumerate(chain.joints):
        whole, last = len(chain.joints) == 1, single is chain.joints[-1]
        name = names[body.name] if last else free_name(f"{single.name}_link", taken)
        at = given if whole else given[k : k + 1]
        start = displacement(single, at) if at else Placement()
        out.append(_Link(name, body if last else Body(name), single, start, at, parent))
        parent = name
    return out


def _springs(
    forces: Sequence[ForceElement], links: Sequence[_Link], starts: Mapping[str, float], report: Report
) -> dict[str, str]:
    """Return the elements of springs in joints by the joint; other forces are reported."""
    out = {}
    for force in forces:
        chain = [x for x in links if x.body.name == force.body_b]
        found = chain[-1].joint if chain else None
        if force.kind != "joint_spring" or found is None or joint_kinds.kind(found.kind).NV != 1 or found.child == "":
            report_acting(report, f"{force.kind} {force.name!r}")
            continue
        numbers = dict(force.coefficients)
        if any(x and key not in ("stiffness_1", "rest_1") for key, x in numbers.items()):
            report_acting(report, f"{force.kind} {force.name!r} of several axes")
            continue
        if found.name in out:
            report_acting(report, f"{force.kind} {force.name!r}, the second one of joint {found.name!r}")
            continue
        rest = plain_number(numbers.get("rest_1", 0.0)) - starts.get(found.name, 0.0)
        stiffness = _text([numbers.get("stiffness_1", 0.0)])
        out[found.name] = (
            f"<spring_reference>{_text([rest])}</spring_reference><spring_stiffness>{stiffness}</spring_stiffness>"
        )
    return out


def _mimics(couplings: Sequence[Coupling], starts: Mapping[str, float], report: Report) -> dict[str, str]:
    """Return the <mimic> elements by joint; couplings of other forms are reported."""
    out = {}
    for coupling, other, ratio in linear_couplings(couplings, report, single=True):
        offset = plain_number(coupling.offset) + ratio * starts.get(other, 0.0) - starts.get(coupling.joint, 0.0)
        numbers = f"<multiplier>{_text([ratio])}</multiplier><offset>{_text([offset])}</offset><reference>0</reference>"
        out[coupling.joint] = f"<mimic joint={quoteattr(other)}>{numbers}</mimic>"
    return out


def _ground(m: Mechanism, framed: Mapping[str, str], taken: set[str], report: Report) -> list[str]:
    """Return a link fixed to the world, which has the shapes and frames of the ground, where there are any.

    A model without bodies has that link alone: SDF has no model without links.
    """
    frames = [replace(f, name=framed[f.name]) for f in m.frames if f.body == GROUND]
    if not frames and not m.scenery and m.bodies:
        return []
    name = free_name("ground_link", taken)
    fixed = Joint(free_name(f"{name}_fixed", taken), "fixed", GROUND, name)
    link = _Link(name, Body(name, shapes=m.scenery), fixed, Placement(), (), WORLD)
    return [*_joint(link, "", ""), *_link(link, report), *(x for f in frames for x in _frame(f, name))]


def _joint(link: _Link, spring: str, mimic: str) -> Iterator[str]:
    joint, kind = link.joint, joint_kinds.kind(link.joint.kind)
    yield f"<joint name={quoteattr(joint.name)} type={quoteattr(KINDS[joint.kind])}>"
    yield _pose(joint.placement, MODEL if link.parent == WORLD else link.parent)
    yield f"<parent>{escape(link.parent)}</parent><child>{escape(link.name)}</child>"
    if "pitch" in kind.DATA:
        yield _pitch(joint.pitch)
    yield from _axes(joint, link.at, spring, mimic)
    yield "</joint>"


def _pitch(pitch: Scalar) -> str:
    return f"<screw_thread_pitch>{_text([2.0 * math.pi * float(pitch)])}</screw_thread_pitch>"  # m per revolution


def _axes(joint: Joint, at: Sequence[float], spring: str, mimic: str) -> Iterator[str]:
    kind = joint_kinds.kind(joint.kind)
    if kind.NV not in (1, 2):
        return
    axes = transpose(kind.frame(joint))
    for k, axis in enumerate([axes[2]] if kind.NV == 1 else axes[:2]):
        tag = "axis2" if k else "axis"
        start = at[k] if k < len(at) else 0.0
        low, high = (
            ends(x[k : k + 1], s * math.inf) - start for s, x in ((-1, joint.limits.lower), (1, joint.limits.upper))
        )
        limit = f"<lower>{_number(low)}</lower><upper>{_number(high)}</upper>"
        for key, numbers in (("effort", joint.limits.effort), ("velocity", joint.limits.velocity)):
            most = ends(numbers[k : k + 1], math.inf)
            limit += f"<{key}>{_number(most)}</{key}>" if math.isfinite(most) else ""
        dynamics = "".join(
            f"<{key}>{_text(x[k : k + 1])}</{key}>"
            for key, x in (("damping", joint.damping), ("friction", joint.friction))
            if any(x)
        )
        dynamics = f"<dynamics>{dynamics}{spring}</dynamics>" if dynamics or spring else ""
        yield f"<{tag}><xyz>{_text(axis)}</xyz><limit>{limit}</limit>{dynamics}{mimic}</{tag}>"


def _link(link: _Link, report: Report) -> Iterator[str]:
    free = link.joint.kind == "free"
    yield f"<link name={quoteattr(link.name)}>"
    yield _pose(compose(link.joint.placement, link.start) if free else link.start, MODEL if free else link.joint.name)
    body = link.body
    if not body.mass:
        report.changed(f"link {link.name!r} is massless: Gazebo takes no such links")
    tags = ("ixx", "iyy", "izz", "ixy", "iyz", "ixz")
    inertia = "".join(f"<{tag}>{_text([x])}</{tag}>" for tag, x in zip(tags, body.inertia, strict=True))
    center = Placement(body.com)
    yield f"<inertial>{_pose(center)}<mass>{_text([body.mass])}</mass><inertia>{inertia}</inertia></inertial>"
    for k, shape in enumerate(body.shapes):
        yield from _shape(shape, f"{shape.role}{k + 1}")
    yield "</link>"


def _shape(shape: Shape, name: str) -> Iterator[str]:
    keys = {"box": ("size",), "sphere": ("radius",)}.get(shape.kind, ("radius", "length"))
    if shape.kind == "mesh":
        path = f"file://{shape.file}" if shape.file.startswith("/") else shape.file
        solid = f"<uri>{escape(path)}</uri><scale>{_text(shape.size or (1.0, 1.0, 1.0))}</scale>"
    elif shape.kind == "box":
        solid = f"<size>{_text(shape.size)}</size>"
    else:
        solid = "".join(f"<{key}>{_text([x])}</{key}>" for key, x in zip(keys, shape.size, strict=True))
    color = ""
    if shape.color is not None:
        color = f"<material><ambient>{_text(shape.color)}</ambient><diffuse>{_text(shape.color)}</diffuse></material>"
    yield f"<{shape.role} name={quoteattr(shape.name or name)}>{_pose(shape.placement)}"
    yield f"<geometry><{shape.kind}>{solid}</{shape.kind}></geometry>{color}</{shape.role}>"


def _frame(frame: Frame, link: str) -> Iterator[str]:
    yield f"<frame name={quoteattr(frame.name)} attached_to={quoteattr(link)}>{_pose(frame.placement)}</frame>"


def _loop_joints(
    m: Mechanism,
    names: Mapping[str, str],
    own: Mapping[str, str],
    position: Mapping[str, Sequence[float]] | None,
    report: Report,
) -> Iterator[str]:
    """Return loops as joints whose child has another joint already; loops that do not close are reported."""
    poses = {GROUND: Placement()}
    for joint in m.joints:
        moved = displacement(joint, position[joint.name]) if position else Placement()
        poses[joint.child] = compose(compose(poses[joint.parent], joint.placement), moved)
    for loop in m.loops:
        a, b = compose(poses[loop.body_a], loop.placement_a), compose(poses[loop.body_b], loop.placement_b)
        between = compose(inverse(a), b)
        size = max(1.0, *(abs(float(x)) for x in (*a.translation, *b.translation)))
        known = KINDS.get(loop.kind)
        if not known:
            report_acting(report, f"{loop.kind} loop {loop.name!r}")
        elif loop_gap(loop, between) > CLOSED * size:
            report_acting(report, f"loop {loop.name!r}, which does not close at the position of the file")
        else:
            yield from _loop_joint(replace(loop, name=own[loop.name]), between, names)


def _loop_joint(loop: Loop, between: Placement, names: Mapping[str, str]) -> Iterator[str]:
    """Return a joint at frame b in body b, or at frame a if b is the ground, which is no child."""
    kind = joint_kinds.kind(loop.kind)
    exchanged = loop.body_b == GROUND
    parent, child = (loop.body_b, loop.body_a) if exchanged else (loop.body_a, loop.body_b)
    place = loop.placement_a if exchanged else loop.placement_b
    joint = Joint(loop.name, loop.kind, parent, child, axis=loop.axis, axis2=loop.axis2, pitch=loop.pitch)
    back = transpose(between.rotation)  # from frame a to frame b
    axis, second = transpose(kind.frame(joint))[2], None
    if kind.NV == 2:
        axis, second = transpose(kind.frame(joint))[:2]
    yield f"<joint name={quoteattr(loop.name)} type={quoteattr(KINDS[loop.kind])}>"
    yield _pose(place, names[child])
    yield f"<parent>{escape(names[parent])}</parent><child>{escape(names[child])}</child>"
    if "pitch" in kind.DATA:
        yield _pitch(loop.pitch)
    if kind.NV in (1, 2):
        one, two = (axis, second) if not exchanged or second is None else (second, axis)
        turn = back if not exchanged else between.rotation
        first = times(turn, one) if second is not None or not exchanged else one
        yield f"<axis><xyz>{_text(first)}</xyz></axis>"
        if two is not None:
            yield f"<axis2><xyz>{_text(two)}</xyz></axis2>"
    yield "</joint>"


def _pose(placement: Placement, relative_to: str = "") -> str:
    to = f" relative_to={quoteattr(relative_to)}" if relative_to else ""
    return f"<pose{to}>{_text((*placement.translation, *rpy_of(placement.rotation)))}</pose>"


def _number(x: float) -> str:
    return _text([max(-1e16, min(x, 1e16))])  # SDF's numbers for no limit


def _text(numbers: Sequence[Scalar]) -> str:
    return " ".join(repr(float(x)) for x in numbers)
