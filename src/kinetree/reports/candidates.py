"""Motors and gearboxes of a catalogue against the load of a drive: margins, the binding limit and its instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import InputError
from .catalogue import Catalogue, Part
from .loads import DriveLoad
from .measures import heating_load, rms
from .motors import winding_temperature

MOST = 100_000
"""The most pairs of motors and gearboxes that are tried for one drive."""


@dataclass(frozen=True)
class Margin:
    """A limit of a candidate: allowed / needed, below 1 if it is exceeded; `t` [s] is None for a whole run."""

    limit: str
    value: float
    allowed: float
    needed: float
    unit: str
    t: float | None


@dataclass(frozen=True)
class Candidate:
    """A motor, alone or with a gearbox or screw, for a drive.

    `margins` are ordered by size: the first one binds. `reflected` is the inertia of motor and gearbox at the joint
    [kg m^2, kg], and `acceleration` the largest force or torque that its acceleration takes there [N m, N].
    """

    drive: str
    motor: Part
    gear: Part | None
    margins: tuple[Margin, ...]
    reflected: float
    acceleration: float
    fits: bool

    @property
    def name(self) -> str:
        """The names of motor and gearbox."""
        return self.motor.name if self.gear is None else f"{self.motor.name} + {self.gear.name}"

    @property
    def binding(self) -> Margin:
        """The smallest margin."""
        return self.margins[0]

    @property
    def ratio(self) -> float:
        """The ratio of the motor's speed to the joint's [1, rad/m]."""
        return 1.0 if self.gear is None else self.gear.ratio

    @property
    def mass(self) -> float | None:
        """The mass of motor and gearbox [kg]; None if one of them is unknown."""
        masses = [part.mass for part in (self.motor, self.gear) if part is not None]
        return None if None in masses else float(sum(x for x in masses if x is not None))

    def margin(self, limit: str) -> Margin:
        """Return a margin by the name of its limit."""
        return next(m for m in self.margins if m.limit == limit)

    def curve(self, speed: Numbers, *, continuous: bool = False) -> Numbers:
        """Return the largest force or torque at the joint that the motor allows at speeds of the joint [N m, N].

        The gearbox loses power as with a motor that drives, and the acceleration of the rotor is left out.
        """
        share = 1.0 if self.gear is None else self.gear.efficiency
        at_motor = available(self.motor, np.abs(speed) * self.ratio)
        if continuous:
            at_motor = np.minimum(at_motor, self.motor.continuous)
        return at_motor * self.ratio * share


def available(motor: Part, speed: Numbers) -> Numbers:
    """Return the peak torque of a motor at speeds of its shaft: full up to the base speed, then falling to zero."""
    span = motor.max_speed - motor.base_speed
    falling = (motor.max_speed - speed) / span if span > 0 else np.where(speed <= motor.max_speed, 1.0, 0.0)
    return motor.peak * np.clip(falling, 0.0, 1.0)


def motor_torque(drive: DriveLoad, armature: float, inertia: float, gear: Part | None) -> Numbers:
    """Return the torque of a motor that drives a joint, with the acceleration of its rotor and the losses of the gear.

    T = r J a + tau / (r eta) while the joint takes power, and r J a + eta tau / r while it gives power back. tau is
    the torque of the joint without the acceleration of a rotor in the model (its armature), a the acceleration.
    """
    ratio, eta = (1.0, 1.0) if gear is None else (gear.ratio, gear.efficiency)
    output = drive.effort - armature * drive.acceleration
    through = np.where(output * drive.speed >= 0.0, output / eta, output * eta)
    return ratio * inertia * drive.acceleration + through / ratio


def candidates(
    drive: DriveLoad,
    catalogue: Catalogue,
    *,
    armature: float = 0.0,
    safety: float = 1.0,
    thermal_time: float | None = None,
) -> tuple[Candidate, ...]:
    """Return all motors with all gearboxes (screws for translations) for a drive, ranked.

    Those whose margins are all at least `safety` come first: the lightest first if all masses are known, otherwise the
    least oversized. The others follow by their smallest margin.
    """
    motors = catalogue.of("motor")
    gears: tuple[Part | None, ...] = (None, *catalogue.of("gearbox")) if drive.rotates else catalogue.of("screw")
    if len(motors) * len(gears) > MOST:
        raise InputError(f"the catalogue has {len(motors) * len(gears):,} pairs of parts; give at most {MOST:,}")
    found = [_candidate(drive, m, g, armature, safety, thermal_time) for m in motors for g in gears]
    weighed = all(c.mass is not None for c in found)

    def order(c: Candidate) -> tuple[bool, float, float]:
        if not c.fits:
            return True, -c.binding.value, 0.0
        return False, (c.mass or 0.0) if weighed else c.binding.value, c.binding.value

    return tuple(sorted(found, key=order))


def _candidate(
    drive: DriveLoad, motor: Part, gear: Part | None, armature: float, safety: float, thermal_time: float | None
) -> Candidate:
    inertia = motor.inertia + (0.0 if gear is None else gear.inertia)
    ratio = 1.0 if gear is None else gear.ratio
    torque, speed, t = motor_torque(drive, armature, inertia, gear), ratio * np.abs(drive.speed), drive.t

    def steady(values: Numbers) -> float:
        return rms(t, values) if thermal_time is None else heating_load(t, values, thermal_time)

    margins = [
        _tightest("motor peak", available(motor, speed), np.abs(torque), "N m", t, speed <= motor.max_speed),
        _margin("motor continuous", motor.continuous, steady(torque), "N m", None),
        _tightest("motor speed", np.full(len(t), motor.max_speed), speed, "rad/s", t),
    ]
    if (electric := motor.electric) is not None:
        hot = winding_temperature(electric, t, torque / electric.torque_constant)[1]
        room = electric.max_temperature - electric.ambient
        margins.append(_margin("motor temperature", room, hot - electric.ambient, "K", None))
    if gear is not None:
        output = np.abs(drive.effort - armature * drive.acceleration)
        margins += [
            _tightest(f"{gear.kind} peak", np.full(len(t), gear.peak), output, drive.unit, t),
            _margin(f"{gear.kind} continuous", gear.continuous, rms(t, output), drive.unit, None),
            _tightest(f"{gear.kind} speed", np.full(len(t), gear.max_speed), speed, "rad/s", t),
        ]
    ranked = tuple(sorted(margins, key=lambda m: m.value))
    reflected = ratio * ratio * inertia
    largest = reflected * float(np.abs(drive.acceleration).max(initial=0.0))
    return Candidate(drive.name, motor, gear, ranked, reflected, largest, ranked[0].value >= safety)


def _margin(limit: str, allowed: float, needed: float, unit: str, t: float | None) -> Margin:
    return Margin(limit, allowed / needed if needed > 0 else np.inf, float(allowed), float(needed), unit, t)


def _tightest(limit: str, allowed: Numbers, needed: Numbers, unit: str, t: Numbers, counted: Any = True) -> Margin:
    """Return the margin at the instant at which it is smallest, of those that count.

    A motor beyond its largest speed has no torque. That instant counts for the limit of its speed alone.
    """
    needed = np.where(counted, needed, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(needed > 0, allowed / needed, np.inf)
    k = int(np.argmin(shares)) if np.isfinite(shares).any() else int(np.argmax(needed))
    return _margin(limit, allowed[k], needed[k], unit, float(t[k]))
