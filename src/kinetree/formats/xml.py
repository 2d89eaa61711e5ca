"""XML as a tree of elements of bounded size, with line numbers, and the files that elements refer to.

Document types and entities are refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from xml.parsers import expat

from ..errors import ModelError, quote
from ..model.part_fields import MAX_NAME
from .fields import strict_floats
from .report import Group, Report

MAX_BYTES = 16 * 2**20
"""Largest file [bytes]; with this and the bounds below, any file is read or refused within a second."""
MAX_DEPTH = 200
MAX_ELEMENTS = 250_000
MAX_ATTRIBUTES = 1_000
MAX_TEXT = 1_000_000
"""Largest number of characters of one attribute, or of the text of one element."""
MAX_TAG = 1_000
CHUNK = 2**20


@dataclass(slots=True)
class Element:
    """One element: its tag as written (a prefix such as `xacro:` is kept), attributes, children, text and line.

    Attributes that declare namespaces are left out.
    """

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    line: int = 0
    text: str = ""

    def all(self, tag: str) -> list[Element]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]


def read_bytes(path: str | Path, *, most: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes, or raise ModelError."""
    try:
        path = Path(path)
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError("is not a regular file", remedy="give the path of a file", file=quote(str(path), 200))
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ModelError(
            f"cannot be read: {cause}", remedy="check the path and its permissions", file=quote(str(path), 200)
        ) from None
    if len(data) > most:
        raise ModelError(f"is larger than {most} bytes", remedy="split the file or remove unnecessary parts", file=path)
    return data


def read_xml(path: str | Path) -> Element:
    """Return the root element of a file, or raise ModelError with file and line."""
    return parse_xml(read_bytes(path), file=str(path))


def parse_xml(data: bytes | str, *, file: str = "<text>") -> Element:
    """Return the root element of XML in memory, or raise ModelError with file and line."""
    encoding = None
    if isinstance(data, str):
        encoding = "utf-8"  # overrides the declaration: a string is already decoded
        try:
            data = data.encode(encoding)
        except UnicodeEncodeError as error:
            raise ModelError(f"is not text: {error.reason}", remedy="give Unicode text", file=file) from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"is larger than {MAX_BYTES} bytes", remedy="remove unnecessary parts", file=file)
    builder = _Builder(file, encoding)
    try:
        for start in range(0, len(data), CHUNK):
            builder.parser.Parse(data[start : start + CHUNK], False)
            builder.bound_pending(min(start + CHUNK, len(data)))
        builder.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise ModelError(
            f"is not well-formed XML: {expat.ErrorString(error.code)} (column {error.offset + 1})",
            remedy="repair the XML at this line, or just before it",
            file=file,
            line=error.lineno,
        ) from None
    except (LookupError, ValueError) as error:  # from the codec named in the declaration
        raise ModelError(
            f"its encoding cannot be read: {quote(str(error))}", remedy="save the file as UTF-8", file=file, line=1
        ) from None
    if builder.root is None:
        raise ModelError("has no element", remedy="give an XML file", file=file)
    return builder.root


