"""Motions by series of Chebyshev and Fourier."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.apps.walking.gaits import ChebyshevMotion, FourierMotion
from kinetree.simulation.acting.references import sampled
from tolerance import assert_close


def test_polynomials_have_the_motion_and_its_rates():
    """Fit exponentials, and find them and two derivatives between the nodes."""
    rates = np.array([0.7, -1.9])
    motion = ChebyshevMotion.fit(lambda t: np.exp(np.outer(t, rates)), 1.3, 18)
    t = np.linspace(0.0, 1.3, 7)
    expected = np.exp(np.outer(t, rates))
    for k, found in enumerate(sampled(motion, t)):
        assert_close(found, expected * rates**k, 1e-10, f"derivative {k}")
    with pytest.raises(kt.InputError, match="duration"):
        ChebyshevMotion.fit(np.cos, -1.0, 4)


def test_fourier_series_repeat():
    """Fit a sum of waves, and find it, its rates, and the same after three periods."""
    period = 0.83
    w = 2 * np.pi / period

    def wave(t):
        return np.stack([0.4 + np.cos(w * t) - 0.3 * np.sin(3 * w * t), np.sin(2 * w * t + 0.2)], axis=-1)

    motion = FourierMotion.fit(wave(np.arange(16) * period / 16), period, 4)
    t = np.array([0.11, 0.5, 0.11 + 3 * period])
    q, qd, qdd = sampled(motion, t)
    assert_close(q, wave(t), 1e-13, "values")
    h = 1e-4
    assert_close(qd, (wave(t + h) - wave(t - h)) / (2 * h), 1e-3, "velocities")
    assert_close(qdd, (wave(t + h) - 2 * wave(t) + wave(t - h)) / h**2, 1e-1, "accelerations")
    assert_close(q[0], q[2], 1e-12, "after three periods")


def test_too_few_samples_are_refused():
    """Refuse samples that cannot determine so many harmonics."""
    with pytest.raises(kt.InputError, match=r"shape \(8, 2\); expected .* more than 8 times for 4 harmonics"):
        FourierMotion.fit(np.zeros((8, 2)), 1.0, 4)
