"""Tables of a load report as HTML, with instants that show the replay at that time."""

from __future__ import annotations

from html import escape

from .._support.tables import Table, cell_text, figure
from .candidates import Candidate, Margin
from .catalogue import RPM
from .causes import CAUSES
from .loads import LOADED, PARTS
from .measures import Extreme
from .page_parts import table
from .report import LoadReport
from .tables import clean

RANKED = 5
"""The most candidates in the table of a drive."""
ALWAYS = 3
"""The first energies of the balance, which are shown even if they are zero."""


def plain_table(given: Table) -> str:
    """Return a table with all columns."""
    return table(given.labels, [[escape(cell_text(x)) for x in row] for row in given.rows])


def drive_table(report: LoadReport) -> str:
    """Return the drives, and below them the names of joints without a drive."""
    heads = [
        "drive", "peak load", "continuous load", *(["by heating"] if report.thermal_time is not None else []),
        "peak speed", "RMS speed", "peak power", "peak braking", "mean power", "energy delivered",
        "regenerated", "duty",
    ]  # fmt: skip
    rows = []
    for d in report.driven:
        thermal = [] if d.thermal is None else [_value(d.thermal, d.unit)]
        mean = clean(d.mean_power, max(d.peak_power.value, d.peak_braking.value))
        energies = (clean(d.delivered, d.regenerated), clean(d.regenerated, d.delivered))
        rows.append(
            [
                _name(d.name),
                _peak(d.peak, d.unit),
                _value(d.continuous, d.unit),
                *thermal,
                _peak(d.peak_speed, d.speed_unit) + _rpm(d.peak_speed.value, d.speed_unit),
                _value(d.rms_speed, d.speed_unit),
                _peak(d.peak_power, "W"),
                _peak(d.peak_braking, "W"),
                _value(mean, "W"),
                *(_value(x, "J") for x in energies),
                _value(round(100.0 * d.duty), "%"),
            ]
        )
    idle = [escape(d.name) for d in report.drives if not d.driven]
    note = f'<p class="small">Without a drive: {", ".join(idle)}.</p>' if idle else ""
    return (table(heads, rows) if rows else "") + note


def bearing_table(report: LoadReport) -> str:
    """Return the peaks of all bearings with their instants."""
    rows, marks = [], set()
    for b in report.bearings:
        cells = []
        for part, unit in (*PARTS.items(), ("force", "N")):
            if part not in b.peaks:
                cells.append("")
                continue
            mark = "*" * (part in b.drives) + "~" * (part in b.shared)
            marks |= set(mark)
            cells.append(_peak(b.peaks[part], unit, mark))
        rows.append([_name(b.name), escape(f"{b.kind} {b.sort if b.sort == 'loop' else 'joint'}"), *cells])
    notes = []
    if "*" in marks:
        notes.append("* The joint is free in this direction: the drive acts there, not the bearing.")
    if "~" in marks:
        notes.append("~ Motion alone does not determine it: the joints share it by their stiffness.")
    if not all(b.has_axis for b in report.bearings):
        notes.append("Joints without a single axis have the whole force alone.")
    heads = [
        "joint or loop",
        "kind",
        "radial force",
        "axial force",
        "bending moment",
        "moment about axis",
        "whole force",
    ]
    below = "".join(f'<p class="small">{escape(note)}</p>' for note in notes)
    return table(heads, rows, texts=2) + below


def element_table(report: LoadReport) -> str:
    """Return the springs, dampers and linear actuators."""
    rows = [
        [
            _name(e.name),
            escape(e.sort),
            _peak(e.peak, "N"),
            _value(e.rms, "N"),
            _peak(e.shortest, "m"),
            _peak(e.longest, "m"),
            _peak(e.peak_speed, "m/s"),
            _peak(e.peak_power, "W"),
            _value(clean(e.delivered, e.absorbed), "J"),
            _value(clean(e.absorbed, e.delivered), "J"),
        ]
        for e in report.elements
    ]
    heads = [
        "element", "kind", "peak force", "RMS force", "shortest", "longest", "peak speed", "peak power", "delivered",
        "absorbed",
    ]  # fmt: skip
    return table(heads, rows, texts=2)


def energy_table(report: LoadReport) -> str:
    """Return the energy balance."""
    energies = [(str(name), float(value or 0.0)) for name, value in report.tables["energy"].rows]
    kept = [pair for k, pair in enumerate(energies) if k < ALWAYS or pair[1] != 0.0]
    rows = [[escape(name), _value(value, "J")] for name, value in kept]
    return table(["energy", "value"], rows)


