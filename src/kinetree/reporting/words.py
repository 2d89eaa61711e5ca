"""The summary of a load report in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .catalogue import RPM
from .drives import DriveLoad
from .tables import cleaned, figure

if TYPE_CHECKING:
    from .report import LoadReport

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
    return out + _bearings(report)


def moment(t: float) -> str:
    """Return an instant as text: "1.84 s"."""
    return f"{t:.4g} s"


def speed(value: float, unit: str) -> str:
    """Return a speed as text; rotations also in revolutions per minute."""
    text = f"{figure(value, 3)} {unit}"
    return f"{text} ({figure(value / RPM, 3)} rpm)" if unit == "rad/s" else text


def _state(report: LoadReport) -> list[str]:
    if len(report.t) == 1:
        return [
            f"The run has a single instant, t = {moment(report.t[0])}: RMS values equal the peaks, energies are zero."
        ]
    if report.status != "finished":
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
    text += f". It {verb} at up to {speed(abs(d.peak_speed.value), d.speed_unit)}"
    if d.peak_power.value > 0.0:
        text += f" and delivers up to {figure(d.peak_power.value, 3)} W"
    if d.peak_braking.value > 0.0:
        link = "; " if d.peak_power.value > 0.0 else " and "
        text += f"{link}braking gives back up to {figure(d.peak_braking.value, 3)} W"
    energies = (cleaned(d.delivered, d.regenerated), cleaned(d.regenerated, d.delivered))
    parts = [f"{verb} {figure(x, 3)} J" for verb, x in zip(("delivers", "takes back"), energies, strict=True) if x]
    return f"{text}. In all it {' and '.join(parts)}." if parts else f"{text}."


def _bearings(report: LoadReport) -> list[str]:
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
