"""Charts of a load report: those of a drive, the torque-speed plane, and bearing loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..algebra.arrays import Numbers
from ..reporting.bearings import BearingLoad
from ..reporting.candidates import Candidate, motor_torque
from ..reporting.drives import DriveLoad
from ..reporting.elements import ElementLoad
from ..reporting.measures import rms
from ..reporting.report import LoadReport
from ..reporting.tables import figure
from .svg_charts import Curve, Mark, chart

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
        title=f"{word} over time", ylabel=f"{drive.quantity} [{drive.unit}]",
        marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} {drive.unit}")],
    )  # fmt: skip
    shares = report.shares(drive.name)
    looks = [f"c{k % 8} {('', 'dashed', 'dotted')[k % 3]}" for k in range(len(shares))]
    causes = chart(
        [Curve(t, x, name, look) for (name, x), look in zip(shares.items(), looks, strict=True)],
        title=f"What causes the {drive.quantity}", ylabel=f"{drive.quantity} [{drive.unit}]",
    )  # fmt: skip
    speed = chart(
        [Curve(t, drive.speed)], title="Speed over time", ylabel=f"speed [{drive.speed_unit}]",
        marks=[Mark(fast.t, fast.value, f"{figure(fast.value, 3)} {drive.speed_unit}")],
    )  # fmt: skip
    power = chart(
        [Curve(t, drive.power)], title="Power over time: delivered above zero, braking below", ylabel="power [W]",
        marks=_power_marks(drive), filled=True,
    )  # fmt: skip
    return load + causes + speed + power + plane(report, drive) + _reading(report, drive)


def _reading(report: LoadReport, drive: DriveLoad) -> str:
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
        curves, title=f"{drive.quantity.capitalize()}-speed plane, at the {axis}",
        xlabel=f"speed, without sign [{drive.speed_unit}]", ylabel=f"{drive.quantity}, without sign [{drive.unit}]",
        marks=marks, xspan=(0.0, 1.25 * fastest), yspan=(0.0, 1.12 * limit), over_time=False, height=230,
    )  # fmt: skip


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
        out.append(_carried(bearing, forces, "force", "N", ("c0", "c1 dashed"), least["force"]))
        out.append(_carried(bearing, moments, "moment", "N m", ("c2", "c3 dashed"), least["moment"]))
    return "".join(out)


def _carried(
    bearing: BearingLoad, parts: tuple[str, ...], word: str, unit: str, looks: tuple[str, ...], least: float
) -> str:
    """Return a chart of some parts of a bearing's load without those of the drive; "" if none exceeds the least."""
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
        title=f"{bearing.name}: {single} in the bearing", ylabel=f"{single} [{unit}]",
        marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} {unit}")], height=160,
    )  # fmt: skip


def element_charts(element: ElementLoad) -> str:
    """Return force and length of a spring or linear actuator over time."""
    t, peak = element.t, element.peak
    force = chart(
        [Curve(t, element.force, look="c2")], title=f"{element.name}: force, positive if it pushes", ylabel="force [N]",
        marks=[Mark(peak.t, peak.value, f"{figure(peak.value, 3)} N")], height=160,
    )  # fmt: skip
    low, high = element.shortest.value, element.longest.value
    room = 0.08 * ((high - low) or abs(high) or 1.0)
    length = chart(
        [Curve(t, element.length, look="c3")], title=f"{element.name}: length", ylabel="length [m]", height=160,
        yspan=(low - room, high + room),
    )  # fmt: skip
    return force + length
