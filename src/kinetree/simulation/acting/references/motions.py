"""Motions given by formulas: constant, cycloid, cosine, polynomial."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...._support.checks import number, numbers, positive
from ....algebra.scalars import Scalar
from ....algebra.vectors import Vector
from ....errors import InputError, argument
from ...arguments import together
from ..smooth import clip, cos, sin, where

# --- The protocol of references, and their values as arrays ---

Lists = tuple[list[Scalar], list[Scalar], list[Scalar]]
"""q, qd and qdd, each a list with one scalar per coordinate."""


class Reference(Protocol):
    """A motion in time."""

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd at a time: lists of scalars of the same kind as t."""
        ...


def as_time(t: Scalar) -> Scalar:
    """Return t in the form that references require: integers and lists become floats."""
    if isinstance(t, list | tuple) or (isinstance(t, np.ndarray | np.generic) and t.dtype.kind in "iub"):
        return np.asarray(t, dtype=float)
    return float(t) if isinstance(t, int | float) else t


def sampled(reference: Reference, times: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """Return q, qd and qdd of a reference at times of any shape, each an array [..., n]."""
    t = np.asarray(times, dtype=float)
    q, qd, qdd = (
        np.stack([np.broadcast_to(np.asarray(x, dtype=float), t.shape) for x in entries], axis=-1)
        if len(entries)
        else np.zeros((*t.shape, 0))
        for entries in reference(t)
    )
    return q, qd, qdd


@dataclass(frozen=True)
class Constant:
    """Rest at q, with one number per coordinate [rad, m]; or a constant speed [rad/s, m/s] from q at t = 0."""

    q: Any = 0.0
    _: KW_ONLY
    speed: Any = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        given = {name: numbers(getattr(self, name), argument(name, "Constant", "")) for name in ("q", "speed")}
        _set(self, **together(given, "Constant"))

    def __call__(self, t: Scalar) -> Lists:
        """Return q, the speed, and zeros."""
        t = as_time(t)
        q = [a + v * t if v else a for a, v in zip(self.q, self.speed, strict=True)]
        return q, list(self.speed), [0.0] * len(self.q)


Hold = Constant
"""Constant under the name for the set point of a controller, or for the constant speed of a drive."""


@dataclass(frozen=True)
class Cycloid:
    """A motion from rest at q0 to rest at q1 in `duration` [s], with accelerations that begin and end at zero.

    q0 + (q1 - q0) / T [t - T / (2 pi) sin(2 pi t / T)]                                  [Saha2013] (34), (35)

    The reference is at rest before `start` and after start + T. With q0 = 0 and q1 = pi it is the motion of [Saha1999]
    (38) and (39).
    """

    q0: Any
    q1: Any
    duration: float
    _: KW_ONLY
    start: float = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        ends = {
            "q0": numbers(self.q0, argument("q0", "Cycloid", "")),
            "q1": numbers(self.q1, argument("q1", "Cycloid", "")),
        }
        _set(self, **together(ends, "Cycloid"), **_interval(self))

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd."""
        T = self.duration
        t = as_time(t) - self.start
        w = 2.0 * math.pi / T
        u = clip(t, 0.0, T)
        s, c = sin(u * w), cos(u * w)
        part = u * (1.0 / T) - s * (0.5 / math.pi)
        speed = inside(t, T, (1.0 - c) * (1.0 / T))
        rate = inside(t, T, s * (w / T))
        way = [b - a for a, b in zip(self.q0, self.q1, strict=True)]
        q = [a + part * d for a, d in zip(self.q0, way, strict=True)]
        return q, [speed * d for d in way], [rate * d for d in way]


@dataclass(frozen=True)
class Cosine:
    """offset + amplitude cos(frequency t + phase); the frequency in rad/s.                 [Wolinski2015] (28), (29)"""

    amplitude: Any
    frequency: Any
    _: KW_ONLY
    phase: Any = 0.0
    offset: Any = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        names = ("amplitude", "frequency", "phase", "offset")
        _set(self, **together({n: numbers(getattr(self, n), argument(n, "Cosine", "")) for n in names}, "Cosine"))

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd."""
        t = as_time(t)
        q, qd, qdd = [], [], []
        for a, w, phase, offset in zip(self.amplitude, self.frequency, self.phase, self.offset, strict=True):
            c, s = cos(t * w + phase), sin(t * w + phase)
            q.append(c * a + offset)
            qd.append(s * (-a * w))
            qdd.append(c * (-a * w * w))
        return q, qd, qdd


@dataclass(frozen=True)
class Polynomial:
    """A polynomial from q0 to q1 in `duration` [s], of degree 3 (given end velocities) or 5 (also accelerations).

    End values that are not given are zero. Before and after, the motion continues with the constant velocity of that
    end, or rests if this is zero.
    """

    q0: Any
    q1: Any
    duration: float
    _: KW_ONLY
    degree: int = 5
    qd0: Any = 0.0
    qd1: Any = 0.0
    qdd0: Any = 0.0
    qdd1: Any = 0.0
    start: float = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        names = ("q0", "q1", "qd0", "qd1", "qdd0", "qdd1")
        ends = {n: numbers(getattr(self, n), argument(n, "Polynomial", "")) for n in names}
        if self.degree not in (3, 5):
            raise InputError(f"the degree of Polynomial is {self.degree!r}; give 3 or 5", path=("degree",))
        if self.degree == 3 and any((*ends["qdd0"], *ends["qdd1"])):
            what = "a Polynomial of degree 3 cannot meet qdd0 and qdd1; leave them out or give degree=5"
            raise InputError(what, path=("degree",))
        _set(self, **together(ends, "Polynomial"), **_interval(self))

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd."""
        T = self.duration
        t = as_time(t) - self.start
        u = clip(t, 0.0, T) * (1.0 / T)
        beyond = t - clip(t, 0.0, T)
        q, qd, qdd = [], [], []
        for c in self._coefficients():
            first = [k * x for k, x in enumerate(c)][1:]
            second = [k * x for k, x in enumerate(first)][1:]
            speed = horner(first, u) * (1.0 / T)
            q.append(horner(c, u) + beyond * speed)
            qd.append(speed)
            qdd.append(inside(t, T, horner(second, u) * (1.0 / T**2)))
        return q, qd, qdd

    def _coefficients(self):
        """Yield the coefficients of each coordinate in powers of u = t / T."""
        T = self.duration
        for a, b, v0, v1, a0, a1 in zip(self.q0, self.q1, self.qd0, self.qd1, self.qdd0, self.qdd1, strict=True):
            d, V0, V1, A0, A1 = b - a, v0 * T, v1 * T, a0 * T * T, a1 * T * T
            if self.degree == 3:
                yield [a, V0, 3 * d - 2 * V0 - V1, V0 + V1 - 2 * d]
            else:
                c3 = 10 * d - 6 * V0 - 4 * V1 - (3 * A0 - A1) / 2
                c4 = -15 * d + 8 * V0 + 7 * V1 + (3 * A0 - 2 * A1) / 2
                yield [a, V0, A0 / 2, c3, c4, 6 * d - 3 * (V0 + V1) - (A0 - A1) / 2]


def horner(coefficients, u: Scalar) -> Scalar:
    """Return the value of a polynomial whose coefficients begin with the constant."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = u * total + c
    return total


def inside(t: Scalar, T: float, x: Scalar) -> Scalar:
    """Return x for t from 0 to T, and zero elsewhere."""
    return where(t < 0.0, 0.0, where(T < t, 0.0, x))


def _interval(motion: Cycloid | Polynomial) -> dict[str, float]:
    name = type(motion).__name__
    duration = positive(motion.duration, argument("duration", name))
    return {"duration": duration, "start": number(motion.start, argument("start", name))}


def _set(motion: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(motion, name, value)


# --- Trapezoidal velocity profiles: constant acceleration, constant velocity, constant deceleration ---

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

    def __call__(self, t: Scalar) -> Vector:
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

    def __call__(self, t: Scalar) -> Lists:
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
