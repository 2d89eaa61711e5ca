"""Trapezoidal speeds: constant acceleration, constant speed, constant deceleration."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...errors import InputError
from ...numbers import number, numbers
from ..arguments import together
from ..smooth import clip, where
from .motions import inside
from .sampling import Lists, as_time

NO_WAY = 1e-150
"""A coordinate that is to go less than this stays: its share of the way could not be computed."""


@dataclass(frozen=True)
class Profile:
    """A way from 0 to 1 with the top speed and the acceleration given; without a top speed where the way is short."""

    speed: float
    acceleration: float

    @property
    def ramp(self) -> float:
        """The time of speeding up."""
        return min(self.speed / self.acceleration, math.sqrt(1.0 / self.acceleration))

    @property
    def duration(self) -> float:
        """The time of the whole way."""
        return 1.0 / (self.acceleration * self.ramp) + self.ramp

    def __call__(self, t: Any) -> tuple[Any, Any, Any]:
        """Return way, speed and acceleration; at rest before 0 and after the duration."""
        a, ramp, T = self.acceleration, self.ramp, self.duration
        u = clip(t, 0.0, T)
        left = T - u
        early, late = u < ramp, T - ramp < u
        way = where(early, u * u * (a / 2), where(late, 1.0 - left * left * (a / 2), (u - ramp / 2) * (a * ramp)))
        speed = where(early, u * a, where(late, left * a, a * ramp))
        rate = where(early, a, where(late, -a, 0.0))
        return way, speed, inside(t, T, rate)


@dataclass(frozen=True)
class Trapezoid:
    """From rest at q0 to rest at q1 with speeds up to vmax and accelerations up to amax, one or one a coordinate.

    Synchronised (the default), all coordinates follow one profile along the straight line from q0 to q1, as fast as
    every limit allows, and arrive together; else each goes as fast as it can. A way too short to reach vmax is a
    triangle of speed. `duration` [s] is the time of arrival after `start`.
    """

    q0: Any
    q1: Any
    vmax: Any
    amax: Any
    _: KW_ONLY
    synchronised: bool = True
    start: float = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        names = ("q0", "q1", "vmax", "amax")
        given = {n: numbers(getattr(self, n), f"{n} of Trapezoid") for n in names}
        for name in ("vmax", "amax"):
            if min(given[name]) <= 0.0:
                raise InputError(f"{name} of Trapezoid is {min(given[name]):g}; give more than zero")
        for name, value in together(given, "Trapezoid").items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "start", number(self.start, "the start of Trapezoid"))

    @property
    def profiles(self) -> list[Profile | None]:
        """The profile of each coordinate; None for one that stays."""
        ways = [abs(b - a) for a, b in zip(self.q0, self.q1, strict=True)]
        own = [
            Profile(v / d, a / d) if d > NO_WAY else None for d, v, a in zip(ways, self.vmax, self.amax, strict=True)
        ]
        moving = [p for p in own if p]
        if not self.synchronised or not moving:
            return own
        common = Profile(min(p.speed for p in moving), min(p.acceleration for p in moving))
        return [common if p else None for p in own]

    @property
    def duration(self) -> float:
        """The time until the last coordinate has arrived."""
        return max((p.duration for p in self.profiles if p), default=0.0)

    def __call__(self, t: Any) -> Lists:
        """Return q, qd, qdd."""
        t = as_time(t) - self.start
        profiles = self.profiles
        known = {p: p(t) for p in dict.fromkeys(profiles) if p}
        q, qd, qdd = [], [], []
        for a, b, profile in zip(self.q0, self.q1, profiles, strict=True):
            way, speed, rate = known[profile] if profile else (0.0, 0.0, 0.0)
            q.append(way * (b - a) + a)
            qd.append(speed * (b - a))
            qdd.append(rate * (b - a))
        return q, qd, qdd
