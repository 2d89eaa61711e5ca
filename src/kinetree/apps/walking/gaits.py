"""Gaits: the cycle of every foot, and joint motions by which frames, such as trunk and feet, move on given paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from ..._support.checks import number, positive, whole
from ...algebra.scalars import Numbers, Scalar
from ...analysis.kinematics.pose_search import rotation_vectors
from ...errors import InputError
from ...simulation.acting.references.motions import Lists, as_time
from ...simulation.acting.smooth import cos, sin
from ...system import System

# --- Gaits as schedules: the cycle that every foot goes through, and by how much each foot is ahead in it ---

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


Motion = tuple[Numbers, Numbers, Numbers]
"""Positions, velocities and accelerations, each [nt, n]."""

POSE = (0, 1, 2, 3, 4, 5)
POINT = (3, 4, 5)
CLOSED = 1e-12
"""The largest error of a frame in its rows [rad, m]: rounding of positions of some meters."""
MOST = 40
"""The most iterations of Newton's method: each doubles the digits, after a few to come near."""


@dataclass(frozen=True, eq=False)
class FramePath:
    """The path of a frame: its origin as a Motion [nt, 3] of the ground, and a constant rotation [3, 3].

    `rows` are the components of [rotation; translation] in the axes of the ground that the path prescribes: POSE for
    all six, POINT for the origin alone.
    """

    frame: str
    origin: Motion
    rotation: ArrayLike | None = None
    rows: Sequence[int] = POSE

    def errors(self, system: System, q: Numbers) -> Numbers:
        """Return the missing rotation and translation in the prescribed rows [nt, rows]."""
        T = system.pose(q, self.frame)
        turn = np.eye(3) if self.rotation is None else np.asarray(self.rotation, dtype=float)
        missing = rotation_vectors(turn @ np.swapaxes(T[..., :3, :3], -1, -2))
        return np.concatenate([missing, self.origin[0] - T[..., :3, 3]], axis=-1)[..., list(self.rows)]

    def rates(self, order: int) -> Numbers:
        """Return twists (order 1) or their rates (order 2) in the prescribed rows [nt, rows]."""
        linear = np.asarray(self.origin[order], dtype=float)
        return np.concatenate([np.zeros_like(linear), linear], axis=-1)[..., list(self.rows)]


def joint_motion(system: System, paths: Sequence[FramePath], start: ArrayLike) -> Motion:
    """Return q, qd and qdd with which frames follow their paths, by Newton's method from `start` [nq] or [nt, nq].

    The paths must prescribe as many rows as the mechanism has degrees of freedom. Velocities and accelerations follow
    from J qd = v and J qdd = a - dJ/dt qd.
    """
    count = sum(len(path.rows) for path in paths)
    if count != system.nv:
        raise InputError(f"the paths prescribe {count} rows; expected {system.nv}, one for each degree of freedom")
    times = len(paths[0].origin[0])
    q = _reach_paths(system, paths, np.array(np.broadcast_to(np.asarray(start, dtype=float), (times, system.nq))))
    J = _jacobian(system, paths, q)
    qd = _solve_regularized(J, np.concatenate([path.rates(1) for path in paths], axis=-1))
    rate = np.concatenate([system.jacobian_rate(q, qd, p.frame)[..., list(p.rows), :] for p in paths], axis=-2)
    drift = (rate @ qd[..., None])[..., 0]
    return q, qd, _solve_regularized(J, np.concatenate([path.rates(2) for path in paths], axis=-1) - drift)


def _reach_paths(system: System, paths: Sequence[FramePath], q: Numbers) -> Numbers:
    """Return the coordinates at which all frames are on their paths."""
    for _ in range(MOST):
        missing = np.concatenate([path.errors(system, q) for path in paths], axis=-1)
        if np.abs(missing).max() <= CLOSED:
            return q
        q = system.integrate(q, _solve_regularized(_jacobian(system, paths, q), missing))
    missing = np.abs(np.concatenate([path.errors(system, q) for path in paths], axis=-1)).max(axis=-1)
    raise InputError(
        f"frames do not reach their paths at sample {int(missing.argmax())}: {missing.max():.3g} rad or m are missing; "
        "shorten the paths, or start nearer to them"
    )


