"""Measures of quantities over time, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.reports.measures import Extreme, extreme, heating_load, highest, mean, rms, share_above, work
from tolerance import assert_close

T = np.sort(np.concatenate([np.linspace(0.0, 2.0, 300), np.random.default_rng(3).uniform(0.01, 1.99, 60)]))
W = 2.0 * np.pi * 1.5
"""Three periods in the time of T."""


def test_rms_and_mean_of_sinusoids():
    """Average sinusoids over whole periods, at uneven times."""
    x = 0.7 + 2.3 * np.sin(W * T + 0.4)
    assert_close(mean(T, x), 0.7, 1e-8, "mean")
    assert_close(rms(T, x), np.sqrt(0.7**2 + 2.3**2 / 2.0), 1e-8, "RMS")
    assert rms(T, np.zeros(len(T))) == 0.0
    assert_close(rms(T, 1e-200 * x), 1e-200 * rms(T, x), 1e-208, "RMS of tiny values")


def test_work_is_split_where_power_changes_its_sign():
    """Integrate a sinusoidal power with a mean: its parts above and below zero in closed form."""
    a, b = 0.5, 2.1
    power = a + b * np.sin(W * T)
    cut = np.arcsin(a / b)
    below = 3.0 * (2.0 * b * np.cos(cut) - a * (np.pi - 2.0 * cut)) / W
    delivered, regenerated = work(T, power)
    assert_close(regenerated, below, 1e-7, "regenerated")
    assert_close(delivered - regenerated, 2.0 * a, 1e-7, "net work")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_power_of_one_sign_is_all_delivered_or_all_regenerated(sign):
    """Integrate a power that touches zero without crossing it."""
    delivered, regenerated = work(T, sign * np.sin(W * T) ** 2)
    assert_close(sign * (delivered - regenerated), 1.0, 1e-6, "work")
    assert min(delivered, regenerated) < 1e-7


def test_shares_of_the_time():
    """Find the shares in which a triangle is above levels, between samples too."""
    t, x = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, -2.0])
    assert_close(share_above(t, x, 0.0), 2.0 / 3.0, 1e-15, "above zero")
    assert_close(share_above(t, x, 1.0), (0.5 + 0.5) / 3.0, 1e-15, "above one")
    assert share_above(t, x, 2.0) == 0.0
    assert share_above(np.zeros(1), np.ones(1), 0.5) == 1.0


def test_heating_lies_between_rms_and_peak():
    """Heat a winding by a sinusoid: slowly it has the RMS, quickly the peak, and a constant load is itself."""
    x = 2.3 * np.sin(W * T)
    assert_close(heating_load(T, np.full(len(T), -1.9), 0.3), 1.9, 1e-12, "constant")
    assert_close(heating_load(T, x, 1e5), 2.3 / np.sqrt(2.0), 1e-3, "slow")
    assert_close(heating_load(T, x, 1e-5), 2.3, 1e-2, "quick")
    even = np.linspace(0.0, 2.0, 401)
    y = 2.3 * np.sin(W * even)
    uneven = np.delete(even, 200)
    assert_close(
        heating_load(even, y, 0.2), heating_load(uneven, np.delete(y, 200), 0.2), 1e-3, "even and uneven steps"
    )
    c = 1.0 / np.sqrt(1.0 + (2.0 * W * 0.2) ** 2)  # first-order lag of 1 - cos(2 W t)
    assert_close(heating_load(T, x, 0.2), 2.3 * np.sqrt(0.5 * (1.0 + c)), 1e-3, "lag")


def test_extremes_keep_sign_and_instant():
    """Find the largest magnitude and the largest value, the first of equal ones."""
    t, x = np.array([0.5, 1.0, 1.5]), np.array([2.0, -3.0, -3.0])
    assert extreme(t, x) == Extreme(-3.0, 1.0)
    assert highest(t, x) == Extreme(2.0, 0.5)
