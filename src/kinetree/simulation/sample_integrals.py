"""Integrals over the samples of a run, by splines of degree five.

Their error is of sixth order in the spacing of the samples if the integrand is smooth, and of first order at jumps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DEGREE = 5
"""The degree of the splines; fewer than six samples have lower, odd degrees."""


def spline(t: np.ndarray, values: np.ndarray) -> Any:
    """Return the interpolating spline of finite samples [nt] at the times t."""
    from scipy.interpolate import make_interp_spline

    degree = min(DEGREE, len(t) - 1)
    degree -= 1 - degree % 2 if degree else 0
    return make_interp_spline(t, values, k=degree)


def integral(t: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return the integral of samples from the first time on, [..., nt]; NaN from the first sample that is NaN."""
    out = np.full(rate.shape, np.nan)
    for index in np.ndindex(*rate.shape[:-1]):
        good = np.isfinite(rate[index])
        count = len(t) if good.all() else int(np.argmin(good))
        if count == 0:
            continue
        whole = spline(t[:count], rate[index][:count]).antiderivative()
        out[index][:count] = whole(t[:count]) - whole(t[0])
    return out
