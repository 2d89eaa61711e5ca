"""Tables of a load report, and their CSV files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.atomic import replacing
from .._support.tables import Cell, Table, figure
from ..simulation.outcomes import Outcome
from .catalogue import RPM
from .loads import PARTS, TOTALS, DriveLoad
from .measures import extreme, rms
from .motors import MotorLoad

if TYPE_CHECKING:
    from .report import LoadReport


ROUNDING = 1e-12
"""The part of other numbers below which a difference of them is rounding."""


def write_csv(table: Table, path: Path) -> Path:
    """Write a CSV file with headings and units, and numbers with all their digits."""
    with replacing(path) as written, open(written, "x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.labels)
        writer.writerows([["" if x is None else x for x in row] for row in table.rows])
    return path


def clean(x: float, size: float) -> float:
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
            d.peak_braking.t, clean(d.mean_power, max(d.peak_power.value, d.peak_braking.value)),
            clean(d.delivered, d.regenerated), clean(d.regenerated, d.delivered),
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


def _motors(report: LoadReport) -> Table:
    rows = [
        (
            m.name, m.drive, m.peak_current.value, m.peak_current.t, m.rms_current, m.peak_voltage.value,
            m.peak_voltage.t, m.peak_power.value, m.electrical, m.copper, clean(m.drag, m.electrical), m.mechanical,
            None if m.warm is None else m.warm.value, m.hot, ", ".join(m.over),
        )
        for m in report.motors
    ]  # fmt: skip
    heads = [
        ("motor", ""), ("drive", ""), ("peak current", "A"), ("at", "s"), ("RMS current", "A"), ("peak voltage", "V"),
        ("at", "s"), ("peak power", "W"), ("electrical energy", "J"), ("copper loss", "J"), ("friction and gear", "J"),
        ("mechanical work", "J"), ("winding after one run", "C"), ("winding in the long run", "C"), ("over limit", ""),
    ]  # fmt: skip
    return _table("motors", "Electric motors", heads, rows)


def _elastic(report: LoadReport) -> Table:
    rows = [
        (x.name, x.joint, x.unit, x.peak.value, x.peak.t, x.rms, x.twist.value, x.twist.t, x.stored, x.lost)
        for x in report.elastic
    ]
    heads = [
        ("spring", ""), ("joint", ""), ("unit", ""), ("peak", ""), ("at", "s"), ("RMS", ""), ("largest twist", ""),
        ("at", "s"), ("stored at most", "J"), ("lost", "J"),
    ]  # fmt: skip
    return _table("elastic", "Elastic joints", heads, rows)


def _deflections(report: LoadReport) -> Table:
    rows = [
        (
            x.name,
            x.body,
            x.own.value,
            x.own.t,
            x.total.value,
            x.total.t,
            x.mode,
            *((None, None) if x.part is None else (100.0 * x.part.value, x.part.t)),
        )
        for x in report.deflections
    ]
    heads = [
        ("node", ""),
        ("body", ""),
        ("deflection of the body", "m"),
        ("at", "s"),
        ("of all bodies", "m"),
        ("at", "s"),
        ("nearest mode", ""),
        ("part of the valid deflection", "%"),
        ("at", "s"),
    ]
    return _table("deflections", "Deflections of flexible bodies", heads, rows)


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
        ("through loops", clean(e.loops, size)),
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
    return Table(tuple(names), tuple(rows), tuple(units), name, title)


TABLES: dict[str, Callable[[LoadReport], Table]] = {
    "drives": _drives,
    "motors": _motors,
    "elastic": _elastic,
    "deflections": _deflections,
    "bearings": _bearings,
    "elements": _elements,
    "causes": _causes,
    "energy": _energy,
    "candidates": _candidates,
}
"""The tables by name, in the order of the report."""

# --- The summary of a load report in plain words ---

MOST = 8
"""The most drives that the summary describes; the tables have all."""


def summary(report: LoadReport) -> list[str]:
    """Return the summary as a list of paragraphs."""
    out = [*_state(report)]
    ranked = sorted(report.driven, key=lambda d: -d.peak_power.value)
    shown = {d.name for d in ranked[:MOST]}
    out += [f"{_drive(d)}{_choice(report, d)}" for d in report.driven if d.name in shown]
    if len(ranked) > MOST:
        out.append(f"{len(ranked) - MOST} more drives are in the tables; these {MOST} have the highest power.")
    if not report.driven:
        out.append("No joint is driven in this run: no drive exerts a force or torque.")
    out += [_motor_of_words(m) for m in report.motors[:MOST]]
    return out + _deflections_of_words(report) + _bearings_of_words(report)


def moment(t: float) -> str:
    """Return an instant as text: "1.84 s"."""
    return f"{t:.4g} s"


def speed_text(value: float, unit: str) -> str:
    """Return a speed as text; rotations also in revolutions per minute."""
    text = f"{figure(value, 3)} {unit}"
    return f"{text} ({figure(value / RPM, 3)} rpm)" if unit == "rad/s" else text


def _state(report: LoadReport) -> list[str]:
    if len(report.t) == 1:
        return [
            f"The run has a single instant, t = {moment(report.t[0])}: RMS values equal the peaks, energies are zero."
        ]
    if report.run.outcome is Outcome.DOUBTFUL:
        return [f"The run is {report.status}. All figures are in doubt."]
    if not report.run.finished:
        return [f"The run ended early ({report.status}). All figures are of the part up to t = {moment(report.t[-1])}."]
    return []


def _drive(d: DriveLoad) -> str:
    text = (
        f"{d.name} needs {figure(abs(d.peak.value), 3)} {d.unit} at most, at {moment(d.peak.t)}, and "
        f"{figure(d.continuous, 3)} {d.unit} continuously (RMS)"
    )
    if d.thermal is not None:
        text += f", or {figure(d.thermal, 3)} {d.unit} by its heating"
    if d.peak_speed.value == 0.0:
        return f"{text}. It does not move."
    verb = "turns" if d.rotates else "moves"
    text += f". It {verb} at up to {speed_text(abs(d.peak_speed.value), d.speed_unit)}"
    if d.peak_power.value > 0.0:
        text += f" and delivers up to {figure(d.peak_power.value, 3)} W"
    if d.peak_braking.value > 0.0:
        link = "; " if d.peak_power.value > 0.0 else " and "
        text += f"{link}braking gives back up to {figure(d.peak_braking.value, 3)} W"
    energies = (clean(d.delivered, d.regenerated), clean(d.regenerated, d.delivered))
    parts = [f"{verb} {figure(x, 3)} J" for verb, x in zip(("delivers", "takes back"), energies, strict=True) if x]
    return f"{text}. In all it {' and '.join(parts)}." if parts else f"{text}."


def _motor_of_words(m: MotorLoad) -> str:
    text = (
        f"The motor {m.name} takes up to {figure(abs(m.peak_current.value), 3)} A "
        f"({figure(m.rms_current, 3)} A RMS) and {figure(abs(m.peak_voltage.value), 3)} V; its winding loses "
        f"{figure(m.copper, 3)} J"
    )
    if m.warm is not None and m.hot is not None:
        text += f" and warms to {m.warm.value:.1f} C in this run"
        if np.isinf(m.hot):
            text += ". Repeated without end, the run heats it without bound"
        else:
            text += f". Repeated without end, the run heats it to {m.hot:.0f} C"
    return f"{text}. Exceeded: its limit of {' and '.join(m.over)}." if m.over else f"{text}."


def _deflections_of_words(report: LoadReport) -> list[str]:
    most = max(report.deflections, key=lambda x: x.own.value, default=None)
    if most is None:
        return []
    text = f"The largest deflection is {figure(most.own.value, 3)} m at {most.name}, at {moment(most.own.t)}."
    worst = max((x for x in report.deflections if x.part), key=lambda x: x.part.value, default=None)  # type: ignore[union-attr]
    if worst is None or worst.part is None:
        return [text]
    share = f"{figure(100.0 * worst.part.value, 3)} % of its largest valid deflection"
    beyond = ": deflections are not small, and the figures are in doubt" if worst.part.value > 1.0 else ""
    return [f"{text} {worst.body} reaches {share}, at {moment(worst.part.t)}{beyond}."]


def _bearings_of_words(report: LoadReport) -> list[str]:
    if not report.bearings:
        return []
    most = max(report.bearings, key=lambda b: b.peaks["force"].value)
    peak = most.peaks["force"]
    if peak.value == 0.0:
        return ["The bearings carry no force."]
    text = f"The largest bearing force is {figure(peak.value, 3)} N at {most.name}, at {moment(peak.t)}"
    if most.has_axis:
        radial, axial = most.peaks["radial"], most.peaks["axial"]
        text += f" (at most {figure(radial.value, 3)} N radial and {figure(axial.value, 3)} N axial)"
    bent = max((b for b in report.bearings if b.has_axis), key=lambda b: b.peaks["bending"].value, default=None)
    text += "."
    if bent is not None and bent.peaks["bending"].value > 0.0:
        tilt = bent.peaks["bending"]
        text += f" The largest bending moment is {figure(tilt.value, 3)} N m at {bent.name}, at {moment(tilt.t)}."
    return [text]


def _choice(report: LoadReport, d: DriveLoad) -> str:
    """Return the best candidate of the catalogue for a drive as a sentence; "" without a catalogue."""
    if report.catalogue is None:
        return ""
    ranked = report.ranking(d.name)
    if not ranked:
        return " The catalogue has no screw for this translation."
    best = ranked[0]
    bound = best.binding
    when = "over the whole run" if bound.t is None else f"at {moment(bound.t)}"
    limit = f"{bound.limit} {when}"
    if best.fits:
        return f" First choice of the catalogue: {best.name}, margin {figure(bound.value, 3)} ({limit})."
    return f" Nothing in the catalogue fits; nearest is {best.name}, margin {figure(bound.value, 3)} ({limit})."
