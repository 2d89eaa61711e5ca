"""Trapezoidal velocity profiles: constant acceleration, constant velocity, constant deceleration."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...errors import InputError, argument
from ...numbers import number, numbers
from ..arguments import together
from ..smooth import clip, where
from .motions import inside
from .sampling import Lists, as_time

NO_WAY = 1e-150
"""The displacement [rad, m] below which a coordinate does not move: divisions by smaller ones could overflow."""


@dataclass(frozen=True)
class Profile:
    """A motion from 0 to 1 with a given top speed and acceleration; a short motion does not reach the top speed."""

    speed: float
    acceleration: float

    @property
    def ramp(self) -> float:
        """The time of acceleration [s]."""
        return min(self.speed / self.acceleration, math.sqrt(1.0 / self.acceleration))

    @property
    def duration(self) -> float:
        """The time of the whole motion [s]."""
        return 1.0 / (self.acceleration * self.ramp) + self.ramp

    def __call__(self, t: Any) -> tuple[Any, Any, Any]:
        """Return displacement, speed and acceleration; at rest before 0 and after the duration."""
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
    """A motion from rest at q0 to rest at q1 with velocities up to vmax and accelerations up to amax.

    Both limits are one number, or one per coordinate. If `synchronised` (the default), all coordinates follow one
    profile along the straight line from q0 to q1, as fast as all limits allow, and arrive together. Otherwise each
    coordinate moves as fast as its own limits allow. A displacement too short to reach vmax has a triangular velocity
    profile. `duration` [s] is the time of arrival after `start`.
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
        given = {n: numbers(getattr(self, n), argument(n, "Trapezoid", "")) for n in names}
        for name in ("vmax", "amax"):
            if min(given[name]) <= 0.0:
                raise InputError(f"{name} of Trapezoid is {min(given[name]):g}; give more than zero", path=(name,))
        for name, value in together(given, "Trapezoid").items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "start", number(self.start, argument("start", "Trapezoid")))

    @property
    def profiles(self) -> list[Profile | None]:
        """The profile of each coordinate; None for one that does not move."""
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
        """The time until the last coordinate arrives [s]."""
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
