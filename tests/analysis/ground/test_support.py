"""Convex hulls and distances from their border."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.analysis.ground.balance_points import convex_hull, margin
from tolerance import assert_close


def test_hulls_have_the_corners_of_scipy() -> None:
    """Find the corners of random points, counterclockwise, as SciPy does."""
    from scipy.spatial import ConvexHull

    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(17, 2))
        found, other = convex_hull(points), points[ConvexHull(points).vertices]
        first = int(np.argmin(other[:, 0]))
        assert_close(found, np.roll(other, -first, axis=0), 0.0, "corners")


def test_distances_of_a_square() -> None:
    """Measure the distance to edges, to corners, and of polygons without an inside."""
    square = convex_hull(np.array([[0, 0], [2, 0], [2, 1], [0, 1], [1, 0.5], [1, 0]]))
    assert square.tolist() == [[0, 0], [2, 0], [2, 1], [0, 1]]
    for point, expected in (((0.3, 0.4), 0.3), ((1.7, 0.9), 0.1), ((-0.3, 0.4), -0.3), ((2.3, 1.4), -0.5)):
        assert margin(square, np.array(point)) == pytest.approx(expected, abs=1e-15)
    line = convex_hull(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    assert margin(line, np.array([0.4, 0.2])) == pytest.approx(-0.2, abs=1e-16)
    assert margin(line[:1], np.array([0.3, 0.4])) == pytest.approx(-0.5, abs=1e-16)
    assert np.isnan(margin(np.zeros((0, 2)), np.zeros(2))) and np.isnan(margin(square, np.array([np.nan, 0.0])))
