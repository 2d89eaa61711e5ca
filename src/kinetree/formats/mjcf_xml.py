"""Preparation of MJCF for MuJoCo: includes are expanded, and sections that are not read are left out.

Files are read only from the model's folder and from folders that the caller gives. MuJoCo compiles the result of
`prepare` and opens no file: meshes are passed along with it, under new names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from ..errors import quote
from ..model.contacts import MOST
from .report import Group
from .xml import MAX_BYTES, Element, Source, describe_element, find_file, parse_xml, read_bytes

MAX_INCLUDES = 100
"""Largest number of included files, far above that of real models."""
MAX_COPIES = 50_000
"""Largest number of elements after <replicate>, for a compilation in seconds."""
MAX_MESHES = 256 * 2**20
"""Largest size of all meshes together [bytes], to bound memory."""

SECTIONS = ("compiler", "option", "default", "asset", "worldbody", "equality", "actuator", "keyframe", "tendon")
ASSETS = ("mesh", "material")
EQUALITIES = ("connect", "weld", "joint")
PAIRS = ("pair", "exclude")
DRAWN = ("camera", "light")
SOFT = ("composite", "flexcomp", "attach", "plugin", "flex", "skin")
"""Elements that create bodies which are not rigid or come from another model."""
SAVED = "remove it, or save the compiled model with mujoco.mj_saveLastXML and load that"
FOLDERS = ("meshdir", "texturedir", "assetdir", "strippath")
NAMES = ("name", "class", "childclass", "model", "file", "mesh", "material")


@dataclass
class Prepared:
    """The input of MuJoCo's compiler: XML with the line numbers of the file, meshes by name, and sources of parts."""

    text: str = ""
    assets: dict[str, bytes] = field(default_factory=dict)
    mesh_files: dict[str, str] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def line(self, tag: str, name: str) -> int | None:
        """Return the line of an element by tag and name, or None if it is unknown."""
        return self.lines.get((tag, name))


def prepare(source: Source, root: Element, folders: Sequence[Path], *, contacts: bool = False) -> Prepared:
    """Return a model for MuJoCo from the root element of a file; files that it refers to must be in `folders`.

    With `contacts`, <contact> and height fields with their numbers in the file remain.
    """
    if root.tag == "mujocoinclude":
        raise source.error(root, "is a part of models, which include it", "give the file of such a model")
    if root.tag != "mujoco":
        raise source.error(root, "the root element is not <mujoco>", "give an MJCF file")
    source.rest(root, ("model",), [child.tag for child in root.children])
    root = _included(source, root, folders, {})
    kept = _height_fields(source, root) if contacts else frozenset()
    sections = [s for section in root.children if (s := _section(source, section, contacts, kept)) is not None]
    _drop_actuators(source, sections)
    out = Prepared()
    for element in _all(Element("mujoco", {}, sections)):
        _refuse_values(source, element)
        if element.tag == "material":  # colors are read, textures are not
            element.attributes = {key: value for key, value in element.attributes.items() if key != "texture"}
            element.children = []
        if "name" in element.attributes:
            out.lines.setdefault((element.tag, element.attributes["name"]), element.line)
    if sum(map(_copies, sections)) > MAX_COPIES:
        raise source.error(root, f"makes more than {MAX_COPIES} elements", "replicate less")
    _read_meshes(source, sections, folders, out)
    pieces: list[str] = []
    _write(Element("mujoco", {}, sections, 1), pieces, [1])
    out.text = "".join(pieces)
    return out


def _included(source: Source, element: Element, folders: Sequence[Path], seen: dict[Path, int]) -> Element:
    """Return an element with its <include>s replaced by the content of the files; `seen` has their sizes."""
    children: list[Element] = []
    for child in element.children:
        if child.tag != "include":
            children.append(_included(source, child, folders, seen))
            continue
        path = _file(source, child, source.text(child, "file"), folders)
        if path in seen or len(seen) >= MAX_INCLUDES:
            fault = "is already included" if path in seen else f"is one of more than {MAX_INCLUDES} files"
            raise source.error(
                child, f"{quote(path.name)} {fault}", "MuJoCo includes a file only once; remove this one"
            )
        data = read_bytes(path, most=MAX_BYTES - sum(seen.values()))
        seen[path] = len(data)
        source.report.read(f"included {path.name!r}", child.line)
        inner = parse_xml(data, file=str(path))
        for part in _all(inner):
            part.line = child.line  # line numbers refer to the main file
        children += _included(source, inner, folders, seen).children
    return Element(element.tag, element.attributes, children, element.line, element.text)


