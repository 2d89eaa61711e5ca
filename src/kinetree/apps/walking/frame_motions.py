"""Joint motions by which frames of a mechanism, such as trunk and feet, move on given paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from ..._support.checks import positive, whole
from ...algebra.arrays import Numbers
from ...analysis.kinematics.pose_targets import rotation_vectors
from ...errors import InputError
from ...simulation.acting.references.motions import Lists, as_time
from ...simulation.acting.smooth import cos, sin
from ...system import System

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

    def __call__(self, t: Any) -> Lists:
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

    def __call__(self, t: Any) -> Lists:
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


def _clenshaw(coefficients: list[float], u: Any) -> Any:
    """Return the sum of Chebyshev polynomials at u, by Clenshaw's recursion."""
    b, before = 0.0, 0.0
    for c in reversed(coefficients[1:]):
        b, before = u * (b * 2.0) - before + c, b
    return u * b - before + coefficients[0]
