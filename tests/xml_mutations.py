"""Mutations of files in XML: functions of a text and two numbers, and a strategy of lists of them."""

from __future__ import annotations

import re

from hypothesis import strategies as st

AWKWARD = [
    "",
    " ",
    "nan",
    "inf",
    "-1",
    "0 0 0",
    "1e400",
    "1e308 1e308 1e308",
    "1e-320",
    "1_000",
    "\u0661\u0662\u0663",
    "0x10",
    "1 2",
    "${pi/2}",
    "ground",
    "root",
    "a" * 2000,
    "package://../../etc/passwd",
    "file:///etc/passwd",
    "model://\x7f",
    "fixed",
    "floating",
    "&lt;&#65;",
    "&undefined;",
]
BOMB = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'


def truncate(text: str, a: int, b: int) -> str:
    """Truncate the text."""
    return text[: a % (len(text) + 1)]


def remove(text: str, a: int, b: int) -> str:
    """Remove a piece."""
    start = a % (len(text) + 1)
    return text[:start] + text[start + b % 60 :]


def repeat(text: str, a: int, b: int) -> str:
    """Repeat a piece."""
    start = a % (len(text) + 1)
    return text[: start + b % 200] + text[start:]


def repeat_element(text: str, a: int, b: int) -> str:
    """Repeat an element without children."""
    found = list(re.finditer(r"<[^<>]*/>", text))
    return text if not found else text[: (m := found[a % len(found)]).end()] + m.group() + text[m.end() :]


def awkward_value(text: str, a: int, b: int) -> str:
    """Replace the value of an attribute."""
    found = list(re.finditer(r'="([^"]*)"', text))
    return (
        text
        if not found
        else text[: (m := found[a % len(found)]).start(1)] + AWKWARD[b % len(AWKWARD)] + text[m.end(1) :]
    )


def awkward_text(text: str, a: int, b: int) -> str:
    """Replace the text of an element."""
    found = list(re.finditer(r">([^<>]+)<", text))
    if not found:
        return text
    m = found[a % len(found)]
    return text[: m.start(1)] + AWKWARD[b % len(AWKWARD)] + text[m.end(1) :]


def swap_values(text: str, a: int, b: int) -> str:
    """Give one attribute the value of another: unknown parents, cycles, words for numbers."""
    found = list(re.finditer(r'="([^"]*)"', text))
    if not found:
        return text
    m, other = found[a % len(found)], found[b % len(found)]
    return text[: m.start(1)] + other.group(1) + text[m.end(1) :]


def rename_tag(text: str, a: int, b: int) -> str:
    """Give one tag the name of another."""
    found = list(re.finditer(r"<([a-z]+)", text))
    if not found:
        return text
    m, other = found[a % len(found)], found[b % len(found)]
    return text[: m.start(1)] + other.group(1) + text[m.end(1) :]


def nest(text: str, a: int, b: int) -> str:
    """Nest elements deeply somewhere."""
    start, depth = a % (len(text) + 1), b % 400
    return text[:start] + "<link>" * depth + "</link>" * depth + text[start:]


def bomb(text: str, a: int, b: int) -> str:
    """Declare entities."""
    at = text.rfind("</")
    return BOMB + text[:at] + "&c;" + text[at:]


def insert(text: str, a: int, b: int) -> str:
    """Insert any character."""
    start = a % (len(text) + 1)
    return text[:start] + chr(b % 0x11000) + text[start:]


MUTATIONS = [
    truncate,
    remove,
    repeat,
    repeat_element,
    awkward_value,
    awkward_text,
    swap_values,
    rename_tag,
    nest,
    bomb,
    insert,
]
NUMBER = st.integers(0, 10**6)
STEPS = st.lists(st.tuples(st.sampled_from(MUTATIONS), NUMBER, NUMBER), min_size=1, max_size=4)