def _jacobian(system: System, paths: Sequence[FramePath], q: Numbers) -> Numbers:
    return np.concatenate([system.jacobian(q, path.frame)[..., list(path.rows), :] for path in paths], axis=-2)


def _solve_regularized(J: Numbers, right: Numbers) -> Numbers:
    try:
        return np.linalg.solve(J, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        raise InputError(
            "the frames do not determine the joint motion: their Jacobian is singular, as for a straight leg; choose "
            "paths or a start with bent legs"
        ) from None


# --- References by series: smooth motions of an interval by Chebyshev polynomials, periodic ones by Fourier's.


@dataclass(frozen=True, eq=False)
class ChebyshevMotion:
    """Chebyshev polynomials with `coefficients` [degree + 1, n] over 0 to `duration` [s]; not meant beyond it."""

    coefficients: Numbers
    duration: float

    @classmethod
    def fit(cls, motion: Callable[[Numbers], ArrayLike], duration: float, degree: int) -> ChebyshevMotion:
        """Return the polynomial through a motion t [nt] -> q [nt, n] at the Chebyshev points of the interval."""
        duration, degree = positive(duration, "duration"), whole(degree, "degree")
        u = chebyshev.chebpts1(degree + 1)
        return cls(chebyshev.chebfit(u, np.asarray(motion(0.5 * duration * (1.0 + u))), degree), duration)

    def __call__(self, t: object) -> Lists:
        """Return q, qd, qdd."""
        scale = 2.0 / self.duration
        u = as_time(t) * scale - 1.0
        first, second = (chebyshev.chebder(self.coefficients, m, scl=scale, axis=0) for m in (1, 2))
        q, qd, qdd = ([_clenshaw(row, u) for row in c.T.tolist()] for c in (self.coefficients, first, second))
        return q, qd, qdd


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A periodic motion by Fourier's series.

    `cosines` and `sines` [harmonics + 1, n] belong to the multiples 0, 1, 2, ... of the angular frequency of the
    `period` [s].
    """

    cosines: Numbers
    sines: Numbers
    period: float

    @classmethod
    def fit(cls, samples: ArrayLike, period: float, harmonics: int) -> FourierMotion:
        """Return the series of samples [nt, n] at equal distances, the first at t = 0, the last a step before T."""
        values, count = np.asarray(samples, dtype=float), whole(harmonics, "harmonics")
        if values.ndim != 2 or len(values) <= 2 * count:
            raise InputError(
                f"samples have shape {values.shape}; expected [times, coordinates] with more than {2 * count} times "
                f"for {count} harmonics"
            )
        c = np.fft.rfft(values, axis=0)[: count + 1] / len(values)
        c[1:] *= 2.0
        return cls(c.real, -c.imag, positive(period, "period"))

    def __call__(self, t: object) -> Lists:
        """Return q, qd, qdd."""
        w = 2.0 * np.pi / self.period
        count, n = self.cosines.shape
        angle = as_time(t) * w
        c1, s1 = cos(angle), sin(angle)
        c, s = 1.0, 0.0
        q, qd, qdd = ([0.0] * n for _ in range(3))
        for k in range(count):
            for j, (a, b) in enumerate(zip(self.cosines[k].tolist(), self.sines[k].tolist(), strict=True)):
                wave, slope = c * a + s * b, c * (w * k * b) - s * (w * k * a)
                q[j], qd[j] = q[j] + wave, qd[j] + slope
                qdd[j] = qdd[j] - wave * (w * k) ** 2
            c, s = c * c1 - s * s1, s * c1 + c * s1
        return q, qd, qdd


def _clenshaw(coefficients: list[float], u: Scalar) -> Scalar:
    """Return the sum of Chebyshev polynomials at u, by Clenshaw's recursion."""
    b, before = 0.0, 0.0
    for c in reversed(coefficients[1:]):
        b, before = u * (b * 2.0) - before + c, b
    return u * b - before + coefficients[0]
