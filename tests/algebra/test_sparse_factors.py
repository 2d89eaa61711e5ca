"""Sparse factors U D U^T: solutions, the inverse, and entries between branches."""

from __future__ import annotations

import numpy as np

from kinetree.dynamics.derivatives import SparseFactors
from tolerance import assert_close

EPS = np.finfo(float).eps


def branched(rng: np.random.Generator) -> tuple[np.ndarray, dict]:
    """Return a positive definite matrix with the zeros of a tree of branches (1, 2) and (3, 4, 5) on a root."""
    U = np.eye(6)
    for i, k in ((0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (3, 4), (0, 5), (3, 5), (4, 5)):
        U[i, k] = rng.normal()
    A = U @ np.diag(rng.uniform(0.5, 2.0, size=6)) @ U.T
    return A, {(i, k): float(A[i, k]) for i in range(6) for k in range(6) if A[i, k] != 0.0}


def test_solutions_and_inverse():
    """Solve with a sparse column and invert, and find NumPy's solutions; branches stay separate."""
    A, entries = branched(np.random.default_rng(0))
    factors = SparseFactors(entries, 6)
    assert [sorted(column) for column in factors.U] == [[], [0], [0, 1], [0], [0, 3], [0, 3, 4]]
    b = np.array([0.0, 0.0, 0.7, 0.0, -0.3, 0.0])
    bound = 20 * EPS * np.linalg.cond(A)
    assert_close(factors.solve({2: 0.7, 4: -0.3}), np.linalg.solve(A, b), bound, "solution")
    inverse = factors.inverse_matrix()
    found = [[inverse[i, k] for k in range(6)] for i in range(6)]
    assert_close(found, np.linalg.inv(A), bound * np.abs(np.linalg.inv(A)).max(), "inverse")
