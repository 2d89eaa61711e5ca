"""Gaits as schedules of feet."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.apps.walking.gaits import Gait
from tolerance import assert_close

GAIT = Gait(0.83, 0.57, 0.31, 0.07, {"left": 0.0, "right": 0.4})


def test_feet_rest_on_the_ground_in_stance():
    """Find the foot moving back with the speed of the trunk, at height zero, for the share of the duty."""
    t = np.linspace(0.0, 0.83 * 0.57, 50, endpoint=False)
    (x, v, a), (z, _, _) = GAIT.foot("left", t)
    assert GAIT.supports("left", t).all() and not GAIT.supports("left", 0.83 * 0.6)
    assert_close(v, np.full(50, -0.31), 1e-15, "velocity in stance")
    assert not z.any() and not a.any()
    assert_close(x[0] - 0.31 * t[-1], x[-1], 1e-15, "way of the stance")
    assert_close(GAIT.stride, 0.83 * 0.31, 1e-15, "stride")


def test_paths_are_smooth():
    """Find velocities and accelerations as differences, also where swing begins and ends, and the lift."""
    t = np.linspace(0.0, 2 * 0.83, 20001)
    for path in GAIT.foot("right", t):
        h = t[1]
        assert_close((path[0][2:] - path[0][:-2]) / (2 * h), path[1][1:-1], 1e-4, "velocity")
        assert_close((path[1][2:] - path[1][:-2]) / (2 * h), path[2][1:-1], 2e-2, "acceleration")
    (_, _, _), (z, _, _) = GAIT.foot("right", t)
    assert_close(z.max(), 0.07, 1e-7, "lift")


def test_feet_have_their_phases():
    """Find the right foot where the left one is 0.4 periods later, and the sides exchanged in the mirrored gait."""
    t = np.linspace(0.0, 0.8, 9)
    ahead = GAIT.foot("left", t + 0.4 * 0.83)
    for mine, theirs in zip(GAIT.foot("right", t), ahead, strict=True):
        assert_close(mine[0], theirs[0], 1e-14, "phase")
    assert GAIT.mirrored({"left": "right"}).phases == {"left": 0.4, "right": 0.0}


def test_impossible_gaits_are_refused():
    """Refuse a duty of one, a negative period and unknown feet, with the known ones."""
    with pytest.raises(kt.InputError, match=r"duty is 1\.0; give the share"):
        Gait(1.0, 1.0, 0.2, 0.1, {})
    with pytest.raises(kt.InputError, match="period"):
        Gait(-1.0, 0.5, 0.2, 0.1, {})
    with pytest.raises(kt.InputError, match="no phase of the foot 'middle'; it has those of left, right"):
        GAIT.foot("middle", np.zeros(1))
    with pytest.raises(kt.InputError, match="no phase of the foot 'rear'; it has those of left, right"):
        GAIT.mirrored({"left": "rear"})
    with pytest.raises(kt.InputError, match="phase of the foot 'left' is nan; give a finite number"):
        Gait(1.0, 0.5, 0.2, 0.1, {"left": np.nan})
