"""XML as a tree of elements of bounded size, with line numbers; document types and entities are refused."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ..errors import ModelError, shown

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
            raise ModelError("is not a regular file", remedy="give the path of a file", file=shown(str(path), 200))
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ModelError(
            f"cannot be read: {cause}", remedy="check the path and its permissions", file=shown(str(path), 200)
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
            f"its encoding cannot be read: {shown(str(error))}", remedy="save the file as UTF-8", file=file, line=1
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
                f"the element {shown(tag)} is too large",
                f"use at most {MAX_ATTRIBUTES} attributes, and {MAX_TAG} characters in a tag",
            )
        for key, value in attributes.items():
            if len(value) > MAX_TEXT or len(key) > MAX_TAG:
                raise self.error(
                    f"the attribute {shown(key)} of <{tag}> has {len(value)} characters", f"use at most {MAX_TEXT}"
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
