"""Measures of a quantity over time: extremes with their instants, means, work, and shares of the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..algebra.scalars import Numbers
from ..simulation.monitors import spline


@dataclass(frozen=True)
class Extreme:
    """A value of a quantity and the time at which it occurs [s]."""

    value: float
    t: float


def extreme(t: Numbers, values: Numbers) -> Extreme:
    """Return the value of largest magnitude, with its sign; of equal ones the first."""
    k = int(np.argmax(np.abs(values)))
    return Extreme(float(values[k]), float(t[k]))


def highest(t: Numbers, values: Numbers) -> Extreme:
    """Return the largest value; of equal ones the first."""
    k = int(np.argmax(values))
    return Extreme(float(values[k]), float(t[k]))


def mean(t: Numbers, values: Numbers) -> float:
    """Return the mean over time; the value itself for a single sample."""
    if len(t) == 1:
        return float(values[0])
    return float(spline(t, values).integrate(t[0], t[-1])) / float(t[-1] - t[0])


def rms(t: Numbers, values: Numbers) -> float:
    """Return the root of the mean square over time."""
    largest = float(np.abs(values).max())
    if largest == 0.0:
        return 0.0
    square = mean(t, (values / largest) ** 2)  # relative to the peak: squares of tiny values would vanish
    return largest * float(np.sqrt(min(max(square, 0.0), 1.0)))


def work(t: Numbers, power: Numbers) -> tuple[float, float]:
    """Return the work delivered and the work taken back [J], both positive: integrals of power above and below zero.

    Their difference is the integral of the same spline. It is split where the spline crosses zero.
    """
    if len(t) == 1 or not power.any():
        return 0.0, 0.0
    from scipy.interpolate import PPoly

    curve = spline(t, power)
    zeros = PPoly.from_spline(curve).roots(discontinuity=False, extrapolate=False)
    ends = np.concatenate([t[:1], np.sort(zeros[np.isfinite(zeros)]), t[-1:]])
    pieces = np.diff(curve.antiderivative()(ends))
    return float(pieces[pieces > 0].sum()), float(-pieces[pieces < 0].sum())


def share_above(t: Numbers, values: Numbers, level: float) -> float:
    """Return the share of the time in which values exceed a level, with straight lines between samples."""
    if len(t) == 1:
        return float(values[0] > level)
    a, b = values[:-1] - level, values[1:] - level
    high, low = np.maximum(a, b), np.minimum(a, b)
    part = np.where(low >= 0.0, high > 0.0, np.maximum(high, 0.0) / np.where(high > low, high - low, 1.0))
    return float((part * np.diff(t)).sum() / (t[-1] - t[0]))


def heating_load(t: Numbers, values: Numbers, time_constant: float) -> float:
    """Return the steady value that heats a winding as much as the hottest instant, if the run repeats without end.

    The heat x follows T dx/dt = values^2 - x with the time constant T [s], with straight lines between samples. A run
    much shorter than T has the RMS, one much longer nearly the peak.
    """
    square = np.asarray(values, dtype=float) ** 2
    if len(t) == 1:
        return float(abs(values[0]))
    steps = np.diff(t) / time_constant
    decay = np.exp(-steps)
    late = -np.expm1(-steps) / steps  # share of the first value in what the step adds; 1 - late: of the last
    added = (late - decay) * square[:-1] + (1.0 - late) * square[1:]
    path = np.concatenate([[0.0], _accumulate(decay, added)])
    whole = np.exp(-(t - t[0]) / time_constant)
    start = path[-1] / -np.expm1(-(t[-1] - t[0]) / time_constant)  # the heat with which a repeated run begins and ends
    return float(np.sqrt((path + whole * start).max()))


def _accumulate(decay: Numbers, added: Numbers) -> Numbers:
    """Return x with x_k = decay_k x_(k-1) + added_k from zero."""
    if np.ptp(decay) <= 1e-9 * decay[0]:  # even steps, of which long runs have very many
        from scipy.signal import lfilter

        return np.asarray(lfilter([1.0], [1.0, -float(decay.mean())], added))
    x, out = 0.0, []
    for d, a in zip(decay.tolist(), added.tolist(), strict=True):
        x = d * x + a
        out.append(x)
    return np.array(out)
