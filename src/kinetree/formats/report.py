"""The import report: parts that were read, changed or dropped, or are suspect, each with file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..model.checks import massless_inertias, tolerated
from ..model.mechanism import Mechanism
from ..model.parts import Frame

SORTS = ("read", "changed", "dropped", "suspect")


@dataclass(frozen=True)
class Entry:
    """One line of the report."""

    sort: str
    text: str
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """Return `file:line: text`."""
        place = self.file + (f":{self.line}" if self.line is not None else "")
        return f"{place}: {self.text}" if place else self.text


@dataclass
class Report:
    """Entries collected while a file is read; everything that is dropped has an entry."""

    file: str = ""
    entries: list[Entry] = field(default_factory=list)

    def read(self, text: str, line: int | None = None) -> None:
        """Add an entry for a part that was recognized and kept."""
        self._add("read", text, line)

    def changed(self, text: str, line: int | None = None) -> None:
        """Add an entry for a part that was merged, snapped or repaired."""
        self._add("changed", text, line)

    def dropped(self, text: str, line: int | None = None) -> None:
        """Add an entry for a part of the file that is not in the mechanism."""
        self._add("dropped", text, line)

    def suspect(self, text: str, line: int | None = None) -> None:
        """Add an entry for a part that was kept unchanged but is probably wrong."""
        self._add("suspect", text, line)

    def of(self, sort: str) -> list[Entry]:
        """Return the entries of one sort: read, changed, dropped or suspect."""
        return [e for e in self.entries if e.sort == sort]

    def _add(self, sort: str, text: str, line: int | None) -> None:
        self.entries.append(Entry(sort, text, self.file, line))

    def short(self, entry: Entry) -> str:
        """Return `name:line: text`, with the full path only of a file other than that of the report."""
        return str(replace(entry, file=Path(entry.file).name) if entry.file == self.file else entry)

    def __str__(self) -> str:
        """Return the report as text: the path of a file in another folder, and a heading per sort of entries."""
        lines = [self.file] if Path(self.file).name != self.file else []
        for sort in SORTS:
            entries = self.of(sort)
            if entries:
                lines.append(f"{sort} ({len(entries)})")
                lines += [f"  {self.short(e)}" for e in entries]
        return "\n".join(lines) if self.entries else "nothing to report"


def report_tolerated(mechanism: Mechanism, report: Report) -> None:
    """Report as suspect all faults that only a lenient check accepts, and inertias without mass."""
    for part, message in tolerated(mechanism):
        report.suspect(f"{part}: {message}")
    for name, message in massless_inertias(mechanism):
        report.suspect(f"body {name!r}: {message}")


def report_moved(
    mechanism: Mechanism, given: Iterable[Frame], report: Report, line: Callable[[str], int | None] = lambda body: None
) -> None:
    """Report bodies whose data were moved to their joints; `given` are the frames that the mechanism was made of."""
    known = {frame.name for frame in given}
    for frame in mechanism.frames:
        if frame.name not in known:
            text = f"the data of body {frame.body!r} are moved to its joint; frame {frame.name!r} is the given one"
            report.changed(text, line(frame.body))