def candidate_table(report: LoadReport, drive: str) -> str:
    """Return the best candidates of the catalogue for a drive."""
    ranked = report.ranking(drive)
    if not ranked:
        return '<p class="small">The catalogue has no screw for this translation.</p>'
    unit = "kg m<sup>2</sup>" if report.drive(drive).rotates else "kg"
    load = report.drive(drive).unit
    rows = [
        [
            f"{_name(c.name)} {_verdict(c)}",
            _margin(c.binding),
            _least(c, "peak"),
            _least(c, "continuous"),
            _least(c, "speed"),
            f"{figure(c.reflected, 3)} {unit}<br>{_value(c.acceleration, load)}",
        ]
        for c in ranked[:RANKED]
    ]
    fit = sum(c.fits for c in ranked)
    source = (
        f" Source of its figures: {report.catalogue.source}." if report.catalogue and report.catalogue.source else ""
    )
    note = (
        f"{fit} of {len(ranked)} pairs of the catalogue fit with a margin of at least {report.safety:g}. A margin is "
        f"what the part allows by what the run needs, with its rotor and losses.{source}"
    )
    heads = [
        "motor and gearbox",
        "binding limit",
        "peak margin",
        "continuous margin",
        "speed margin",
        "reflected inertia, its load",
    ]
    return (
        '<figure class="ranking"><figcaption>Motors and gearboxes, the first choice on top</figcaption>'
        f'{table(heads, rows)}<p class="small">{escape(note)}</p></figure>'
    )


def instant_list(report: LoadReport) -> str:
    """Return buttons that show the replay at the instants of the largest loads."""
    listed: list[tuple[str, str, float]] = []
    strongest = sorted(report.driven, key=lambda d: -max(d.peak_power.value, d.peak_braking.value))[:3]
    for d in strongest:
        listed.append((f"peak {d.quantity} of {d.name}", f"{figure(d.peak.value, 3)} {d.unit}", d.peak.t))
    for b in sorted(report.bearings, key=lambda b: -b.peaks["force"].value)[:3]:
        peak = b.peaks["force"]
        if peak.value > 0.0:
            listed.append((f"largest force at {b.name}", f"{figure(peak.value, 3)} N", peak.t))
    for d in strongest if report.catalogue is not None else ():
        for best in report.ranking(d.name)[:1]:
            bound = best.binding
            if bound.t is not None:
                listed.append((f"limit of {best.name}", f"{bound.limit}, margin {figure(bound.value, 3)}", bound.t))
    return "".join(
        f'<button type="button" class="instant" data-t="{t!r}">{escape(what)}<b>{escape(value)}</b>'
        f"<span>{t:.4g} s</span></button>"
        for what, value, t in listed
    )


def glossary(report: LoadReport) -> str:
    """Return the words of the report with their meanings."""
    meanings = {
        "Peak": "The largest magnitude at any sample of the run, with its sign, and when it occurs.",
        "Continuous (RMS)": "The root of the mean square over the run: a motor heats as if it made this load all the "
        "time, if the run repeats and is short beside the motor's thermal time.",
        "By heating": "The steady load that heats the motor as much as the hottest instant of the run, repeated "
        f"without end, with a thermal time constant of {report.thermal_time or 0:g} s.",
        "Power": "Force times speed, or torque times speed. Positive power is delivered by the drive; negative power "
        "comes back to it (braking, regeneration).",
        "Duty": f"The share of the time in which the load exceeds {100 * LOADED:g} % of its peak.",
        "Radial, axial": "The bearing's force perpendicular to the joint's axis, and along it.",
        "Bending moment": "The moment perpendicular to the joint's axis, which the bearing must carry.",
        "Binding limit": "The limit with the smallest margin: peak, continuous or speed, of motor or gearbox.",
        "Margin": "What a part allows divided by what the run needs of it: 1 is just enough, 2 is twice enough.",
        "Reflected inertia": "Inertia of rotor and gearbox as felt at the joint: multiplied by the ratio squared. The "
        "load below it is what its largest acceleration takes.",
    }
    if report.thermal_time is None:
        del meanings["By heating"]
    if report.catalogue is None:
        for word in ("Binding limit", "Margin", "Reflected inertia"):
            del meanings[word]
    used = dict.fromkeys(name for d in report.driven for name in report.shares(d.name))
    meanings |= {f"Cause: {name}": f"{CAUSES[name][0].upper()}{CAUSES[name][1:]}." for name in used}
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in meanings.items()) + "</dl>"


def _verdict(candidate: Candidate) -> str:
    return '<span class="fits">fits</span>' if candidate.fits else '<span class="weak">too weak</span>'


def _least(candidate: Candidate, word: str) -> str:
    """Return the smaller margin of motor and gearbox for one sort of limit."""
    own = [m.value for m in candidate.margins if m.limit.endswith(word)]
    return escape(figure(min(own), 3))


def _margin(margin: Margin) -> str:
    when = f" {_instant(margin.t)}" if margin.t is not None else ""
    return f"{escape(margin.limit)}{when}"


def _peak(found: Extreme, unit: str, mark: str = "") -> str:
    value = _value(found.value, unit) + (f"<sup>{mark}</sup>" if mark else "")
    return f"{value} {_instant(found.t)}" if found.value else value


def _value(x: float, unit: str) -> str:
    return f'<span class="number">{figure(x, 4 if abs(x) >= 1e3 else 3)} {escape(unit)}</span>'


def _rpm(x: float, unit: str) -> str:
    return f'<span class="rpm">{figure(x / RPM, 3)} rpm</span>' if unit == "rad/s" else ""


def _instant(t: float) -> str:
    return f'<button type="button" class="t" data-t="{t!r}">{t:.4g} s</button>'


def _name(text: str) -> str:
    """Return a name that may be broken after its underscores and points."""
    return f"<b>{escape(text).replace('_', '_<wbr>').replace('.', '.<wbr>')}</b>"
