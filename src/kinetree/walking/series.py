"""References by series: smooth motions of an interval by Chebyshev polynomials, periodic ones by Fourier's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..numbers import positive, whole
from ..simulation.references.sampling import Lists, as_time
from ..simulation.smooth import cos, sin


@dataclass(frozen=True, eq=False)
class ChebyshevMotion:
    """Chebyshev polynomials with `coefficients` [degree + 1, n] over 0 to `duration` [s]; not meant beyond it."""

    coefficients: Numbers
    duration: float

    @classmethod
    def fitted(cls, motion: Callable[[Numbers], ArrayLike], duration: float, degree: int) -> ChebyshevMotion:
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
    def fitted(cls, samples: ArrayLike, period: float, harmonics: int) -> FourierMotion:
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
