"""Symmetric systems that may be singular."""

from __future__ import annotations

import numpy as np

from kinetree.algebra.definite import Definite
from tolerance import assert_close


def factors(S: np.ndarray, *, defer: bool = False) -> Definite:
    """Return the factors of a matrix of numbers."""
    rows = [[float(x) for x in row] for row in S]
    return Definite(rows, [1e-10] * len(S), [float(max(np.diag(S)))] * len(S), defer=defer)


def test_a_definite_system_is_solved():
    """Agree with NumPy on a positive definite matrix."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(7, 5))
    S, b = Y.T @ Y, rng.normal(size=5)
    assert_close(factors(S).solve(list(b)), np.linalg.solve(S, b), 1e-11, "x")


def test_dependent_rows_are_left_out():
    """Solve a consistent singular system, with zero for the dependent row."""
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(7, 4))
    Y = np.column_stack([Y[:, 0], Y[:, 1], 2 * Y[:, 0] - Y[:, 1], Y[:, 2], 0 * Y[:, 0], Y[:, 3]])
    S = Y.T @ Y
    b = S @ rng.normal(size=6)
    x = np.array(factors(S).solve(list(b)))
    assert_close(S @ x, b, 1e-11, "S x")
    assert x[2] == 0.0 and x[4] == 0.0
    assert np.array_equal(factors(S, defer=True).solve(list(b)), x)


def test_weak_rows_come_after_strong_ones():
    """Leave out a weak row that depends on a strong one, so that contradictions are not amplified."""
    weak, wrong = 1e-3, 1e-9
    Y = np.array([[weak, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, weak, 1.0]]).T
    b = np.array([wrong, 0.0, 1.0, 2.0])
    inorder, deferred = (Y @ factors(Y.T @ Y, defer=defer).solve(list(b)) for defer in (False, True))
    assert abs(inorder[0]) > 0.9 * wrong / weak
    assert_close(deferred, [0.0, 1.0, 2.0 - weak], 1e-12, "Y x")


def test_rows_that_fade_together_are_left_out_together():
    """Leave out both of two weak rows in one direction if the first is too weak and the second hardly stronger."""
    for fades in (0.99e-5, 0.9e-5):  # with the second above the tolerance by itself
        Y = np.array([[1.0, 0.0], [0.0, fades], [0.0, 1.3 * fades]]).T
        rows = [[float(x) for x in row] for row in Y.T @ Y]
        pivots = Definite(rows, [1e-10] * 3, [1.0] * 3, defer=True).inverse
        assert [x > 0 for x in pivots] == [True, False, False, False, False, False]
