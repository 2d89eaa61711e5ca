"""Reader of SDF: `read_sdf` for files, `read_sdf_text` for text; a report lists what was changed or dropped.

Poses may be relative to any link, joint, frame or model. Placements are composed along the shortest way between two of
them, so that a pose relative to its own joint is exact. A link that is the child of two joints closes a loop, and the
later joint is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..algebra.rotations import from_quaternion, from_rpy
from ..algebra.vectors import IDENTITY, Vector, from_moments, matmul, symmetric, times, to_moments, transpose
from ..errors import ModelError, quote, unknown_name
from ..model.checks import impossible_inertias, massless_inertias
from ..model.construction import build_mechanism
from ..model.mechanism import Mechanism
from ..model.pairs import can_be_cut, joint_of, open_rings
from ..model.part_fields import MAX_NAME, free_name
from ..model.parts import (
    GROUND,
    Body,
    Coupling,
    ForceElement,
    Frame,
    Joint,
    Limits,
    Pair,
    Placement,
    Shape,
    compose,
    inverse,
)
from .fields import strict_floats
from .merging import merge_fixed, move_loops
from .pairs import report_cuts
from .report import Group, Report
from .urdf import MAX_LINKS, MAX_LOOPS, MAX_SHAPES, check_options
from .urdf_shapes import mesh_file, unit
from .xml import Element, Source, describe_element, parse_xml, read_bytes

KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "ball": "spherical",
    "universal": "universal",
    "screw": "helical",
    "fixed": "fixed",
}
WORLD, MODEL = "world", "__model__"
UNLIMITED = 1e15
"""Numbers above it are SDF's for no limit, 1e16 [rad, m]."""
WEIGHT = (0.0, 0.0, -9.8)
"""The gravity of a world that gives none [m/s^2]."""
NEAR = 64
"""The largest number of frames between two that are composed one by one; others meet in the world."""
SOLIDS = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def read_sdf(
    path: str | Path, *, base: str = "fixed", fixed: str = "merge", roots: Sequence[str | Path] = ()
) -> tuple[Mechanism, Report]:
    """Return the mechanism of an SDF file and the report of the import, or raise ModelError.

    Args:
        path: the file.
        base: "fixed" fixes links that no joint carries to the ground, "free" lets them float, as SDF itself does.
        fixed: "merge" merges links connected by fixed joints and keeps their names as frames; "keep" keeps the links.
        roots: folders searched for meshes, in addition to the file's own.
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
        model, gravity = _model(source, root)
        read = _Reading(source, [Path(r) for r in roots])
        read.model(model, "", None, 0)
        mechanism = _mechanism(read, source.name(model), gravity, base, fixed, file)
    except ModelError as error:
        raise error.located(file) from None
    return mechanism, source.report


def _model(source: Source, root: Element) -> tuple[Element, Vector]:
    """Return the only <model>, and the gravity of its world."""
    if root.tag != "sdf":
        raise source.error(root, "the root element is not <sdf>", "give an SDF file")
    source.rest(root, ("version",), ("model", "world"))
    worlds = root.all("world")
    gravity: Vector = (0.0, 0.0, -9.81)
    models = root.all("model")
    for world in worlds[:1]:
        source.rest(world, ("name",), ("model", "gravity"))
        given = source.one(world, "gravity")
        gravity = WEIGHT if given is None else _vector(source, given)
        if given is None:
            source.report.changed("gravity is 9.8 m/s^2, SDF's own: the world gives none", world.line)
        models = models + world.all("model")
    for world in worlds[1:]:
        source.report.dropped(f"{describe_element(world)}: there is a world already", world.line)
    if not models:
        raise source.error(root, "has no <model>", "add one; <include> is not read: copy the model into the file")
    for other in models[1:]:
        source.report.dropped(f"{describe_element(other)}: the first model of the file is read", other.line)
    return models[0], gravity


@dataclass(slots=True)
class _Node:
    """A frame of the file: the one that its pose is relative to (empty: the world), its pose there, and its element."""

    base: str
    pose: Placement
    element: Element
    depth: int = -1
    absolute: Placement | None = None


@dataclass
class _Reading:
    """What is read from a model and its nested models, by scoped names such as `inner::link`."""

    source: Source
    roots: Sequence[Path]
    nodes: dict[str, _Node] = field(default_factory=dict)
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, tuple[str, Element]] = field(default_factory=dict)
    attached: dict[str, str] = field(default_factory=dict)
    static: bool = False
    shapes: int = 0

    def model(self, model: Element, scope: str, outer: str | None, depth: int) -> None:
        """Note the frames of a model, with the prefix `scope` of its names, in the scope `outer`."""
        source = self.source
        if depth > 10:
            raise source.error(model, "models are nested more than 10 deep", "flatten the model")
        source.name(model)
        children = ("pose", "link", "joint", "frame", "model", "static")
        source.rest(model, ("name", "canonical_link", "placement_frame"), children)
        if "placement_frame" in model.attributes:
            raise source.error(model, "placement_frame is not supported", "give the pose of the model frame itself")
        own = f"{scope}{MODEL}"
        default = "" if outer is None else f"{outer}{MODEL}"
        self.add(own, model, self.pose(model, outer or "", default))
        static = source.one(model, "static")
        self.static |= static is not None and static.text.strip() in ("true", "1")
        for element in model.all("link"):
            name = self.scoped(element, scope)
            self.links[name] = element
            self.add(name, element, self.pose(element, scope, own))
        for element in model.all("joint"):
            name = self.scoped(element, scope)
            child = f"{scope}{_text(source, source.needed(element, 'child'))}"
            self.joints[name] = scope, element
            self.add(name, element, self.pose(element, scope, child))
            self.attached[name] = child
        for element in model.all("frame"):
            name = self.scoped(element, scope)
            to = element.attributes.get("attached_to", "")
            self.attached[name] = f"{scope}{to}" if to else own
            self.add(name, element, self.pose(element, scope, self.attached[name]))
            source.rest(element, ("name", "attached_to"), ("pose",))
        for element in model.all("model"):
            self.model(element, f"{scope}{source.name(element)}::", scope, depth + 1)
        inner = [f"{scope}{source.name(e)}" for e in model.all("link")]
        inner += [f"{scope}{source.name(e)}::{MODEL}" for e in model.all("model")]
        canonical = model.attributes.get("canonical_link", "")
        if canonical or inner:
            self.attached[own] = f"{scope}{canonical}" if canonical else inner[0]
        if len(self.links) > MAX_LINKS or len(self.joints) > MAX_LINKS or len(self.nodes) > 4 * MAX_LINKS:
            raise source.error(model, f"has more than {MAX_LINKS} links or joints", "split the model")

    def scoped(self, element: Element, scope: str) -> str:
        """Return the name of an element with its scope, at most MAX_NAME characters."""
        name = f"{scope}{self.source.name(element)}"
        if name == GROUND:
            raise self.source.error(element, f"{GROUND!r} is the name of the fixed world here", "rename it")
        if len(name) > MAX_NAME:
            raise self.source.error(element, f"its name has {len(name)} characters", f"give at most {MAX_NAME}")
        return name

    def add(self, name: str, element: Element, node: tuple[str, Placement]) -> None:
        """Note a frame, whose name must be new."""
        if name in self.nodes:
            line = self.nodes[name].element.line
            raise self.source.error(element, f"line {line} has another {quote(name)}", "rename one of them")
        self.nodes[name] = _Node(*node, element)

    def pose(self, element: Element, scope: str, default: str) -> tuple[str, Placement]:
        """Return the frame that the <pose> of an element is relative to, and the placement in it."""
        source, found = self.source, self.source.one(element, "pose")
        if found is None:
            return default, Placement()
        source.rest(replace(found, text=""), ("relative_to", "degrees", "rotation_format"))
        to = found.attributes.get("relative_to", "")
        base = default if not to else "" if to == WORLD else f"{scope}{to}"
        form = found.attributes.get("rotation_format", "euler_rpy")
        if not found.text:
            return base, Placement()
        if form == "quat_xyzw":
            x, y, z, *turn = _numbers(source, found, 7)
            return base, Placement((x, y, z), from_quaternion(unit(source, found, tuple(turn))))
        if form != "euler_rpy":
            raise source.error(found, f"the rotation_format is {quote(form)}", "give euler_rpy or quat_xyzw")
        x, y, z, *angles = _numbers(source, found, 6)
        degrees = found.attributes.get("degrees", "false") in ("true", "1")
        roll, pitch, yaw = (math.radians(a) for a in angles) if degrees else angles
        return base, Placement((x, y, z), from_rpy(roll, pitch, yaw))

    def link_of(self, name: str, element: Element) -> str:
        """Return the link that a frame is attached to."""
        start, seen = name, set[str]()
        while name not in self.links:
            if name not in self.nodes or name not in self.attached or name in seen:
                circle = name in seen
                place = {"file": self.source.file, "line": element.line, "where": describe_element(element)}
                if circle:
                    raise ModelError(f"{quote(start)} is attached to itself", remedy="attach it to a link", **place)
                raise unknown_name("link or frame", name, [*self.links, *self.nodes], **place)
            seen.add(name)
            name = self.attached[name]
        self.attached.update(dict.fromkeys(seen, name))  # long chains are followed once
        return name

    def node(self, name: str, element: Element) -> _Node:
        """Return a frame with its depth, the number of frames between it and the world."""
        chain: dict[str, _Node] = {}
        at, by = name, element
        while at and (node := self.find(at, by)).depth < 0:
            if at in chain:
                raise self.source.error(by, f"its pose is relative to itself, by {quote(at)}", "remove relative_to")
            chain[at] = node
            at, by = node.base, node.element
        before, depth = (self.nodes[at].absolute, self.nodes[at].depth) if at else (None, 0)
        for node in reversed(chain.values()):
            depth += 1
            node.depth = depth
            node.absolute = before = compose(before or Placement(), node.pose)
        return self.nodes[name]

    def find(self, name: str, element: Element) -> _Node:
        """Return a frame by its scoped name."""
        if name not in self.nodes:
            place = {"file": self.source.file, "line": element.line, "where": describe_element(element)}
            raise unknown_name("frame", name, self.nodes, **place)
        return self.nodes[name]

    def relative(self, outer: str, inner: str, element: Element) -> Placement:
        """Return the pose of a frame in another one; an empty name is the world."""
        if inner:
            self.node(inner, element)
        if outer:
            self.node(outer, element)
        down, up = Placement(), Placement()
        a, b = outer, inner
        for _ in range(NEAR):
            if a == b:
                return compose(inverse(up), down) if up != Placement() else down
            if (self.nodes[b].depth if b else 0) >= (self.nodes[a].depth if a else 0):
                down = compose(self.nodes[b].pose, down)
                b = self.nodes[b].base
            else:
                up = compose(self.nodes[a].pose, up)
                a = self.nodes[a].base
        world = [self.nodes[x].absolute or Placement() if x else Placement() for x in (outer, inner)]
        return compose(inverse(world[0]), world[1])

    def placed(self, element: Element, scope: str, link: str) -> Placement:
        """Return the placement of an element of a link in the link's frame."""
        base, placement = self.pose(element, scope, link)
        return placement if base == link else compose(self.relative(link, base, element), placement)

    def body(self, name: str) -> Body:
        """Return the body of a link; without <inertial> it has SDF's 1 kg and 1 kg m^2."""
        source, link = self.source, self.links[name]
        scope = name[: -len(source.name(link))]
        source.rest(link, ("name",), ("pose", "inertial", "visual", "collision"))
        shapes = tuple(
            s for e in link.children if e.tag in ("visual", "collision") if (s := self.shape(e, scope, name))
        )
        inertial = source.one(link, "inertial")
        if inertial is None:
            group = Group("links have no <inertial>: each has SDF's 1 kg and 1 kg m^2", repr(name))
            source.report.suspect(f"link {name!r} has no <inertial>: it has SDF's 1 kg and 1 kg m^2", link.line, group)
            return Body(name, 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), shapes=shapes)
        source.rest(inertial, ("auto",), ("pose", "mass", "inertia"))
        if inertial.attributes.get("auto", "false") in ("true", "1"):
            raise source.error(inertial, 'auto="true" is not supported', "give <mass> and <inertia>")
        placement = self.placed(inertial, scope, name)
        mass = _child_number(source, inertial, "mass", 1.0)
        if mass < 0:
            raise source.error(inertial, f"the mass is {mass:g} kg", "give a mass of zero or more")
        given = source.one(inertial, "inertia")
        tags = ("ixx", "iyy", "izz", "ixy", "iyz", "ixz")
        if given is not None:
            source.rest(given, (), tags)
        numbers = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        if given is not None:
            numbers = tuple(_child_number(source, given, tag, x) for tag, x in zip(tags, numbers, strict=True))
        R = placement.rotation
        tensor = from_moments(numbers)
        if R != IDENTITY:
            tensor = symmetric(matmul(matmul(R, tensor), transpose(R)))
        if not all(math.isfinite(x) for row in tensor for x in row):
            raise source.error(inertial, "the inertia is too large for doubles", "check its units: kg m^2")
        return Body(name, mass, placement.translation, to_moments(tensor), shapes)

    def shape(self, element: Element, scope: str, link: str) -> Shape | None:
        """Return a visual or collision of a link."""
        source, role = self.source, element.tag
        self.shapes += 1
        if self.shapes > MAX_SHAPES:
            raise source.error(element, f"is one of more than {MAX_SHAPES} shapes", "split the model")
        source.rest(element, ("name",), ("pose", "geometry", *(("material",) if role == "visual" else ())))
        placement = self.placed(element, scope, link)
        geometry, name = source.one(element, "geometry"), element.attributes.get("name", "")
        if geometry is None or not geometry.children:
            source.report.dropped(f"{describe_element(element)}: it has no geometry", element.line)
            return None
        solid = geometry.children[0]
        color = _color(source, element) if role == "visual" else None
        if solid.tag == "mesh":
            source.rest(solid, (), ("uri", "scale"))
            scale = source.one(solid, "scale")
            size = (1.0, 1.0, 1.0) if scale is None else _numbers(source, scale, 3)
            file = mesh_file(source, solid, _text(source, source.needed(solid, "uri")), self.roots)
            return Shape("mesh", size, placement, role, file, color, name)
        if solid.tag not in SOLIDS:
            source.report.dropped(
                f"{describe_element(solid)} of {describe_element(element)} of link {link!r}", solid.line
            )
            return None
        source.rest(solid, (), SOLIDS[solid.tag])
        size = tuple(
            x
            for tag in SOLIDS[solid.tag]
            for x in _numbers(source, source.needed(solid, tag), 3 if tag == "size" else 1)
        )
        return Shape(solid.tag, size, placement, role, "", color, name)

    def pair(self, name: str) -> tuple[Pair, list[Coupling], list[ForceElement]]:
        """Return a joint as a pair of bodies, its couplings, and its spring."""
        source, (scope, element) = self.source, self.joints[name]
        known = ("pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch")
        source.rest(element, ("name", "type"), known)
        type_ = source.text(element, "type")
        if type_ not in KINDS:
            place = {"file": source.file, "line": element.line, "where": f"joint {name!r}"}
            raise unknown_name("joint type", type_[:80], KINDS, **place)
        kind = KINDS[type_]
        parent_name = _text(source, source.needed(element, "parent"))
        parent = "" if parent_name == WORLD else self.link_of(f"{scope}{parent_name}", element)
        child = self.link_of(self.attached[name], element)
        if parent == child:
            raise source.error(element, f"its parent and its child are {quote(child)}", "give two links")
        axes = [self.axis(name, scope, element, tag) for tag in ("axis", "axis2")]
        count = {"revolute": 1, "prismatic": 1, "helical": 1, "universal": 2}.get(kind, 0)
        for tag in ("axis", "axis2")[count:]:
            if lost := source.one(element, tag):
                source.report.dropped(f"<{tag}> of the {type_} joint {name!r}", lost.line)
        axes = axes[:count]
        none = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
        limits = Limits(**{key: _of_axes(axes, key, x) for key, x in none.items()})
        damping, friction = (_of_axes(axes, key, 0.0) for key in ("damping", "friction"))
        found = Pair(
            name, kind, parent or GROUND, child,
            self.relative(parent, name, element), self.relative(child, name, element),
            axes[0].xyz if axes else (0.0, 0.0, 1.0), axes[1].xyz if count == 2 else None,
            self.pitch(element) if kind == "helical" else 0.0,
            limits=limits, damping=damping, friction=friction,
        )  # fmt: skip
        stiff = [(f"{key}_{k}", x) for k, a in enumerate(axes, 1) for key, x in a.spring]
        springs = [ForceElement(f"{name}_spring", "joint_spring", parent or GROUND, child, coefficients=tuple(stiff))]
        return found, [m for a in axes for m in a.mimic], springs if stiff else []

    def pitch(self, element: Element) -> float:
        """Return the pitch of a screw [m/rad]."""
        source = self.source
        if source.one(element, "screw_thread_pitch") is not None:
            return _child_number(source, element, "screw_thread_pitch", 1.0) / (2.0 * math.pi)
        old = _child_number(source, element, "thread_pitch", 1.0)  # rad per m, positive for a left-handed thread
        if abs(old) < 1e-12:
            raise source.error(element, f"the thread_pitch is {old:g}", "give screw_thread_pitch, in m per revolution")
        return -1.0 / old

    def axis(self, name: str, scope: str, joint: Element, tag: str) -> _Axis:
        """Return the <axis> or <axis2> of a joint, by default along z and without limits."""
        source, element = self.source, self.source.one(joint, tag)
        if element is None:
            return _Axis()
        source.rest(element, (), ("xyz", "limit", "dynamics", "mimic"))
        xyz = source.one(element, "xyz")
        x, y, z = (0.0, 0.0, 1.0) if xyz is None else unit(source, xyz, _numbers(source, xyz, 3))
        if xyz is not None and xyz.attributes.get("expressed_in"):
            base = f"{scope}{xyz.attributes['expressed_in']}"
            x, y, z = times(self.relative(name, base, xyz).rotation, (x, y, z))
        out = _Axis((x, y, z))
        if limit := source.one(element, "limit"):
            source.rest(limit, (), ("lower", "upper", "effort", "velocity", "stiffness", "dissipation"))
            low, high = (_child_number(source, limit, end, s * 1e16) for end, s in (("lower", -1), ("upper", 1)))
            if low > -UNLIMITED or high < UNLIMITED:
                out.lower = (low if low > -UNLIMITED else -math.inf,)
                out.upper = (high if high < UNLIMITED else math.inf,)
            for key in ("velocity", "effort"):
                most = _child_number(source, limit, key, -1.0)
                setattr(out, key, (most,) if 0 <= most < UNLIMITED else ())
        if dynamics := source.one(element, "dynamics"):
            source.rest(dynamics, (), ("damping", "friction", "spring_reference", "spring_stiffness"))
            damping, friction = (_child_number(source, dynamics, key, 0.0) for key in ("damping", "friction"))
            out.damping, out.friction = (damping,) if damping else (), (friction,) if friction else ()
            if stiffness := _child_number(source, dynamics, "spring_stiffness", 0.0):
                rest = _child_number(source, dynamics, "spring_reference", 0.0)
                out.spring = (("stiffness", stiffness), ("rest", rest))
        if mimic := source.one(element, "mimic"):
            source.rest(mimic, ("joint", "axis"), ("multiplier", "offset", "reference"))
            ratio, offset, reference = (
                _child_number(source, mimic, key, x)
                for key, x in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
            )
            other = f"{scope}{source.name(mimic, 'joint')}"
            if other not in self.joints:
                place = {"file": source.file, "line": mimic.line, "where": f"<mimic> of joint {name!r}"}
                raise unknown_name("joint", other, self.joints, **place)
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