class _Builder:
    """The handlers of expat's events that build the tree of elements."""

    def __init__(self, file: str, encoding: str | None) -> None:
        self.file, self.count = file, 0
        self.root: Element | None = None
        self.open: list[Element] = []
        self.pieces: list[list[str]] = []  # the pieces of text of each open element
        self.sizes: list[int] = []
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.doctype

    def error(self, what: str, remedy: str) -> ModelError:
        return ModelError(what, remedy=remedy, file=self.file, line=self.parser.CurrentLineNumber)

    def doctype(self, *_) -> None:
        raise self.error("declares a document type or an entity", "remove the <!DOCTYPE ...> and expand the entities")

    def bound_pending(self, fed: int) -> None:
        if fed - self.parser.CurrentByteIndex > 2 * CHUNK:
            raise self.error(
                f"a tag or comment is longer than {2 * CHUNK} bytes, or is not closed", "close or shorten it"
            )

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self.error(f"has more than {MAX_ELEMENTS} elements", "split the model")
        if len(self.open) >= MAX_DEPTH:
            raise self.error(f"elements are nested more than {MAX_DEPTH} levels deep", "flatten the model")
        if len(attributes) > MAX_ATTRIBUTES or len(tag) > MAX_TAG:
            raise self.error(
                f"the element {quote(tag)} is too large",
                f"use at most {MAX_ATTRIBUTES} attributes, and {MAX_TAG} characters in a tag",
            )
        for key, value in attributes.items():
            if len(value) > MAX_TEXT or len(key) > MAX_TAG:
                raise self.error(
                    f"the attribute {quote(key)} of <{tag}> has {len(value)} characters", f"use at most {MAX_TEXT}"
                )
        if any(key.startswith("xmlns") for key in attributes):
            attributes = {k: v for k, v in attributes.items() if k != "xmlns" and not k.startswith("xmlns:")}
        element = Element(tag, attributes, [], self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.pieces.append([])
        self.sizes.append(0)

    def end(self, _tag: str) -> None:
        element, pieces, _ = self.open.pop(), self.pieces.pop(), self.sizes.pop()
        if pieces:
            element.text = "".join(pieces).strip()

    def characters(self, data: str) -> None:
        if data.isspace() and not self.pieces[-1]:
            return
        self.sizes[-1] += len(data)
        if self.sizes[-1] > MAX_TEXT:
            tag = self.open[-1].tag
            raise self.error(f"the text of <{tag}> is too long", f"use at most {MAX_TEXT} characters")
        self.pieces[-1].append(data)


# --- Strict reading of XML elements: each number is checked, and everything that is not read is reported ---

EXPAND = "name it .xacro, or expand the file with xacro first"
"""The remedy for templates, which are not valid URDF."""


@dataclass(frozen=True)
class Source:
    """A file that is being read: its name for messages, and the report that collects remarks."""

    file: str
    report: Report

    def error(self, element: Element, what: str, remedy: str) -> ModelError:
        """Return the error for an element, with its file and line."""
        return ModelError(what, where=describe_element(element), remedy=remedy, file=self.file, line=element.line)

    def text(self, element: Element, name: str, default: str | None = None) -> str:
        """Return the text of an attribute, which is required if there is no default."""
        value = element.attributes.get(name, default)
        if value is None:
            raise self.error(element, f"the attribute {name!r} is missing", f"add {name}=...")
        return value

    def name(self, element: Element, attribute: str = "name") -> str:
        """Return an attribute that is a name of 1 to MAX_NAME characters."""
        value = self.text(element, attribute)
        if not value or len(value) > MAX_NAME:
            fault = f"has {len(value)} characters" if value else "is empty"
            raise self.error(
                element, f"the attribute {attribute!r} {fault}", f"give a name of 1 to {MAX_NAME} characters"
            )
        return value

    def numbers(
        self, element: Element, name: str, count: int, default: tuple[float, ...] | None = None
    ) -> tuple[float, ...]:
        """Return an attribute of `count` finite numbers, which is required if there is no default."""
        if name not in element.attributes and default is not None:
            return default
        text = self.text(element, name)
        if "${" in text or "$(" in text:
            raise self.error(element, f"the attribute {name!r} is {quote(text)}, which is not expanded", EXPAND)
        where = f"{describe_element(element)} attribute {name!r}"
        return strict_floats(text, count, where=where, file=self.file, line=element.line)

    def vector(self, element: Element, name: str, default: tuple[float, float, float]) -> tuple[float, float, float]:
        """Return an attribute of three finite numbers, or the default."""
        x, y, z = self.numbers(element, name, 3, default)
        return x, y, z

    def number(self, element: Element, name: str, default: float | None = None) -> float:
        """Return an attribute of one finite number, which is required if there is no default."""
        return self.numbers(element, name, 1, None if default is None else (default,))[0]

    def one(self, element: Element, tag: str) -> Element | None:
        """Return the first child with this tag, or None; further ones are reported as dropped."""
        found = element.all(tag)
        for extra in found[1:]:
            self.report.dropped(f"{describe_element(extra)}: {describe_element(element)} has one already", extra.line)
        return found[0] if found else None

    def needed(self, element: Element, tag: str) -> Element:
        """Return the first child with this tag, which is required."""
        found = self.one(element, tag)
        if found is None:
            raise self.error(element, f"has no <{tag}>", f"add a <{tag}> to it")
        return found

    def rest(self, element: Element, attributes: Iterable[str] = (), children: Iterable[str] = ()) -> None:
        """Report everything in an element other than the given attributes and children."""
        known = frozenset(attributes)
        for name, value in element.attributes.items():
            if name not in known:
                self.report.dropped(
                    f"attribute {quote(name)} = {quote(value)} of {describe_element(element)}", element.line
                )
        known = frozenset(children)
        for child in element.children:
            if child.tag not in known:
                self.unread(child, element)
        if element.text:
            self.report.dropped(f"text {quote(element.text)} in {describe_element(element)}", element.line)

    def unread(self, child: Element, parent: Element) -> None:
        """Report an element that is not read."""
        text = f"{describe_element(child)} in {describe_element(parent)}"
        if child.tag.startswith("xacro:"):
            self.report.suspect(f"{text} is left over from xacro and is not read; {EXPAND}", child.line)
        else:
            self.report.dropped(text, child.line, Group(f"<{child.tag}> are not read, in", describe_element(parent)))


def describe_element(element: Element) -> str:
    """Return the text for an element in messages: its tag, and its name if it has one."""
    name = element.attributes.get("name")
    return f"<{element.tag}>" if name is None else f"<{element.tag} name={quote(name)}>"


# --- Files that an element refers to, such as meshes: looked for inside of given folders, and not opened here ---

PACKAGED = ("package", "model")
"""Schemes of paths that begin with the name of a folder."""
DECLARED = {
    "ROS_PACKAGE_PATH": "", "AMENT_PREFIX_PATH": "share", "GZ_SIM_RESOURCE_PATH": "", "GAZEBO_MODEL_PATH": "",
}  # fmt: skip
"""Variables of the environment that have lists of folders, and the folder in each of them in which packages are."""
ABOVE = 6
"""The number of folders above a file that may be its package."""
MANIFESTS = ("package.xml", "model.config")
"""The files by which a folder says that it is a package or a model."""


def mesh_file(source: Source, mesh: Element, text: str, roots: Sequence[Path]) -> str:
    """Return the path of a mesh, or its text as it stands, with an entry in the report, if there is no such file."""
    scheme, _, rest = text.rpartition("://")
    found = find_file(text, roots) or (find_file(text, declared_folders()) if scheme in PACKAGED else None)
    if found is None:
        package = quote(rest.partition("/")[0], 80)
        remedy = "give its folder as one of roots= (command line: --root)"
        if scheme in PACKAGED:
            remedy = f"give the folder that contains {package} as one of roots= (command line: --root), or in "
            remedy += "ROS_PACKAGE_PATH"
        group = Group(
            f"meshes are not found and not drawn; {remedy.replace('its folder', 'their folder')}", quote(text, 80)
        )
        source.report.suspect(f"mesh {quote(text, 200)} is not found and not drawn; {remedy}", mesh.line, group)
    return text if found is None else str(found)


def declared_folders() -> list[Path]:
    """Return the folders of packages and models that ROS and Gazebo declare in the variables of DECLARED."""
    variables = [(os.environ.get(name, "").split(os.pathsep), below) for name, below in DECLARED.items()]
    return [Path(x) / below for folders, below in variables for x in folders if x]


def find_file(text: str, roots: Iterable[Path], *, start: Path | None = None) -> Path | None:
    """Return the file of a path if it is inside one of the folders, else None; no file is opened.

    `package://name/rest` and `model://name/rest` mean rest in a folder `name`, which is in a root, is a root itself, or
    is a package above one; a package.xml may give it another name. `file://` paths may be absolute; others are relative
    to `start` and to the roots. Links and `..` must not lead out of the folders.
    """
    scheme, _, rest = text.rpartition("://")
    rest = rest.lstrip("/") if scheme in PACKAGED else rest
    if len(text) > 4096 or scheme not in ("", "file", *PACKAGED):
        return None
    for root in roots:
        try:
            folder = root.resolve()
            for inside, candidate in _candidates(scheme, rest, folder, start):
                real = candidate.resolve()
                if real.is_relative_to(inside) and real.is_file():
                    return real
        except (OSError, ValueError, RuntimeError):  # invalid names, circular links
            continue
    return None


def _candidates(scheme: str, rest: str, folder: Path, start: Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield files that a path may mean, each with the folder inside of which it must be."""
    if scheme == "file" or not Path(rest).is_absolute():
        yield folder, folder / rest
    if scheme in PACKAGED:
        package, _, inner = rest.partition("/")
        if not inner.startswith("/"):
            yield from ((x, x / inner) for x in (folder, *packages_above(folder)) if is_package(x, package))
    elif start is not None and (scheme == "file" or not Path(rest).is_absolute()):
        yield folder, start / rest


def is_package(folder: Path, name: str) -> bool:
    """Return whether a folder is the package of a name: its own name, or the one in its package.xml."""
    if folder.name == name:
        return True
    try:
        changed = (folder / "package.xml").stat().st_mtime_ns
    except (OSError, ValueError):
        return False
    return _declared_name(folder / "package.xml", changed) == name


@cache
def _declared_name(file: Path, changed: int) -> str:
    """Return the <name> in a package.xml that was changed at that time, empty if it cannot be read."""
    try:
        return next((x.text for x in parse_xml(read_bytes(file, most=2**20), file=str(file)).all("name")), "")
    except ModelError:
        return ""


def packages_above(folder: Path) -> list[Path]:
    """Return the nearest folders above a folder that say that they are packages of ROS or models of Gazebo.

    A name alone does not make a folder a package: a file could then name the home of the user.
    """
    return [x for x in folder.parents[:ABOVE] if any((x / name).is_file() for name in MANIFESTS)]
