"""Loads of the drives: force or torque, speed, power and energy of every degree of freedom of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..algebra.arrays import Numbers
from ..model.axes import axis_labels, axis_names
from ..results.columns import EFFORTS
from ..results.trajectory import Trajectory
from .measures import Extreme, extreme, heating_load, highest, mean, rms, share_above, work

LOADED = 0.05
"""The part of its peak above which a force or torque counts as a load in the duty cycle."""
IDLE = 1e-9
"""The part of the largest power below which a drive neither delivers nor brakes: well above rounding."""
UNDRIVEN = 1e-12
"""The part of the largest force or torque below which a joint has no drive: rounding of inverse dynamics."""


@dataclass(frozen=True)
class DriveLoad:
    """The load of the drive of one degree of freedom over a run.

    `effort` is its force or torque [nt] in `unit`, N or N m, `speed` that of the joint in `speed_unit`. Power [W] is
    their product, positive if the drive delivers it. `continuous` is the RMS over the run, `thermal` the value that
    `heating_load` finds with a time constant, None without one. `delivered` and `regenerated` are energies [J], both
    positive. `duty` is the share of the time in which the effort exceeds LOADED of its peak; `motoring` and `braking`
    are the shares in which the power is positive and negative.
    """

    name: str
    joint: str
    unit: str
    speed_unit: str
    driven: bool
    peak: Extreme
    continuous: float
    thermal: float | None
    peak_speed: Extreme
    rms_speed: float
    peak_power: Extreme
    peak_braking: Extreme
    mean_power: float
    delivered: float
    regenerated: float
    duty: float
    motoring: float
    braking: float
    t: Numbers = field(repr=False)
    effort: Numbers = field(repr=False)
    speed: Numbers = field(repr=False)
    acceleration: Numbers = field(repr=False)
    power: Numbers = field(repr=False)

    @property
    def rotates(self) -> bool:
        """Whether the degree of freedom is a rotation."""
        return self.unit == "N m"

    @property
    def quantity(self) -> str:
        """The word for its load: "torque" or "force"."""
        return "torque" if self.rotates else "force"


def drive_efforts(run: Trajectory) -> Numbers:
    """Return the forces and torques of the drives [nt, nv]: the control or, if a run has none, all joint torques."""
    return run["tau"] if run.control is None else run.control


def driven_columns(efforts: Numbers) -> list[int]:
    """Return the degrees of freedom at which a drive acts at some instant."""
    largest = np.abs(efforts).max(axis=0)
    return [k for k, x in enumerate(largest) if x > UNDRIVEN * largest.max(initial=0.0)]


def drive_loads(run: Trajectory, thermal_time: float | None = None) -> tuple[DriveLoad, ...]:
    """Return the loads of all degrees of freedom of a single run, in the order of qd."""
    mechanism = run.system.mechanism
    efforts, qdd = drive_efforts(run), run["qdd"]
    with_drive = driven_columns(efforts)
    powers = efforts * run.qd
    busy = IDLE * float(np.abs(powers).max(initial=0.0))
    out = []
    for k, (label, axis) in enumerate(zip(axis_labels(mechanism, 1), axis_names(mechanism, 1), strict=True)):
        joint, _, unit = axis
        driven = k in with_drive
        effort = efforts[:, k] if driven else np.zeros(len(run))
        names = (label, joint, EFFORTS[unit], f"{unit}/s", driven)
        out.append(_load(names, run.t, effort, run.qd[:, k], qdd[:, k], busy, thermal_time))
    return tuple(out)


def _load(
    names: tuple[str, str, str, str, bool],
    t: Numbers,
    effort: Numbers,
    speed: Numbers,
    acceleration: Numbers,
    busy: float,
    thermal_time: float | None,
) -> DriveLoad:
    power = effort * speed
    delivered, regenerated = work(t, power)
    peak, lowest = extreme(t, effort), highest(t, -power)
    return DriveLoad(
        *names,
        peak=peak,
        continuous=rms(t, effort),
        thermal=None if thermal_time is None else heating_load(t, effort, thermal_time),
        peak_speed=extreme(t, speed),
        rms_speed=rms(t, speed),
        peak_power=_at_least_zero(highest(t, power)),
        peak_braking=_at_least_zero(lowest),
        mean_power=mean(t, power),
        delivered=delivered,
        regenerated=regenerated,
        duty=share_above(t, np.abs(effort), LOADED * abs(peak.value)),
        motoring=share_above(t, power, busy),
        braking=share_above(t, -power, busy),
        t=t,
        effort=effort,
        speed=speed,
        acceleration=acceleration,
        power=power,
    )


def _at_least_zero(found: Extreme) -> Extreme:
    """Return zero for the peak of a power that the drive never has."""
    return Extreme(max(0.0, found.value), found.t)