def _mechanism(read: _Reading, name: str, gravity: Vector, base: str, fixed: str, file: str) -> Mechanism:
    """Return the mechanism of what was read: a tree, with joints of links that have one already as loops."""
    source, report = read.source, read.source.report
    if not read.links:
        raise source.error(next(iter(read.nodes.values())).element, "has no <link>", "add one")
    bodies = [read.body(link) for link in read.links]
    for part, message in impossible_inertias(Mechanism("", tuple(replace(b, shapes=()) for b in bodies))):
        report.suspect(f"link {part!r}: {message}; the numbers are kept", read.links[part].line)
    pairs, couplings, springs = [], [], []
    carried: dict[str, str] = {}
    for joint in read.joints:
        pair, more, spring = read.pair(joint)
        cut = pair.body_b in carried
        if cut and not can_be_cut(pair):
            what = (
                f"its child {pair.body_b!r} is that of joint {carried[pair.body_b]!r} too, and {pair.kind} is no loop"
            )
            raise source.error(read.joints[joint][1], what, "exchange the order of the joints")
        carried.setdefault(pair.body_b, joint)
        pairs.append(replace(pair, cut=True) if cut else pair)
        couplings += more
        springs += spring
        if len(pairs) - len(carried) > MAX_LOOPS:
            raise source.error(read.joints[joint][1], f"closes one of more than {MAX_LOOPS} loops", "split the model")
    pairs = [*_bases(read, pairs, "fixed" if read.static else base), *pairs]
    frames = [
        Frame(key, (link := read.link_of(key, e)), read.relative(link, key, e))
        for key, e in ((key, node.element) for key, node in read.nodes.items() if node.element.tag == "frame")
    ]
    joints, loops, guess = [joint_of(p) for p in pairs], [], ()
    if len({p.body_b for p in pairs}) < len(pairs):
        opened = open_rings(bodies, pairs, couplings=couplings, forces=springs, guess=())
        report_cuts(opened, report, lambda x: read.joints[x][1].line if x in read.joints else None)
        joints, loops, springs, guess = opened.joints, opened.loops, opened.forces, opened.guess
    bodies, joints, frames, loops, scenery = _merged(read, bodies, [_tidy(j) for j in joints], frames, loops, fixed)
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
        f"{len(read.links)} links and {len(read.joints)} joints: {len(mechanism.bodies)} bodies, "
        f"{mechanism.nv} degrees of freedom, {len(mechanism.frames)} frames, {len(mechanism.loops)} loops"
    )
    return mechanism


