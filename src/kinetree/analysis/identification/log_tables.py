"""Text tables of logs (.csv): encodings, separators, decimal commas, headers, units, dates, and cells with lists."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...errors import InputError

SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9, "nsecs": 1e-9, "nanosec": 1e-9,
           "millis": 1e-3, "micros": 1e-6, "nanos": 1e-9, "milliseconds": 1e-3, "microseconds": 1e-6}  # fmt: skip
TORQUES = {"nmm": 1e-3, "mnm": 1e-3, "ncm": 1e-2, "knm": 1e3}
CURRENTS = {"ma": 1e-3, "milliamp": 1e-3, "milliamps": 1e-3}
ANGLES = {
    **dict.fromkeys(("deg", "degs", "degree", "degrees", "degps", "grad"), math.pi / 180.0),
    **dict.fromkeys(("rev", "revs", "turn", "turns", "rot"), 2.0 * math.pi), "mrad": 1e-3, "mm": 1e-3, "rad": 1.0,
}  # fmt: skip
"""Radians or meters of a unit by its name."""
PERCENT = "percent"
"""The word for "%": torques in percent of their rating are currents, whose gains are to be found."""
UNIT_WORDS = {*SECONDS, *ANGLES, *TORQUES, *CURRENTS, "rpm", "min", "nm", "a", "s", "rad", "m", "sec", "amp", "amps"}
LARGE_BYTES = 1024 * 2**20
LIST = re.compile(r'"?(?:array\()?[\[(]([^\])]*)[\])]\)?"?')
"""A cell that is a list: "[0.1, 0.2]", "(0.1 0.2)"."""
LIST_LINES = 100
"""The most lines over which lists in quotation marks go."""
HEADER_LINES = 200
"""The lines in which the first row of numbers is expected."""


@dataclass(frozen=True)
class TextTable:
    """The names of columns, None if there are none, the numbers [n, columns], and the first line with numbers."""

    head: list[str] | None
    rows: Numbers
    first: str


def words_of(name: str) -> list[str]:
    """Return the words of a column's name in lower case, with numbers apart: "actualQ_3 [rad]" is actual, q, 3, rad."""
    name = re.sub(r"\bmA\b", "ma", name.replace("%", f" {PERCENT} ").replace("\N{DEGREE SIGN}", " deg "))
    name = re.sub(r"\b([kcm]?N) ?[.*]? ?(mm?)\b", lambda x: (x[1] + x[2]).lower(), name)  # "N m", "N.m"
    name = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+|\d+", name.lower())


