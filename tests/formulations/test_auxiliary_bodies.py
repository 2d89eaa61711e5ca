"""Auxiliary bodies of [Goncalves2023] 4.3 against the conditions that define them."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.errors import InputError
from kinetree.formulations.linear_actuators import balancing_half, inclination, length
from tolerance import assert_close

Z = np.array([0.0, 0.0, 1.0])


def test_21_is_the_angle_of_a_body():
    """Find the angle between an axis and a body from three lengths, for points anywhere."""
    rng = np.random.default_rng(5)
    Si, Sj = rng.normal(size=(2, 7, 3))
    way = Sj - Si
    assert_close(length(Si, Sj), np.linalg.norm(way, axis=-1), 1e-15, "(20)")
    expected = np.arccos(way[:, 2] / np.linalg.norm(way, axis=-1))
    assert_close(inclination(Si + Z, Si, Sj), expected, 1e-13, "(21) with arccos")


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_linkage_meets_its_conditions(side):
    """Find the tip at the length of the bar, below the rail by that of the upright, and the spring on the bar."""
    F3, a, b, c = np.array([0.05 * side, 0.02, 0.11]), 0.09, 0.24, 0.07
    H4z = np.array([0.1, 0.17, 0.3])
    half = balancing_half(H4z, F3, a, b, c, side=side)
    assert_close(np.linalg.norm(half.tip - F3, axis=-1), [b] * 3, 1e-15, "bar")
    assert (side * (half.tip - F3)[:, 0] > 0).all()
    assert_close(half.rail, half.tip + c * Z, 1e-15, "upright")
    assert_close(half.rail[:, 2], H4z, 1e-15, "rail")
    assert_close((half.spring - F3) / a, (half.tip - F3) / b, 1e-14, "spring")


def test_short_bars_are_refused():
    """Name the bars, the height that they do not reach, and the state."""
    with pytest.raises(InputError, match=r"are 0.1 m long, but their tips are 0.2 m above their pivots in state \[1\]"):
        balancing_half(np.array([0.25, 0.4]), np.array([0, 0, 0.1]), 0.05, 0.1, 0.1, side=1.0)