def _tidy(joint: Joint) -> Joint:
    """Return a joint without a placement in its child where the child's frame is that of the joint."""
    return replace(joint, child_placement=None) if joint.child_placement == Placement() else joint


def _bases(read: _Reading, pairs: Sequence[Pair], base: str) -> list[Pair]:
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


def _merged(read: _Reading, bodies, joints, frames: list[Frame], loops, fixed: str):
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


def _text(source: Source, element: Element) -> str:
    """Return the text of an element, which must not be empty."""
    text = element.text.strip()
    if not text or len(text) > 4096:
        raise source.error(element, "is empty" if not text else f"has {len(text)} characters", "give a text")
    return text


def _numbers(source: Source, element: Element, count: int) -> tuple[float, ...]:
    where = describe_element(element)
    return strict_floats(element.text, count, where=where, file=source.file, line=element.line)


def _vector(source: Source, element: Element) -> Vector:
    x, y, z = _numbers(source, element, 3)
    return x, y, z


def _child_number(source: Source, parent: Element, tag: str, default: float) -> float:
    """Return the number of a child, or the default if there is none."""
    element = source.one(parent, tag)
    if element is None or not element.text:
        return default
    if element.text.strip() in ("inf", "+inf", "-inf") and abs(default) >= UNLIMITED:
        return math.copysign(1e16, -1.0 if "-" in element.text else 1.0)
    return _numbers(source, element, 1)[0]


def _color(source: Source, visual: Element) -> tuple[float, float, float, float] | None:
    material = source.one(visual, "material")
    if material is None:
        return None
    source.rest(material, (), ("diffuse", "ambient", "specular", "emissive"))
    diffuse = source.one(material, "diffuse")
    if diffuse is None:
        return None
    red, green, blue, alpha = _numbers(source, diffuse, 4)
    return red, green, blue, alpha
