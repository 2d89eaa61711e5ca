"""The import report: parts that were read, changed or dropped, or are suspect, each with file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._support.tables import Displayed, Table, count_text
from ..model.checks import massless_inertias, tolerated_faults
from ..model.mechanism import Mechanism
from ..model.parts import Frame, Placement

SORTS = ("suspect", "dropped", "changed", "read")
"""The sorts of entries, those that ask for attention first."""
NAMED = 3
"""The number of parts that the line of a group names; a group of no more is listed entry by entry."""


def size_text(mechanism: Mechanism) -> str:
    """Return the numbers of bodies and degrees of freedom as words: "2 bodies, 1 degree of freedom"."""
    return f"{count_text(len(mechanism.bodies), 'body', 'bodies')}, {count_text(mechanism.nv, 'degree')} of freedom"


@dataclass(frozen=True)
class Group:
    """What several entries have in common: "meshes are not found", and which part each of them is about."""

    text: str
    part: str


@dataclass(frozen=True)
class ReportEntry:
    """One line of the report."""

    sort: str
    text: str
    file: str = ""
    line: int | None = None
    group: Group | None = None

    def __str__(self) -> str:
        """Return `file:line: text`."""
        place = self.file + (f":{self.line}" if self.line is not None else "")
        return f"{place}: {self.text}" if place else self.text


@dataclass(repr=False)
class Report(Displayed):
    """Entries collected while a file is read; everything that is dropped has an entry.

    Printed, it is short: suspect parts first, and many entries of one group on one line. `entries` has them all.
    """

    file: str = ""
    entries: list[ReportEntry] = field(default_factory=list)

    def __fspath__(self) -> str:
        """Return the path of the file, so that the report of a written file can be given for it."""
        return self.file

    def read(self, text: str, line: int | None = None, group: Group | None = None) -> None:
        """Add an entry for a part that was recognized and kept."""
        self._add("read", text, line, group)

    def changed(self, text: str, line: int | None = None, group: Group | None = None) -> None:
        """Add an entry for a part that was merged, snapped or repaired."""
        self._add("changed", text, line, group)

    def dropped(self, text: str, line: int | None = None, group: Group | None = None) -> None:
        """Add an entry for a part of the file that is not in the mechanism."""
        self._add("dropped", text, line, group)

    def suspect(self, text: str, line: int | None = None, group: Group | None = None) -> None:
        """Add an entry for a part that was kept unchanged but is probably wrong."""
        self._add("suspect", text, line, group)

    def of(self, sort: str) -> list[ReportEntry]:
        """Return the entries of one sort: read, changed, dropped or suspect."""
        return [e for e in self.entries if e.sort == sort]

    def _add(self, sort: str, text: str, line: int | None, group: Group | None = None) -> None:
        self.entries.append(ReportEntry(sort, text, self.file, line, group))

    def short(self, entry: ReportEntry) -> str:
        """Return `name:line: text`, with the full path only of a file other than the report's."""
        return str(replace(entry, file=Path(entry.file).name) if entry.file == self.file else entry)

    def lines(self, sort: str) -> list[str]:
        """Return the entries of one sort as lines: each on its own first, then a line per group of many."""
        entries = self.of(sort)
        groups: dict[str, list[Group]] = {}
        for entry in entries:
            if entry.group is not None:
                groups.setdefault(entry.group.text, []).append(entry.group)
        many = {text: found for text, found in groups.items() if len(found) > NAMED}
        single = [self.short(e) for e in entries if e.group is None or e.group.text not in many]
        return single + [_together(text, [group.part for group in found]) for text, found in many.items()]

    def display(self) -> list[str | Table]:
        """Return the file and a table of the lines of all sorts."""
        rows = tuple((sort, line) for sort in SORTS for line in self.lines(sort))
        return [self.file, Table(("", ""), rows)] if rows else ["nothing to report"]

    def __str__(self) -> str:
        """Return the report as text: the path of a file in another folder, and a heading per sort of entries."""
        text = [self.file] if Path(self.file).name != self.file else []
        for sort in SORTS:
            if lines := self.lines(sort):
                text += [f"{sort} ({len(self.of(sort))})", *(f"  {line}" for line in lines)]
        return "\n".join(text) if self.entries else "nothing to report"


def _together(text: str, parts: list[str]) -> str:
    """Return one line for a group: the number of its parts, what they have in common, and some of their names."""
    named = list(dict.fromkeys(parts))
    more = f", and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return f"{len(parts)} {text}: {', '.join(named[:NAMED])}{more}"


def report_tolerated(mechanism: Mechanism, report: Report) -> None:
    """Report as suspect all faults that only a lenient check accepts, and inertias without mass."""
    for part, message in tolerated_faults(mechanism):
        report.suspect(f"{part}: {message}")
    for name, message in massless_inertias(mechanism):
        report.suspect(f"body {name!r}: {message}")


def report_moved(
    mechanism: Mechanism, given: Iterable[Frame], report: Report, line: Callable[[str], int | None] = lambda body: None
) -> None:
    """Report bodies whose data were moved to their joints; `given` are the frames that the mechanism was made of."""
    known = {frame.name for frame in given}
    for frame in mechanism.frames:
        if frame.name not in known and frame.placement != Placement():
            text = f"the data of body {frame.body!r} are moved to its joint; frame {frame.name!r} is the given one"
            report.changed(text, line(frame.body))
