"""Gaits as schedules: the cycle that every foot goes through, and by how much each foot is ahead in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import number, positive
from ...algebra.arrays import Numbers
from ...errors import InputError

# --- Paths of trunk and ankle for a step: the inverted pendulum of constant height, and a cosine arch ---

Path = tuple[Numbers, Numbers, Numbers]
"""Position, velocity and acceleration of one coordinate, each [nt]."""


def pendulum_path(t: Numbers, start: float, end: float, duration: float, *, height: float, gravity: float) -> Path:
    """Return x(t) with x'' = (g / h) x between two positions [m]: a trunk of constant height above a point foot at 0.

    Its weight and its inertia have no moment about the foot: the zero-moment point of this mass is 0.
    """
    w = np.sqrt(gravity / height)
    s = np.sinh(w * duration)
    a, b = start / s, end / s
    x = a * np.sinh(w * (duration - t)) + b * np.sinh(w * t)
    v = w * (b * np.cosh(w * t) - a * np.cosh(w * (duration - t)))
    return x, v, w * w * x


def stride_path(t: Numbers, start: float, end: float, duration: float) -> Path:
    """Return a motion from rest to rest by half a cosine: an ankle that swings forward."""
    w, middle, half = np.pi / duration, 0.5 * (start + end), 0.5 * (end - start)
    return middle - half * np.cos(w * t), half * w * np.sin(w * t), half * w * w * np.cos(w * t)


def lift_path(t: Numbers, height: float, duration: float) -> Path:
    """Return a rise from rest to a height [m] and back to rest by a whole cosine."""
    w, half = 2.0 * np.pi / duration, 0.5 * height
    return half * (1.0 - np.cos(w * t)), half * w * np.sin(w * t), half * w * w * np.cos(w * t)


@dataclass(frozen=True)
class Gait:
    """A gait of a trunk that moves ahead with constant `speed` [m/s], relative to which the feet go through cycles.

    A cycle of the `period` [s] begins with stance, for the share `duty` of it, in which the foot rests on the ground.
    It then swings ahead with a `lift` [m]. `phases` are the shares of a period by which each foot is ahead in its
    cycle, by the name of its frame.
    """

    period: float
    duty: float
    speed: float
    lift: float
    phases: Mapping[str, float]

    def __post_init__(self) -> None:
        """Check the numbers."""
        positive(self.period, "period")
        positive(self.lift, "lift")
        number(self.speed, "speed")
        if not 0.0 < number(self.duty, "duty") < 1.0:
            raise InputError(
                f"duty is {self.duty}; give the share of the period in which a foot is on the ground, in (0, 1)"
            )
        for foot, phase in self.phases.items():
            number(phase, f"phase of the foot {foot!r}")

    @property
    def stride(self) -> float:
        """The distance that the gait is designed to advance in a period [m]."""
        return self.speed * self.period

    def mirrored(self, pairs: Mapping[str, str]) -> Gait:
        """Return the gait in which each foot has the phase of its counterpart on the other side, such as {"a": "b"}."""
        other = {**pairs, **{b: a for a, b in pairs.items()}}
        for foot in other:
            self._check_foot(foot)
        phases = {foot: self.phases[other.get(foot, foot)] for foot in self.phases}
        return Gait(self.period, self.duty, self.speed, self.lift, phases)

    def supports(self, foot: str, t: ArrayLike) -> np.ndarray:
        """Return whether a foot is scheduled to be on the ground at times [...]."""
        return self._phase(foot, t) < self.duty

    def foot(self, foot: str, t: Numbers) -> tuple[Path, Path]:
        """Return the motion of a foot ahead and up [m], from its mean position under a trunk that stands still.

        The foot moves back with the speed of the trunk in stance, and has this velocity and no acceleration where
        swing begins and ends: it leaves the ground and meets it without an impact.
        """
        phase = self._phase(foot, t)
        swing = (1.0 - self.duty) * self.period
        half = 0.5 * self.speed * self.duty * self.period
        s = np.clip((phase - self.duty) / (1.0 - self.duty), 0.0, 1.0)
        stance, w, back = phase < self.duty, 2.0 * np.pi, self.speed * self.period / (2.0 * np.pi)
        along = (
            np.where(stance, half - self.speed * phase * self.period, (2.0 * s - 1.0) * half - back * np.sin(w * s)),
            np.where(stance, -self.speed, (2.0 * half - back * w * np.cos(w * s)) / swing),
            np.where(stance, 0.0, back * w * w * np.sin(w * s) / swing**2),
        )
        u, du = s * (1.0 - s), 1.0 - 2.0 * s
        arch = 64.0 * self.lift
        up = (arch * u**3, arch * 3.0 * u**2 * du / swing, arch * (6.0 * u * du**2 - 6.0 * u**2) / swing**2)
        return along, up

    def _phase(self, foot: str, t: ArrayLike) -> Numbers:
        self._check_foot(foot)
        return (np.asarray(t, dtype=float) / self.period + self.phases[foot]) % 1.0

    def _check_foot(self, foot: str) -> None:
        if foot not in self.phases:
            raise InputError(f"the gait has no phase of the foot {foot!r}; it has those of {', '.join(self.phases)}")