def _height_fields(source: Source, root: Element) -> frozenset[str]:
    """Return the names of the height fields whose heights are in the file itself; those that are too large are errors.

    MuJoCo takes the memory of all heights that a field declares, also if the file has none.
    """
    fields = [x for section in root.all("asset") for x in section.all("hfield")]
    own = [x for x in fields if "name" in x.attributes and "file" not in x.attributes]
    for x in own:
        rows, columns = (source.number(x, key, default=0.0) for key in ("nrow", "ncol"))
        if rows * columns > MOST["heights"]:
            raise source.error(x, f"has {rows:g} by {columns:g} heights", f"give no more than {MOST['heights']}")
    return frozenset(x.attributes["name"] for x in own)


def _section(source: Source, section: Element, contacts: bool, fields: frozenset[str]) -> Element | None:
    """Return the part of a section that is read, or None; the rest is reported as dropped."""
    known = {"asset": ASSETS, "equality": EQUALITIES} | ({"contact": PAIRS} if contacts else {})
    if section.tag not in (*SECTIONS, *known):
        count = sum(1 for _ in _all(section)) - 1
        source.report.dropped(f"<{section.tag}> with {count} elements", section.line)
        return None
    if section.tag == "option":
        source.rest(section, ("gravity",), ("flag",))
    if section.tag in known:
        own = [c for c in section.children if c.tag == "hfield" and c.attributes.get("name") in fields]
        source.rest(section, section.attributes, (*known[section.tag], *(["hfield"] if own else [])))
        return _with(section, [c for c in section.children if c.tag in known[section.tag] or c in own])
    if section.tag == "tendon":
        return _springs(source, section)
    return _body(source, section, fields) if section.tag == "worldbody" else section


def _springs(source: Source, section: Element) -> Element:
    """Return a section of tendons with those that run straight from one site to another; others are dropped."""
    kept = [x for x in section.children if x.tag == "spatial" and [y.tag for y in x.children] == ["site", "site"]]
    for x in section.children:
        if x not in kept:
            only = "only straight ones between two sites are read"
            group = Group(f"tendons are left out, {only}", describe_element(x))
            source.report.dropped(f"{describe_element(x)} in <tendon>: {only}", x.line, group)
    return _with(section, kept)


def _body(source: Source, body: Element, fields: frozenset[str]) -> Element:
    """Return a body, a <frame> or the world without cameras, lights and height fields; refuse what is not rigid."""
    children = []
    for child in body.children:
        if child.tag in SOFT:
            raise source.error(child, "is not rigid, or comes from another model", SAVED)
        field_name = child.attributes.get("hfield") if child.tag == "geom" else None
        if child.tag in DRAWN or (field_name is not None and field_name not in fields):
            source.report.dropped(f"{describe_element(child)} in {describe_element(body)}", child.line)
        else:
            children.append(_body(source, child, fields))
    return _with(body, children)


def _drop_actuators(source: Source, sections: list[Element]) -> None:
    """Leave out the actuators that do not drive joints, and then the controls of keyframes, which no longer match."""
    count = 0
    for section in sections:
        if section.tag == "actuator":
            kept = [x for x in section.children if x.tag != "plugin" and {"joint", "jointinparent"} & set(x.attributes)]
            for x in section.children:
                if x not in kept:
                    source.report.dropped(f"{describe_element(x)} in <actuator>: it does not drive a joint", x.line)
            count += len(section.children) - len(kept)
            section.children = kept
    for key in (x for section in sections if section.tag == "keyframe" for x in section.children):
        lost = [name for name in ("ctrl", "act") if count and key.attributes.pop(name, None) is not None]
        if lost:
            source.report.dropped(
                f"{' and '.join(lost)} of {describe_element(key)}: some actuators are not read", key.line
            )


