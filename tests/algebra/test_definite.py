"""Symmetric systems that may be singular."""

from __future__ import annotations

import numpy as np

from kinetree.algebra.definite import Definite
from tolerance import assert_close


def factors(S: np.ndarray) -> Definite:
    """Return the factors of a matrix of numbers."""
    rows = [[float(x) for x in row] for row in S]
    return Definite(rows, 1e-10, [1e-10 * max(np.diag(S))] * len(S))


def test_a_definite_system_is_solved():
    """Agree with NumPy on a positive definite matrix."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(7, 5))
    S, b = Y.T @ Y, rng.normal(size=5)
    assert_close(factors(S).solve(list(b)), np.linalg.solve(S, b), 1e-11, "x")


def test_dependent_rows_are_left_out():
    """Solve a consistent singular system, with zero for the row that says nothing new."""
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(7, 4))
    Y = np.column_stack([Y[:, 0], Y[:, 1], 2 * Y[:, 0] - Y[:, 1], Y[:, 2], 0 * Y[:, 0], Y[:, 3]])
    S = Y.T @ Y
    b = S @ rng.normal(size=6)
    x = np.array(factors(S).solve(list(b)))
    assert_close(S @ x, b, 1e-11, "S x")
    assert x[2] == 0.0 and x[4] == 0.0
