"""Periodic motions: fixed points and multipliers of maps that are known, and clear refusals."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close


def henon(x):
    """Return Henon's map with a = 1.4, b = 0.3."""
    return np.stack([1.0 - 1.4 * x[..., 0] ** 2 + x[..., 1], 0.3 * x[..., 0]], axis=-1)


def test_a_known_map_has_its_fixed_point_and_multipliers():
    """Find the fixed point of Henon's map and its multipliers in closed form."""
    found = kt.periodic(henon, [0.5, 0.1])
    x = (-0.7 + np.sqrt(0.49 + 5.6)) / 2.8
    assert_close(found.x, [x, 0.3 * x], 1e-11, "fixed point")
    roots = np.roots([1.0, 2.8 * x, -0.3])
    assert_close(np.sort(found.multipliers.real), np.sort(roots.real), 1e-7, "multipliers")
    assert not found.stable
    assert "unstable" in str(found)


@pytest.mark.parametrize(
    ("advance", "x0", "words"),
    [
        (henon, [[0.5, 0.1]], r"x0 has shape \(1, 2\)"),
        (henon, [np.nan, 0.1], "finite coordinates"),
        (lambda x: x * np.nan, [0.5], "does not return"),
        (lambda x: x[..., :1], [0.5, 0.1], r"returned \(1,\)"),
        (lambda x: x + 1.0 + x**2, [0.3], "no periodic motion"),
    ],
)
def test_maps_without_periodic_motions_are_named(advance, x0, words):
    """Name what is wrong with the map or the start."""
    with pytest.raises(InputError, match=words):
        kt.periodic(advance, x0)
