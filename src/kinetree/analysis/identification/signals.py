"""Zero-phase filters, derivatives and delays of recorded signals with even time steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError

ORDER = 6
"""The order of the low-pass filter, which runs forward and backward: it leaves 1 - 2e-5 at 0.4 of the cutoff."""
ABOVE_NOISE = 10.0
"""The amplitude of a signal, in parts of the median amplitude of its noise, up to which frequencies are kept."""
MARGIN = 2.5
"""The chosen cutoff in parts of the highest frequency above the noise, so that the filter keeps the motion."""
NYQUIST = 0.8
"""The largest cutoff, in parts of half the sampling rate."""


def low_pass(x: Numbers, rate: float, cutoff: float) -> Numbers:
    """Return a signal [n, ...] without frequencies above the cutoff [Hz], without a shift in time."""
    from scipy.signal import butter, sosfiltfilt

    return sosfiltfilt(butter(ORDER, cutoff, fs=rate, output="sos"), x, axis=0)


def derivatives(t: Numbers, x: Numbers) -> tuple[Numbers, Numbers]:
    """Return the first and second derivatives of a smooth signal [n, k], by its quintic spline."""
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(t, x, k=5, axis=0)
    return spline.derivative(1)(t), spline.derivative(2)(t)


def chosen_cutoff(q: Numbers, rate: float) -> float:
    """Return the frequency [Hz] up to which positions [n, k] exceed their noise, with a margin.

    The noise is the median amplitude in the upper half of the spectrum, which motions of machines leave to it.
    """
    n = len(q)
    t = np.arange(n)[:, None]
    line = q[0] + (q[-1] - q[0]) * t / (n - 1)  # ends that differ would have a spectrum of their own
    spectrum = np.abs(np.fft.rfft((q - line) * np.hanning(n)[:, None], axis=0))
    noise = np.median(spectrum[len(spectrum) // 2 :], axis=0)
    frequencies = np.fft.rfftfreq(n, 1.0 / rate)
    above = spectrum > ABOVE_NOISE * np.maximum(noise, 1e-12 * spectrum.max())
    highest = max((float(frequencies[np.flatnonzero(column)[-1]]) for column in above.T if column.any()), default=0.0)
    least = 4.0 * rate / n
    return float(np.clip(MARGIN * highest, least, NYQUIST * rate / 2.0))


def check_cutoff(cutoff: float, rate: float) -> float:
    """Return a cutoff [Hz] that suits a sampling rate."""
    if not 0.0 < cutoff < rate / 2.0:
        raise InputError(
            f"cutoff is {cutoff:g} Hz, and the recording has {rate:.4g} samples per second; give less than half of that"
        )
    return cutoff


@dataclass(frozen=True)
class Shifted:
    """A signal [n, k] that can be read at times between its samples."""

    spline: Any

    @classmethod
    def of(cls, t: Numbers, x: Numbers) -> Shifted:
        """Return the signal through samples."""
        from scipy.interpolate import make_interp_spline

        return cls(make_interp_spline(t, x, k=3, axis=0))

    def at(self, t: Numbers, delays: Numbers) -> Numbers:
        """Return the signal of each column, read its delay [s] later than t: what belongs to the instants t."""
        if not delays.any():
            return self.spline(t)
        return np.stack([self.spline(t + d)[:, k] for k, d in enumerate(delays)], axis=-1)
