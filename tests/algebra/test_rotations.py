"""Rotations as products of factors, against plain matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.algebra.rotations import (
    IDENTITY,
    ONE,
    Full,
    Planar,
    Rotation,
    about,
    constant,
    from_axis_angle,
    from_euler,
    from_quaternion,
    from_rpy,
)
from kinetree.joints.euler import SEQUENCES
from strategies import examples, nested, rotation
from tolerance import assert_close

EPS = np.finfo(float).eps


def chain(rng: np.random.Generator) -> Rotation:
    """Return a product of planar and full factors."""
    out = ONE
    for k in rng.integers(0, 4, 4):
        out = out @ (about(int(k), float(rng.normal())) if k < 3 else Rotation((Full(rotation(rng)),)))
    return out


@given(st.integers(0, 2**32 - 1))
@examples(50)
def test_products_are_those_of_matrices(seed):
    """Rotate vectors and matrices by factors and by the whole matrix."""
    rng = np.random.default_rng(seed)
    R, S, v, H = chain(rng), chain(rng), rng.normal(size=3), rng.normal(size=(3, 3))
    M = np.array(R.matrix())
    assert_close(R @ nested(v), M @ v, 40 * EPS, "R v")
    assert_close(R.T @ nested(v), M.T @ v, 40 * EPS, "R^T v")
    assert_close((R @ S).matrix(), M @ np.array(S.matrix()), 40 * EPS, "R S")
    assert_close(R.T.matrix(), M.T, 40 * EPS, "R^T")
    assert_close(R.congruence(nested(H)), M @ H @ M.T, 100 * EPS, "R H R^T")
    symmetric = np.array(R.symmetric_congruence(nested(H + H.T)))
    assert_close(symmetric, M @ (H + H.T) @ M.T, 100 * EPS, "symmetric R H R^T")
    assert np.array_equal(symmetric, symmetric.T)


@pytest.mark.parametrize("k", range(3))
def test_a_turn_follows_the_right_hand(k):
    """Rotate the next axis to the one after it by a quarter rotation."""
    i, j = (k + 1) % 3, (k + 2) % 3
    turned = np.array(about(k, math.pi / 2) @ IDENTITY[i])
    assert_close(turned, IDENTITY[j], EPS, "quarter turn")
    assert (about(k, 0.7) @ IDENTITY[k]) == IDENTITY[k]


def test_constant_finds_the_cheapest_factors():
    """Find no factor, a permutation, a planar rotation and a full matrix from their entries."""
    assert constant(IDENTITY) is ONE
    noise = tuple(tuple(x + 2e-16 for x in row) for row in IDENTITY)
    assert constant(noise) is ONE
    (planar,) = constant(about(1, 0.4).matrix()).factors
    assert isinstance(planar, Planar)
    assert (planar.k, planar.c, planar.s) == (1, math.cos(0.4), math.sin(0.4))
    swap = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    assert constant(swap).factors == (Full(swap),)
    general = rotation(np.random.default_rng(1))
    assert constant(general).factors == (Full(general),)


def test_roll_pitch_yaw_turns_about_fixed_axes():
    """Compose the angles of URDF: roll first, about the axes of the parent."""
    r, p, y = 0.3, -0.5, 1.2
    expected = np.array(about(2, y).matrix()) @ np.array(about(1, p).matrix()) @ np.array(about(0, r).matrix())
    assert_close(from_rpy(r, p, y), expected, 4 * EPS, "rpy")
    assert from_rpy(0.0, math.pi / 2, 0.0) == ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0))


@given(st.integers(0, 2**32 - 1))
@examples(30)
def test_axis_angle_and_quaternion_are_one_turn(seed):
    """Build one rotation by Rodrigues' formula and by a quaternion, and find its axis unchanged."""
    rng = np.random.default_rng(seed)
    axis, angle = rng.normal(size=3), float(rng.uniform(-4, 4))
    axis /= np.linalg.norm(axis)
    R = np.array(from_axis_angle(nested(axis), angle))
    quaternion = (*(axis * math.sin(angle / 2)), math.cos(angle / 2))
    assert_close(R, from_quaternion(quaternion), 8 * EPS, "quaternion")
    assert_close(R @ axis, axis, 8 * EPS, "axis")
    assert_close(np.trace(R), 1 + 2 * math.cos(angle), 8 * EPS, "trace")


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_euler_angles_turn_about_moving_axes(sequence):
    """Multiply the three rotations in the order of the sequence."""
    angles = (0.3, -0.8, 1.9)
    expected = np.eye(3)
    for letter, angle in zip(sequence, angles, strict=True):
        expected = expected @ np.array(about("xyz".index(letter), angle).matrix())
    assert_close(from_euler(sequence, angles), expected, 8 * EPS, sequence)
