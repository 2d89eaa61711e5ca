"""Tables of a load report: the same rows as text, CSV, data frames and HTML."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..results.files.atomic import replacing
from .bearings import PARTS, TOTALS
from .measures import extreme, rms

if TYPE_CHECKING:
    from .report import LoadReport

ROUNDING = 1e-12
"""The part of other numbers below which a difference of them is rounding."""

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """A table: its name, a title, a heading and a unit ("" for none) per column; rows have texts, numbers and None."""

    name: str
    title: str
    heads: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def labels(self) -> list[str]:
        """The headings with their units: "peak power [W]"."""
        return [f"{head} [{unit}]" if unit else head for head, unit in zip(self.heads, self.units, strict=True)]

    def text(self) -> str:
        """Return the table as aligned text."""
        cells = [[shown(x) for x in row] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(self.labels, *cells, strict=True)]
        numeric = [not any(isinstance(row[k], str) for row in self.rows) for k in range(len(self.heads))]
        out = []
        for line in (self.labels, *cells):
            columns = zip(line, widths, numeric, strict=True)
            out.append("  ".join(x.rjust(w) if right else x.ljust(w) for x, w, right in columns).rstrip())
        return "\n".join(out)

    def write(self, path: Path) -> Path:
        """Write a CSV file with headings and units, and numbers with all their digits."""
        with replacing(path) as written, open(written, "x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.labels)
            writer.writerows([["" if x is None else x for x in row] for row in self.rows])
        return path


def shown(x: Cell) -> str:
    """Return a cell as text: numbers with four significant digits, "-" for nothing."""
    if x is None:
        return "-"
    if isinstance(x, str | int):
        return str(x)
    return figure(x)


def figure(x: float, digits: int = 4) -> str:
    """Return a number with some significant digits, without an exponent if it is of ordinary size."""
    if math.isinf(x):
        return "no limit" if x > 0 else "-inf"
    if x == 0.0:
        return "0"
    size = math.floor(math.log10(abs(x)))
    if -4 <= size < 7:
        return f"{x:.{max(0, digits - 1 - size)}f}"
    return f"{x:.{digits - 1}e}"


def cleaned(x: float, size: float) -> float:
    """Return a number, or zero if it is rounding beside numbers of some size."""
    return 0.0 if abs(x) <= ROUNDING * size else x


def tables(report: LoadReport) -> dict[str, Table]:
    """Return the tables of a report by name; those without rows are left out."""
    made = [make(report) for make in TABLES.values()]
    return {table.name: table for table in made if table.rows}


def _drives(report: LoadReport) -> Table:
    thermal = report.thermal_time is not None
    rows = [
        (
            d.name, d.unit, d.peak.value, d.peak.t, d.continuous, *((d.thermal,) if thermal else ()), d.speed_unit,
            d.peak_speed.value, d.peak_speed.t, d.rms_speed, d.peak_power.value, d.peak_power.t, d.peak_braking.value,
            d.peak_braking.t, cleaned(d.mean_power, max(d.peak_power.value, d.peak_braking.value)),
            cleaned(d.delivered, d.regenerated), cleaned(d.regenerated, d.delivered),
            100.0 * d.duty, 100.0 * d.motoring, 100.0 * d.braking,
        )
        for d in report.drives
    ]  # fmt: skip
    heads = [
        ("drive", ""), ("unit", ""), ("peak", ""), ("at", "s"), ("continuous", ""),
        *((("thermal", ""),) if thermal else ()),
        ("speed unit", ""), ("peak speed", ""), ("at", "s"), ("RMS speed", ""),
        ("peak power", "W"), ("at", "s"), ("peak braking", "W"), ("at", "s"), ("mean power", "W"), ("delivered", "J"),
        ("regenerated", "J"), ("duty", "%"), ("motoring", "%"), ("braking", "%"),
    ]  # fmt: skip
    return _table("drives", "Drives", heads, rows)


def _bearings(report: LoadReport) -> Table:
    heads = [("joint", ""), ("sort", ""), ("kind", "")]
    for part, unit in (PARTS | TOTALS).items():
        heads += [(f"{part} peak", unit), ("at", "s"), (f"{part} RMS", unit)]
    rows = []
    for b in report.bearings:
        cells: list[Cell] = [b.name, b.sort, b.kind]
        for part in (*PARTS, *TOTALS):
            has = part in b.peaks
            cells += [b.peaks[part].value, b.peaks[part].t, b.rms[part]] if has else [None] * 3
        rows.append((*cells, ", ".join(b.drives), ", ".join(b.shared)))
    return _table("bearings", "Bearing loads", [*heads, ("of the drive", ""), ("shared", "")], rows)


def _elements(report: LoadReport) -> Table:
    heads = [
        ("element", ""), ("sort", ""), ("peak force", "N"), ("at", "s"), ("RMS force", "N"), ("shortest", "m"),
        ("longest", "m"), ("peak speed", "m/s"), ("peak power", "W"), ("delivered", "J"), ("absorbed", "J"),
    ]  # fmt: skip
    rows = [
        (
            e.name, e.sort, e.peak.value, e.peak.t, e.rms, e.shortest.value, e.longest.value, e.peak_speed.value,
            e.peak_power.value, e.delivered, e.absorbed,
        )
        for e in report.elements
    ]  # fmt: skip
    return _table("elements", "Springs, dampers and linear actuators", heads, rows)


def _causes(report: LoadReport) -> Table:
    rows = []
    for drive in report.driven:
        for cause, share in report.shares(drive.name).items():
            peak = extreme(report.t, share)
            rows.append((drive.name, cause, drive.unit, peak.value, peak.t, rms(report.t, share)))
    heads = [("drive", ""), ("cause", ""), ("unit", ""), ("peak", ""), ("at", "s"), ("RMS", "")]
    return _table("causes", "Causes of the drives' forces and torques", heads, rows)


def _energy(report: LoadReport) -> Table:
    e = report.energy
    size = max(e.delivered, e.regenerated, abs(e.mechanical))
    rows = [
        ("delivered by the drives", e.delivered),
        ("regenerated by the drives", e.regenerated),
        ("change of kinetic and potential energy", e.mechanical),
        ("lost in friction and damping of joints", e.friction),
        ("stored or lost in springs and dampers", e.springs),
        ("spent against external forces", e.external),
        ("through loops", cleaned(e.loops, size)),
        ("error of the integrals", e.residual),
    ]
    return _table("energy", "Energy balance", [("energy", ""), ("value", "J")], rows)


def _candidates(report: LoadReport) -> Table:
    limits = list(dict.fromkeys(m.limit for c in report.candidates for m in sorted(c.margins, key=lambda m: m.limit)))
    heads = [
        ("drive", ""), ("rank", ""), ("candidate", ""), ("fits", ""), ("binding limit", ""),
        ("margin", "1"), ("at", "s"),
        ("ratio", ""), ("reflected inertia", ""), ("acceleration load", ""), ("mass", "kg"),
        *((f"margin of {limit}", "1") for limit in limits),
    ]  # fmt: skip
    rows, rank, last = [], 0, None
    for c in report.candidates:
        rank, last = (rank + 1 if c.drive == last else 1), c.drive
        own = {m.limit: m.value for m in c.margins}
        rows.append(
            (
                c.drive, rank, c.name, "yes" if c.fits else "no", c.binding.limit, c.binding.value, c.binding.t,
                c.ratio, c.reflected, c.acceleration, c.mass, *(own.get(limit) for limit in limits),
            )
        )  # fmt: skip
    return _table("candidates", "Motors and gearboxes of the catalogue", heads, rows)


def _table(name: str, title: str, heads: Iterable[tuple[str, str]], rows: Iterable[tuple[Any, ...]]) -> Table:
    names, units = zip(*heads, strict=True)
    return Table(name, title, tuple(names), tuple(units), tuple(rows))


TABLES: dict[str, Callable[[LoadReport], Table]] = {
    "drives": _drives,
    "bearings": _bearings,
    "elements": _elements,
    "causes": _causes,
    "energy": _energy,
    "candidates": _candidates,
}
"""The tables by name, in the order of the report."""
