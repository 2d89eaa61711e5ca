"""The frames of an SDF file: models within models, included ones too, and the poses of their links, joints and frames.

Poses may be relative to any link, joint, frame or model. Placements are composed along the shortest way between two of
them, so that a pose relative to its own joint is exact. Included files are read from inside of the search folders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..algebra.rotations import from_quaternion, from_rpy
from ..algebra.vectors import Vector
from ..errors import ModelError, quote, unknown_name
from ..model.part_fields import MAX_NAME
from ..model.parts import GROUND, Placement, compose, inverse
from .fields import strict_floats
from .urdf import MAX_LINKS
from .urdf_parts import unit
from .xml import MAX_BYTES, Element, Source, declared_folders, describe_element, find_file, parse_xml, read_bytes

WORLD, MODEL = "world", "__model__"
WEIGHT = (0.0, 0.0, -9.8)
"""The gravity of a world that gives none [m/s^2]."""
NEAR = 64
"""The largest number of frames between two that are composed one by one; others meet in the world."""
MAX_INCLUDES = 100
"""The largest number of included files, far above that of real models."""
MAX_CONFIG = 2**20
"""The largest description of a model's files [bytes]."""
UNLIMITED = 1e15
"""Numbers above it, and infinities, are SDF's for no limit, 1e16 [rad, m]."""


def first_model(frames: Frames, root: Element) -> tuple[Element, Vector]:
    """Return the first <model> of a file, and the gravity of its world; others are reported as dropped."""
    source = frames.source
    if root.tag != "sdf":
        raise source.error(root, "the root element is not <sdf>", "give an SDF file")
    source.rest(root, ("version",), ("model", "world", "include"))
    worlds = root.all("world")
    gravity: Vector = (0.0, 0.0, -9.81)
    models = [x for x in root.children if x.tag in ("model", "include")]
    for world in worlds[:1]:
        source.rest(world, ("name",), ("model", "gravity", "include"))
        given = source.one(world, "gravity")
        gravity = WEIGHT if given is None else three_of(source, given)
        if given is None:
            source.report.changed("gravity is 9.8 m/s^2, SDF's own: the world gives none", world.line)
        models = models + [x for x in world.children if x.tag in ("model", "include")]
    for world in worlds[1:]:
        source.report.dropped(f"{describe_element(world)}: there is a world already", world.line)
    if not models:
        raise source.error(root, "has no <model>", "add one")
    for other in models[1:]:
        source.report.dropped(f"{describe_element(other)}: the first model of the file is read", other.line)
    return frames.included(models[0]), gravity


@dataclass(slots=True)
class Node:
    """A frame of the file: the one that its pose is relative to (empty: the world), its pose there, and its element."""

    base: str
    pose: Placement
    element: Element
    depth: int = -1
    absolute: Placement | None = None


