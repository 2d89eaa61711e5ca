"""Strict reading of XML elements: each number is checked, and everything that is not read is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import ModelError, shown
from ..model.part_fields import MAX_NAME
from .numbers import strict_floats
from .report import Report
from .xml import Element

EXPAND = "expand the file with xacro first"
"""The remedy for templates, which are not valid URDF."""


@dataclass(frozen=True)
class Source:
    """A file that is being read: its name for messages, and the report that collects remarks."""

    file: str
    report: Report

    def error(self, element: Element, what: str, remedy: str) -> ModelError:
        """Return the error for an element, with its file and line."""
        return ModelError(what, where=described(element), remedy=remedy, file=self.file, line=element.line)

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
            raise self.error(element, f"the attribute {name!r} is {shown(text)}, which is not expanded", EXPAND)
        where = f"{described(element)} attribute {name!r}"
        return strict_floats(text, count, where=where, file=self.file, line=element.line)

    def number(self, element: Element, name: str, default: float | None = None) -> float:
        """Return an attribute of one finite number, which is required if there is no default."""
        return self.numbers(element, name, 1, None if default is None else (default,))[0]

    def one(self, element: Element, tag: str) -> Element | None:
        """Return the first child with this tag, or None; further ones are reported as dropped."""
        found = element.all(tag)
        for extra in found[1:]:
            self.report.dropped(f"{described(extra)}: {described(element)} has one already", extra.line)
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
                self.report.dropped(f"attribute {shown(name)} = {shown(value)} of {described(element)}", element.line)
        known = frozenset(children)
        for child in element.children:
            if child.tag not in known:
                self.unread(child, element)
        if element.text:
            self.report.dropped(f"text {shown(element.text)} in {described(element)}", element.line)

    def unread(self, child: Element, parent: Element) -> None:
        """Report an element that is not read."""
        text = f"{described(child)} in {described(parent)}"
        if child.tag.startswith("xacro:"):
            self.report.suspect(f"{text} is left over from xacro and is not read; {EXPAND}", child.line)
        else:
            self.report.dropped(text, child.line)


def described(element: Element) -> str:
    """Return the text for an element in messages: its tag, and its name if it has one."""
    name = element.attributes.get("name")
    return f"<{element.tag}>" if name is None else f"<{element.tag} name={shown(name)}>"