def _with(element: Element, children: list[Element]) -> Element:
    return Element(element.tag, element.attributes, children, element.line)


def _refuse_values(source: Source, element: Element) -> None:
    """Refuse NaN and infinities, for which MuJoCo only warns, and empty values, which make version 4.0 hang."""
    for name, value in element.attributes.items():
        if not value.strip():
            raise source.error(element, f"the attribute {name!r} is empty", "give it a value, or leave it out")
        if name not in NAMES and {"nan", "inf", "infinity"} & {w.lstrip("+-") for w in value.lower().split()}:
            raise source.error(element, f"the attribute {name!r} is {quote(value)}", "give finite numbers")


def _copies(element: Element) -> int:
    """Return the number of elements of a tree after <replicate>."""
    inside = 1 + sum(map(_copies, element.children))
    if element.tag != "replicate":
        return inside
    count = element.attributes.get("count", "")
    return inside * (int(count) if count.strip().isdecimal() and len(count) < 10 else MAX_COPIES)


def _read_meshes(source: Source, sections: list[Element], folders: Sequence[Path], out: Prepared) -> None:
    """Read the bytes of every <mesh> under a new name, and remove the folders from <compiler>."""
    place, strip = _mesh_folder(sections)
    for section in sections:
        for mesh in section.children if section.tag == "asset" else ():
            if mesh.tag != "mesh":
                continue
            if "builtin" in mesh.attributes or mesh.children:
                raise source.error(mesh, "is generated by MuJoCo or a plugin", "give it a file")
            if "file" not in mesh.attributes:
                continue
            text = mesh.attributes["file"]
            name = PurePosixPath(text.replace("\\", "/"))
            path = _file(source, mesh, name.name if strip else str(name), folders, place)
            key = f"mesh{len(out.assets)}{path.suffix.lower()}"
            data = read_bytes(path, most=MAX_MESHES)
            out.assets[key] = data
            if sum(map(len, out.assets.values())) > MAX_MESHES:
                raise source.error(mesh, f"the meshes have more than {MAX_MESHES} bytes", "simplify them")
            mesh.attributes = {"name": name.stem, **mesh.attributes, "file": key}
            mesh.attributes.pop("content_type", None)
            out.mesh_files[mesh.attributes["name"]] = str(path)


def _mesh_folder(sections: list[Element]) -> tuple[str, bool]:
    """Return the folder of meshes and whether paths are stripped, from the <compiler>s; the last one applies."""
    place, strip = "", False
    for section in sections:
        if section.tag == "compiler":
            given = section.attributes
            place = given.get("meshdir", given.get("assetdir", place))
            strip = given.get("strippath", "true" if strip else "false") == "true"
            section.attributes = {k: v for k, v in given.items() if k not in FOLDERS}
    return place, strip


def _file(source: Source, element: Element, text: str, folders: Sequence[Path], place: str = "") -> Path:
    """Return the path of a file in the model's folder or another one of the folders, or raise ModelError."""
    if not folders:
        raise source.error(
            element, f"requires the file {quote(text, 200)}", "load the model from a file, not from text"
        )
    path = f"{place}/{text}" if place and not text.startswith("/") else text
    found = find_file(path, folders, start=folders[0])
    if found is None:
        remedy = "give a folder that it is in as one of roots= (command line: --root), or copy it there"
        raise source.error(element, f"the file {quote(path, 200)} is not found in the model's folder", remedy)
    return found


def _all(element: Element) -> Iterator[Element]:
    yield element
    for child in element.children:
        yield from _all(child)


def _write(element: Element, pieces: list[str], at: list[int]) -> None:
    """Append an element as text on its original line, so that MuJoCo's messages have the right line numbers."""
    if element.line > at[0]:
        pieces.append("\n" * (element.line - at[0]))
        at[0] = element.line
    attributes = "".join(f" {key}={quoteattr(value)}" for key, value in element.attributes.items())
    pieces.append(f"<{element.tag}{attributes}>")
    for child in element.children:
        _write(child, pieces, at)
    pieces.append(f"</{element.tag}>")