@dataclass
class Frames:
    """What is read from a model and its nested models, by scoped names such as `inner::link`."""

    source: Source
    roots: list[Path]
    nodes: dict[str, Node] = field(default_factory=dict)
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, tuple[str, Element]] = field(default_factory=dict)
    attached: dict[str, str] = field(default_factory=dict)
    static: bool = False
    files: list[int] = field(default_factory=list)  # the sizes of included files [bytes]

    def included(self, element: Element) -> Element:
        """Return the model of an <include>, with the name and pose that it gives; a <model> remains as it is."""
        if element.tag != "include":
            return element
        source = self.source
        source.rest(element, ("merge",), ("uri", "name", "pose", "static"))
        if element.attributes.get("merge", "false") in ("true", "1"):
            raise source.error(element, 'merge="true" is not supported', "copy the parts of the model into the file")
        uri = text_of(source, source.needed(element, "uri"))
        file = self.model_file(uri)
        if file is None:
            remedy = "give the folder that contains the model's folder as one of roots= (command line: --root), or in "
            what = f"the model {quote(uri, 200)} is not in the folders that are searched"
            raise source.error(element, what, f"{remedy}GZ_SIM_RESOURCE_PATH")
        if len(self.files) >= MAX_INCLUDES:
            raise source.error(element, f"is one of more than {MAX_INCLUDES} included models", "include fewer")
        data = read_bytes(file, most=MAX_BYTES - sum(self.files))
        self.files.append(len(data))
        root = parse_xml(data, file=str(file))
        models = [x for x in root.children if x.tag in ("model", "include")] if root.tag == "sdf" else []
        if not models:
            raise source.error(element, f"{quote(str(file), 200)} has no <model> in an <sdf>", "include another file")
        source.report.read(f"included {file.name!r} of {uri}; its lines are that of the <include>", element.line)
        self.roots.append(file.parent)  # of its meshes
        _on_line(models[0], element.line)
        model = self.included(models[0])
        for tag in ("pose", "static"):
            if given := source.one(element, tag):
                model = replace(model, children=[given, *(x for x in model.children if x.tag != tag)])
        name = source.one(element, "name")
        own = {} if name is None else {"name": text_of(source, name)}
        return replace(model, attributes=model.attributes | own)

    def model_file(self, uri: str) -> Path | None:
        """Return the SDF file of a model's address inside of the search folders: a file, or a folder with a model."""
        folders = [*self.roots, *declared_folders()]
        found = find_file(uri, folders)
        if found is not None:
            return found
        config = find_file(f"{uri}/model.config", folders)
        if config is None:
            return find_file(f"{uri}/model.sdf", folders)
        named = [x for x in parse_xml(read_bytes(config, most=MAX_CONFIG), file=str(config)).all("sdf") if x.text]
        newest = max(named, key=lambda x: _version(x.attributes.get("version", "")), default=None)
        return None if newest is None else find_file(f"{uri}/{newest.text.strip()}", folders)

    def model(self, model: Element, scope: str, outer: str | None, depth: int) -> None:
        """Note the frames of a model, with the prefix `scope` of its names, in the scope `outer`."""
        source = self.source
        if depth > 10:
            raise source.error(model, "models are nested more than 10 deep", "flatten the model")
        source.name(model)
        children = ("pose", "link", "joint", "frame", "model", "include", "static")
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
            child = f"{scope}{text_of(source, source.needed(element, 'child'))}"
            self.joints[name] = scope, element
            self.add(name, element, self.pose(element, scope, child))
            self.attached[name] = child
        for element in model.all("frame"):
            name = self.scoped(element, scope)
            to = element.attributes.get("attached_to", "")
            self.attached[name] = f"{scope}{to}" if to else own
            self.add(name, element, self.pose(element, scope, self.attached[name]))
            source.rest(element, ("name", "attached_to"), ("pose",))
        inside = [self.included(x) for x in model.children if x.tag in ("model", "include")]
        for element in inside:
            self.model(element, f"{scope}{source.name(element)}::", scope, depth + 1)
        inner = [f"{scope}{source.name(e)}" for e in model.all("link")]
        inner += [f"{scope}{source.name(e)}::{MODEL}" for e in inside]
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
        self.nodes[name] = Node(*node, element)

    def pose(self, element: Element, scope: str, default: str) -> tuple[str, Placement]:
        """Return the frame that the <pose> of an element is relative to, and the placement in it."""
        source, found = self.source, self.source.one(element, "pose")
        if found is None:
            return default, Placement()
        source.rest(replace(found, text=""), ("relative_to", "frame", "degrees", "rotation_format"))
        to = found.attributes.get("relative_to", found.attributes.get("frame", ""))  # its name before SDF 1.7
        base = default if not to else "" if to == WORLD else f"{scope}{to}"
        form = found.attributes.get("rotation_format", "euler_rpy")
        if not found.text:
            return base, Placement()
        if form == "quat_xyzw":
            x, y, z, *turn = numbers_of(source, found, 7)
            return base, Placement((x, y, z), from_quaternion(unit(source, found, tuple(turn))))
        if form != "euler_rpy":
            raise source.error(found, f"the rotation_format is {quote(form)}", "give euler_rpy or quat_xyzw")
        x, y, z, *angles = numbers_of(source, found, 6)
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

    def node(self, name: str, element: Element) -> Node:
        """Return a frame with its depth, the number of frames between it and the world."""
        chain: dict[str, Node] = {}
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

    def find(self, name: str, element: Element) -> Node:
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


def _on_line(element: Element, line: int) -> None:
    """Give an element of an included file, and all inside of it, the line of the <include>."""
    element.line = line
    for child in element.children:
        _on_line(child, line)


def _version(text: str) -> tuple[int, ...]:
    """Return a version such as "1.10" as numbers; other texts come before all."""
    words = text.split(".")
    return tuple(map(int, words)) if all(w.isdecimal() and len(w) < 9 for w in words) else ()


# --- Texts and numbers of elements ---


def text_of(source: Source, element: Element) -> str:
    """Return the text of an element, which must not be empty."""
    text = element.text.strip()
    if not text or len(text) > 4096:
        raise source.error(element, "is empty" if not text else f"has {len(text)} characters", "give a text")
    return text


def numbers_of(source: Source, element: Element, count: int) -> tuple[float, ...]:
    """Return the numbers of an element's text."""
    where = describe_element(element)
    return strict_floats(element.text, count, where=where, file=source.file, line=element.line)


def three_of(source: Source, element: Element) -> Vector:
    """Return the three numbers of an element's text."""
    x, y, z = numbers_of(source, element, 3)
    return x, y, z


def number_of(source: Source, parent: Element, tag: str, default: float) -> float:
    """Return the number of a child, or the default if there is none."""
    element = source.one(parent, tag)
    return default if element is None or not element.text else numbers_of(source, element, 1)[0]


def limit_of(source: Source, parent: Element, tag: str, none: float) -> float:
    """Return the number of a child, or `none` where SDF has no limit: an infinity, 1e16 or more, or no number."""
    element = source.one(parent, tag)
    if element is None or not element.text:
        return none
    word = element.text.strip().lower()
    infinite = word.lstrip("+-") in ("inf", "infinity")
    value = math.copysign(math.inf, -1.0 if word[0] == "-" else 1.0) if infinite else numbers_of(source, element, 1)[0]
    if abs(value) < UNLIMITED:
        return value
    if value * none < 0:  # a lower limit of +inf, or an upper one of -inf
        what = f"{describe_element(element)} of {describe_element(parent)} is {element.text.strip()}"
        source.report.suspect(f"{what}: taken as no limit", element.line)
    return none
