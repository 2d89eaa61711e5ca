"""Common normals of joint axes: their feet on the axes, and the same bits for one body and for many."""

from __future__ import annotations

import numpy as np

from kinetree.compiler.lower.working_frames import CROSSING, FAR, foot, main_children, normal
from tolerance import assert_close

Z = np.array([0.0, 0.0, 1.0])


def test_the_foot_is_nearest_to_the_axis():
    """Find the foot on the child's axis nearer to the parent's axis than its neighbors are."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        d, arm = rng.normal(size=(2, 3))
        d /= np.linalg.norm(d)
        s, there = foot(Z, d, arm)
        if there:
            there = arm + s * d
            x, _, crossing = normal(Z, d, arm)
            assert crossing
            assert_close(np.cross(there * (1, 1, 0), x) / np.linalg.norm(x), np.zeros(3), 1e-13, "along the normal")


def test_almost_parallel_axes_have_no_foot():
    """Tilt an axis by less than the threshold, and by so little that the foot is far, and find no common normal."""
    arm = np.array([0.3, 0.4, 0.7])
    for tilt in (0.5 * CROSSING, 0.1 / FAR):
        s, there = foot(Z, np.array([0.0, np.sin(tilt), np.cos(tilt)]), arm)
        assert (float(s), bool(there)) == (0.0, False)
    x, there, crossing = normal(Z, Z, arm)
    assert there and not crossing
    assert_close(x, np.array([0.3, 0.4, 0.0]), 1e-15, "perpendicular part of the arm")
    assert not normal(Z, Z, 0.7 * Z)[1]


def test_arrays_have_the_bits_of_single_bodies():
    """Compute many bodies at once and find the bits of each alone."""
    rng = np.random.default_rng(3)
    z, d, arm = rng.normal(size=(3, 200, 3))
    z, d = z / np.linalg.norm(z, axis=1)[:, None], d / np.linalg.norm(d, axis=1)[:, None]
    many = (*foot(z, d, arm), *normal(z, d, arm))
    for k in range(200):
        one = (*foot(z[k], d[k], arm[k]), *normal(z[k], d[k], arm[k]))
        assert all(np.array_equal(a[k], b) for a, b in zip(many, one, strict=True))


def test_the_main_child_carries_most_bodies():
    """Choose the child on a joint with one axis that carries most bodies, the first of equals."""
    parents = [-1, 0, 0, 2, 0, 4, 5]
    assert main_children(parents, [True] * 7) == [4, None, 3, None, 5, 6, None]
    assert main_children(parents, [True] * 4 + [False] * 3) == [2, None, 3, None, None, None, None]
    assert main_children([-1, 0, 0], [True] * 3) == [1, None, None]
