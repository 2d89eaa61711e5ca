"""A load report as one web page: summary, tables, charts, and a replay with force arrows, without network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np

from .._support.tables import figure
from ..algebra.scalars import Numbers
from .candidates import Candidate, motor_torque
from .load_report_tables import (
    bearing_table,
    candidate_table,
    drive_table,
    element_table,
    energy_table,
    glossary,
    instant_list,
    plain_table,
)
from .loads import BearingLoad, DriveLoad, ElementLoad
from .measures import rms
from .motors import MotorLoad
from .page_parts import Curve, Mark, chart, motion_data, motion_section, report_html, section, write_page
from .report import LoadReport

# --- Charts of a load report: loads of a drive, the torque-speed plane, and bearing loads ---

SHOWN = 2
"""The most candidates whose curves are drawn in a torque-speed plane."""
NEGLIGIBLE = 1e-6
"""The part of the largest load of all bearings below which a load has no chart."""
ROOM = 3.0
"""The largest torque of a plane relative to what is needed: stronger candidates are cut off at the top."""


def drive_charts(report: LoadReport, drive: DriveLoad) -> str:
    """Return the charts of a drive: its load, causes, speed and power over time, and the torque-speed plane."""
    t = drive.t
    word = drive.quantity.capitalize()
    peak, fast = drive.peak, drive.peak_speed
    steady = np.full(2, np.copysign(drive.continuous, peak.value))
    ends = t[[0, -1]]
    whole = Curve(t, drive.effort, f"{drive.quantity} of the drive", "c0")
    load = chart(
        [whole, Curve(ends, steady, "continuous (RMS)", "c1 dashed")],
        title=f"{word} over time",
        ylabel=f"{drive.quantity} [{drive.unit}]",
        marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} {drive.unit}")],
    )
    shares = report.shares(drive.name)
    looks = [f"c{k % 8} {('', 'dashed', 'dotted')[k % 3]}" for k in range(len(shares))]
    causes = chart(
        [Curve(t, x, name, look) for (name, x), look in zip(shares.items(), looks, strict=True)],
        title=f"What causes the {drive.quantity}",
        ylabel=f"{drive.quantity} [{drive.unit}]",
    )
    speed = chart(
        [Curve(t, drive.speed)],
        title="Speed over time",
        ylabel=f"speed [{drive.speed_unit}]",
        marks=[Mark(fast.t, fast.value, f"{figure(fast.value, 3)} {drive.speed_unit}")],
    )
    power = chart(
        [Curve(t, drive.power)],
        title="Power over time: delivered above zero, braking below",
        ylabel="power [W]",
        marks=_power_marks(drive),
        filled=True,
    )
    return load + causes + speed + power + plane(report, drive) + _describe_drive(report, drive)


def _describe_drive(report: LoadReport, drive: DriveLoad) -> str:
    """Return figures of a drive that no chart shows and, for the first drive, how to read the torque-speed plane."""
    share = f"{100 * drive.motoring:.0f} % of the time, takes power back {100 * drive.braking:.0f} %"
    facts = [f"The drive delivers power {share}, and is loaded {100 * drive.duty:.0f} % of the time (duty)."]
    if drive is not report.driven[0]:
        return f'<div class="reading"><p>{facts[0]}</p></div>'
    facts.append(
        f"The plane shows which {drive.quantity} is needed at which speed. Circles mark the largest {drive.quantity}, "
        f"and the RMS of {drive.quantity} and speed."
    )
    if report.ranking(drive.name):
        facts.append(
            "For the first choice of the catalogue the dotted path counts. It includes the acceleration of its rotor "
            "and the losses of its gearbox, which help while the drive brakes. A motor reaches all points below its "
            "solid line for a short time. It does not overheat if the RMS point of the dotted path is below its "
            "dashed line."
        )
    if report.causes.traced:
        facts.append("Forces that loops transmit are traced back to their causes in the whole mechanism.")
    return '<div class="reading">' + "".join(f"<p>{fact}</p>" for fact in facts) + "</div>"


def _power_marks(drive: DriveLoad) -> list[Mark]:
    high, low = drive.peak_power, drive.peak_braking
    marks = [Mark(high.t, high.value, f"{figure(high.value, 3)} W")] if high.value > 0 else []
    return marks + ([Mark(low.t, -low.value, f"{figure(-low.value, 3)} W")] if low.value > 0 else [])


def plane(report: LoadReport, drive: DriveLoad) -> str:
    """Return the torque-speed plane of a drive, with the curves of the best candidates of the catalogue."""
    speed, load, axis = np.abs(drive.speed), np.abs(drive.effort), "joint" if drive.rotates else "slide"
    ranked = report.ranking(drive.name)
    chosen = [c for c in ranked if c.fits][:SHOWN] or ranked[:SHOWN]
    fastest = float(speed.max()) or 1.0
    needed = float(load.max()) or 1.0
    curves, top = [Curve(speed, load, f"needed at the {axis}", "c0")], needed
    across = np.linspace(0.0, 1.25 * fastest, 60)
    mean = drive.continuous
    if chosen:
        whole = _with_rotor(report, drive, chosen[0])
        mean = rms(drive.t, whole)
        curves.append(Curve(speed, whole, f"with rotor and losses of {chosen[0].name}", "c0 dotted"))
        top = max(top, float(whole.max()))
    limits = [
        Curve(across, candidate.curve(across, continuous=continuous), f"{candidate.name}, {word}", f"c{k + 1}{dash}")
        for k, candidate in enumerate(chosen)
        for continuous, dash, word in ((False, "", "peak"), (True, " dashed", "continuous"))
    ]
    limit = max([top, *(min(float(c.y.max()), ROOM * top) for c in limits)])
    curves += [c if c.y.min() < limit else replace(c, label=f"{c.label} (above the chart)") for c in limits]
    k = int(np.argmax(load))
    marks = [Mark(float(speed[k]), needed, "peak"), Mark(drive.rms_speed, mean, "RMS")] if drive.driven else []
    return chart(
        curves,
        title=f"{drive.quantity.capitalize()}-speed plane, at the {axis}",
        xlabel=f"speed, without sign [{drive.speed_unit}]",
        ylabel=f"{drive.quantity}, without sign [{drive.unit}]",
        marks=marks,
        xspan=(0.0, 1.25 * fastest),
        yspan=(0.0, 1.12 * limit),
        over_time=False,
        height=230,
    )


def _with_rotor(report: LoadReport, drive: DriveLoad, candidate: Candidate) -> Numbers:
    """Return the torque that a candidate must make, at the joint: with its rotor and the losses of its gearbox."""
    gear = candidate.gear
    inertia = candidate.motor.inertia + (0.0 if gear is None else gear.inertia)
    share = 1.0 if gear is None else gear.efficiency
    torque = motor_torque(drive, report.armature(drive.name), inertia, gear)
    return np.abs(torque) * candidate.ratio * share


def bearing_charts(bearings: Sequence[BearingLoad]) -> str:
    """Return the forces and moments that bearings carry over time; those that carry next to nothing have no chart."""
    out = []
    least = {
        sort: NEGLIGIBLE * max((b.peaks[sort].value for b in bearings), default=0.0) for sort in ("force", "moment")
    }
    for bearing in bearings:
        forces, moments = (
            (("radial", "axial"), ("bending", "torsion")) if bearing.has_axis else (("force",), ("moment",))
        )
        out.append(_carried_parts_chart(bearing, forces, "force", "N", ("c0", "c1 dashed"), least["force"]))
        out.append(_carried_parts_chart(bearing, moments, "moment", "N m", ("c2", "c3 dashed"), least["moment"]))
    return "".join(out)


def _carried_parts_chart(
    bearing: BearingLoad, parts: tuple[str, ...], word: str, unit: str, looks: tuple[str, ...], least: float
) -> str:
    """Return a chart of some parts of a bearing's load without the drive's parts; "" if none exceeds the least."""
    shown = [p for p in parts if p not in bearing.drives and bearing.peaks[p].value > least]
    if not shown:
        return ""
    peak = max((bearing.peaks[p] for p in shown), key=lambda x: x.value)
    names = {
        "radial": "radial force",
        "axial": "axial force",
        "bending": "bending moment",
        "torsion": "moment about axis",
    }
    single = names.get(shown[0], word) if len(shown) == 1 else word
    labels = [names[p] if len(shown) > 1 else "" for p in shown]
    return chart(
        [Curve(bearing.t, bearing.values[p], *pair) for p, *pair in zip(shown, labels, looks, strict=False)],
        title=f"{bearing.name}: {single} in the bearing",
        ylabel=f"{single} [{unit}]",
        marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} {unit}")],
        height=160,
    )


def element_charts(element: ElementLoad) -> str:
    """Return force and length of a spring or linear actuator over time."""
    t, peak = element.t, element.peak
    force = chart(
        [Curve(t, element.force, look="c2")],
        title=f"{element.name}: force, positive if it pushes",
        ylabel="force [N]",
        marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} N")],
        height=160,
    )
    low, high = element.shortest.value, element.longest.value
    room = 0.08 * ((high - low) or abs(high) or 1.0)
    length = chart(
        [Curve(t, element.length, look="c3")],
        title=f"{element.name}: length",
        ylabel="length [m]",
        height=160,
        yspan=(low - room, high + room),
    )
    return force + length


def motor_charts(m: MotorLoad) -> str:
    """Return the charts of an electric motor: current, voltage, and temperature of its winding."""
    peaks = ((m.current, "current [A]", m.peak_current, "A"), (m.voltage, "voltage [V]", m.peak_voltage, "V"))
    out = [
        chart(
            [Curve(m.t, values, look="c2")],
            title=f"{m.name}: {label.partition(' ')[0]}",
            ylabel=label,
            marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} {unit}")],
            height=160,
        )
        for values, label, peak, unit in peaks
    ]
    if m.temperature is not None:
        title = f"{m.name}: winding, from cold"
        out.append(chart([Curve(m.t, m.temperature, look="c1")], title=title, ylabel="temperature [C]", height=160))
    return "".join(out)


MOST_CARDS = 24
"""The most drives, bearings or elements that have charts; the tables have all."""


def save_load_report(report: LoadReport, path: str | Path = "report.html", *, title: str | None = None) -> Path:
    """Write a load report as one page that any browser opens offline, and return the file."""
    return write_page(path, report_page(report, title or f"Load report: {report.name}"))


def report_page(report: LoadReport, title: str) -> str:
    """Return the page as text."""
    lead = "Arrows show forces, double arrows torques. Choose an instant here, in a chart or in a table."
    return report_html(
        motion_data(report.run, _first_instant(report), share=report.share),
        title=title,
        subtitle=_subtitle(report),
        summary=_summary(report),
        motion=motion_section("The motion and its forces", lead, instant_list(report)),
        body="".join(_sections(report)),
    )


def load_report_html(report: LoadReport) -> str:
    """Return the summary and the tables of drives and bearings as HTML for notebooks."""
    words = "".join(f"<li>{escape(line)}</li>" for line in report.words)
    shown = [plain_table(report.tables[name]) for name in ("drives", "bearings") if name in report.tables]
    return f"<p><b>Load report: {escape(report.name)}</b></p><ul>{words}</ul>{''.join(shown)}"


def _first_instant(report: LoadReport) -> float:
    """Return the instant that the page shows first: the peak of the strongest drive, or of a bearing."""
    if report.driven:
        return max(report.driven, key=lambda d: max(d.peak_power.value, d.peak_braking.value)).peak.t
    if report.bearings:
        return max((b.peaks["force"] for b in report.bearings), key=lambda x: x.value).t
    return float(report.t[0])


def _subtitle(report: LoadReport) -> str:
    run = report.run
    span = f"{run.t[0]:.4g} to {run.t[-1]:.4g} s"
    return f"{run.method}, {span}, {len(run):,} samples, {run.status}"


def _summary(report: LoadReport) -> str:
    """Return the summary as a list, with the names of drives at the beginning of a line in bold."""
    names = tuple(d.name for d in report.driven)
    lines = []
    for line in (*report.words, *report.notes):
        name = next((x for x in names if line.startswith(f"{x} needs ")), "")
        lines.append(f"<li><b>{escape(name)}</b>{escape(line[len(name) :])}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _sections(report: LoadReport) -> list[str]:
    """Return the sections below the replay."""
    out = []
    if report.drives:
        out.append(section("Drives", "What each motor or actuator must do.", drive_table(report)))
        out += [_drive_card(report, k) for k in range(min(len(report.driven), MOST_CARDS))]
        out += _left_out("drives", len(report.driven))
    if report.motors:
        lead = "Current, voltage and heat of the winding, from the torques and speeds of the run."
        content = plain_table(report.tables["motors"])
        charts = "".join(motor_charts(m) for m in report.motors[:MOST_CARDS])
        out.append(section("Electric motors", lead, f'{content}<div class="charts">{charts}</div>'))
        out += _left_out("motors", len(report.motors))
    if report.elastic:
        lead = "Torque of the spring and damper between each motor and its joint, and how far it is twisted."
        out.append(section("Elastic joints", lead, plain_table(report.tables["elastic"])))
    if report.deflections:
        lead = (
            "How far each node moves by the deformation of its own body, from its frame at the joint, and by that of "
            "all bodies. The mode that comes nearest to the largest valid deflection is named."
        )
        out.append(section("Deflections of flexible bodies", lead, plain_table(report.tables["deflections"])))
    if report.bearings:
        order = sorted(report.bearings, key=lambda b: -b.peaks["force"].value)
        charts = bearing_charts(order[:MOST_CARDS])
        lead = (
            "Forces that the parent exerts on the child at each joint (body a on body b at a loop), at the joint's "
            "origin, by the joint's axis."
        )
        out.append(section("Bearings", lead, bearing_table(report) + f'<div class="charts">{charts}</div>'))
        out += _left_out("bearings", len(report.bearings))
    if report.elements:
        charts = "".join(element_charts(e) for e in report.elements[:MOST_CARDS])
        content = element_table(report) + f'<div class="charts">{charts}</div>'
        out.append(section("Springs, dampers and linear actuators", "Forces between two points.", content))
        out += _left_out("elements", len(report.elements))
    out.append(section("Energy", "Where the work of the drives goes over the whole run.", energy_table(report)))
    out.append(section("What the words mean", "", glossary(report)))
    return out


def _drive_card(report: LoadReport, k: int) -> str:
    drive = report.driven[k]
    ranked = candidate_table(report, drive.name) if report.catalogue is not None else ""
    charts = f'<div class="charts">{drive_charts(report, drive)}{ranked}</div>'
    return f'<section class="card"><h3>Drive {escape(drive.name)}</h3>{charts}</section>'


def _left_out(what: str, number: int) -> list[str]:
    if number <= MOST_CARDS:
        return []
    return [f"<p>Charts of {number - MOST_CARDS} more {what} are left out; choose joints to see them.</p>"]