def read_table(path: Path, names: list[str] | None) -> TextTable:
    """Return the header and the numbers of a text table; cells that are no numbers are NaN."""
    lines = _unfolded([x for x in _text(path).splitlines() if x.strip()])
    if len(lines) < 3:
        raise InputError(f"{path} has {len(lines)} lines; a log has a header and a row per time")
    sample = lines[len(lines) // 2]
    mark = _mark(sample)
    comma = mark != "," and not any("." in _without_dates(x) for x in lines[-20:])  # decimal commas
    split: Callable[[str], list[str]] = str.split
    if sample.count(mark):
        split = lambda x: x.split(mark)  # noqa: E731
    wide = len(split(sample.rstrip(mark)))
    first = next((k for k, x in enumerate(lines[:HEADER_LINES]) if _is_row(split(x), wide, comma)), None)
    if first is None:
        raise InputError(
            f"{path} has no rows of numbers in its first {HEADER_LINES} lines; give a text table with a row per time "
            "and a column per joint"
        )
    head = names or _header(lines[:first], split, wide)
    if head is not None and len(head) < wide:
        head = [*head, *(f"column {k + 1}" for k in range(len(head), wide))]
    body = [x for x in lines[first:] if x.lstrip()[0] not in "#%"]
    rows = _numbers(body, mark if sample.count(mark) else None, split, wide, comma)
    return TextTable(None if head is None else head[:wide], rows, lines[first])


def _text(path: Path) -> str:
    """Return the text of a file, in UTF-8 or, with its mark, in UTF-16."""
    try:
        if path.stat().st_size > LARGE_BYTES:
            raise InputError(f"{path} has more than {LARGE_BYTES // 2**20} MiB; thin it out, or split it")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give a text table (.csv)") from None
    wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    return raw.decode("utf-16" if wide else "utf-8-sig", errors="replace").replace("\0", "")


def _mark(line: str) -> str:
    return next((x for x in (";", "\t") if line.count(x) > 1), ",")


def _unfolded(lines: list[str]) -> list[str]:
    """Return lines with a cell per number, where cells of a table are lists, such as "[0.1, 0.2]".

    Names of columns get the number of the entry, or its joint where another cell lists as many words.
    """
    if len(lines) < 3 or not _is_list_row(lines[len(lines) // 2]) or _is_list_row(lines[0]):
        return lines
    whole = list(_unbroken(lines))
    sample = whole[len(whole) // 2]
    mark = _mark(LIST.sub("", sample))
    lists = [_entries(x) for x in LIST.findall(sample)]
    joints = next((x for x in lists if x and not _are_numbers(x)), [])
    head, taken = [], iter(lists)
    for name, cell in zip(whole[0].split(mark), LIST.sub("\1", sample).split(mark), strict=False):
        own = next(taken) if "\1" in cell else None
        if own is None:
            head.append(name)
        elif _are_numbers(own):
            head += [f"{name} {joints[k] if len(joints) == len(own) else k + 1}" for k in range(len(own))]

    def unfold(found: re.Match[str]) -> str:
        cells = _entries(found[1])
        return mark.join(cells) if _are_numbers(cells) else "\1"

    rows = [[x for x in LIST.sub(unfold, line).split(mark) if "\1" not in x] for line in whole[1:]]
    blank = [""] * len(head)  # of rows with more or fewer entries
    return [mark.join(x if len(x) == len(head) else blank) for x in (head, *rows)]


def _is_list_row(line: str) -> bool:
    """Return whether a cell of a line is a list of several numbers."""
    return any(len(x) > 1 and _are_numbers(x) for x in map(_entries, LIST.findall(line)))


def _unbroken(lines: Sequence[str]) -> Iterator[str]:
    """Return lines whose quotation marks are closed: a list in quotation marks may go over several lines.

    A mark that is not closed within LIST_LINES stands alone: these lines are returned as they are.
    """
    held: list[str] = []
    is_open = False
    for line in lines:
        held.append(line)
        is_open ^= line.count('"') % 2 == 1
        if not is_open:
            yield " ".join(held)
        elif len(held) == LIST_LINES:
            yield from held
        else:
            continue
        held, is_open = [], False
    yield from held


def _entries(text: str) -> list[str]:
    return [x.strip("\"'") for x in re.split(r"[,;\s]+", text.strip()) if x]


def _are_numbers(cells: Sequence[str]) -> bool:
    return bool(cells) and all(_number(x) is not None for x in cells)


def _numbers(lines: list[str], mark: str | None, split: Callable[[str], list[str]], wide: int, comma: bool) -> Numbers:
    """Return the numbers of rows: by NumPy's reader where all cells are numbers, and cell by cell otherwise."""
    if comma:
        lines = [x.replace(",", ".") for x in lines]
    try:
        rows = np.loadtxt(lines, delimiter=mark, comments=None, ndmin=2)
        if rows.shape[1] == wide:
            return rows
    except ValueError:
        pass
    rows = np.full((len(lines), wide), np.nan)
    for k, line in enumerate(lines):
        for n, cell in enumerate(split(line)[:wide]):
            value = _number(cell)
            rows[k, n] = np.nan if value is None else value
    return rows


def _is_row(cells: Sequence[str], wide: int, comma: bool) -> bool:
    """Return whether cells are a row of numbers: two at least, and more than there are words, such as of a state."""
    known = [_number(x.replace(",", ".") if comma else x) is not None for x in cells if x.strip()]
    return len(cells) >= min(wide, 2) and sum(known) > max(1, len(known) // 2)


def _header(lines: list[str], split: Callable[[str], list[str]], wide: int) -> list[str] | None:
    """Return the names of columns: the line before the numbers, or the one before its units, joined with them."""
    rows = [[x.strip().strip("\"'") for x in _cells(line.lstrip("#% "), split, wide)] for line in lines]
    rows = [row for row in rows if len(row) >= max(2, wide - 1)]
    if not rows:
        return None
    units = [set(words_of(x)) for x in rows[-1]]
    if len(rows) > 1 and all(w <= UNIT_WORDS | {PERCENT} for w in units) and sum(map(bool, units)) > 1:
        return [f"{a} [{b}]" for a, b in zip(rows[-2], rows[-1], strict=False)]
    return rows[-1]


def _cells(line: str, split: Callable[[str], list[str]], wide: int) -> list[str]:
    """Return the names in a line of a header; where blanks separate, those before brackets belong to a name."""
    cells = split(line)
    if len(cells) != wide and split is str.split:
        cells = re.findall(r"\S+(?:\s+[\[(][^\])]*[\])])?", line)
    return cells


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return _clock(cell.strip().strip("\"'"))


def _clock(text: str) -> float | None:
    """Return the seconds of a date with a time, or of a time of day."""
    if text.count(":") not in (2, 3):
        return None
    try:
        if re.fullmatch(r"\d+:\d\d:\d\d([.,]\d+)?", text):
            hours, minutes, seconds = text.replace(",", ".").split(":")
            return 3600.0 * int(hours) + 60.0 * int(minutes) + float(seconds)
        return (
            datetime.fromisoformat(text.replace(",", ".")).replace(tzinfo=None) - datetime(2000, 1, 1)
        ).total_seconds()
    except ValueError:
        return None


def _without_dates(line: str) -> str:
    return re.sub(r"\d+:\d\d:\d\d[.,]\d+", "", line)
