"""Quaternions and screws: exponential and logarithm against matrices, at small and large angles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from kinetree.algebra.quaternions import conjugate, exponential, logarithm, normalized, product, sweep, unsweep
from kinetree.algebra.rotations import from_quaternion
from rigid_body import cross_matrix
from strategies import nested
from tolerance import assert_close

EPS = np.finfo(float).eps
ANGLES = (0.0, 1e-300, 1e-9, 1e-5, 0.00999, 0.01001, 1.0, 3.0, 3.1415)
AXIS = np.array([0.48, -0.6, 0.64])
OTHER = (0.3, -0.7, 1.1)


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_is_that_of_the_matrix(angle):
    """Compare the quaternion of a rotation vector with the matrix exponential."""
    q = exponential(nested(angle * AXIS))
    assert_close(np.linalg.norm(q), 1.0, 2 * EPS, "length")
    assert_close(from_quaternion(q), expm(cross_matrix(angle * AXIS)), 20 * EPS, "exp")


@pytest.mark.parametrize("angle", ANGLES)
def test_logarithm_undoes_exponential(angle):
    """Find the rotation vector again, from either sign and any length of the quaternion."""
    q = exponential(nested(angle * AXIS))
    for factor in (1.0, -1.0, 2.5, -0.3):
        again = logarithm(tuple(factor * x for x in q))
        assert_close(again, angle * AXIS, 8 * EPS * angle, f"log of {factor} q")


@pytest.mark.parametrize("angle", ANGLES)
def test_sweep_is_the_translation_of_a_screw(angle):
    """Compare the displacement of a screw with the exponential of its 4x4 matrix, and invert it."""
    turn = nested(angle * AXIS)
    M = np.zeros((4, 4))
    M[:3, :3], M[:3, 3] = cross_matrix(turn), OTHER
    place = sweep(turn, OTHER)
    assert_close(place, expm(M)[:3, 3], 40 * EPS, "screw")
    assert_close(unsweep(turn, place), OTHER, 40 * EPS / (3.2 - angle), "back")


def test_product_composes_turns():
    """Compare the product of quaternions with the product of their matrices."""
    a, b = normalized((0.1, -0.5, 0.4, 0.7)), normalized((-0.3, 0.2, 0.9, -0.1))
    expected = np.array(from_quaternion(a)) @ np.array(from_quaternion(b))
    assert_close(from_quaternion(product(a, b)), expected, 8 * EPS, "product")
    assert_close(product(a, conjugate(a)), (0.0, 0.0, 0.0, 1.0), 2 * EPS, "inverse")


def test_logarithm_of_half_a_turn_is_pi_long():
    """Find a vector of length pi where the quaternion's last entry is zero."""
    assert_close(logarithm((0.0, 1.0, 0.0, 0.0)), (0.0, np.pi, 0.0), 2 * EPS, "half a turn")
    assert logarithm((0.0, 0.0, 0.0, -1.0)) == (0.0, 0.0, 0.0)
