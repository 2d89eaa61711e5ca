"""Newton's method that closes loops: of single positions by least squares, and of batches by compiled steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...algebra.arrays import Numbers

RANK = 1e-7
"""Singular values of J this small beside the largest are zero, at positions that are closed to rounding."""


def iterate(gap: Callable[[Numbers], Numbers], moved: Callable[[Numbers], Numbers], q: Numbers, rounds: int) -> Numbers:
    """Return positions [..., nq] after steps of Newton's method, each until it is closed or the rounds are used up.

    `gap` returns the gaps of positions [..., 1] in parts of what is left alone, `moved` positions one step further.
    """
    for _ in range(rounds):
        if not (open_ := gap(q) > 1.0).any():
            break
        q = np.where(open_, moved(q), q)
    return q


def newton(
    residual: Callable[[Numbers], Numbers],
    jacobian: Callable[[Numbers], Numbers],
    move: Callable[[Numbers, Numbers], Numbers],
    q: Numbers,
    *,
    held: np.ndarray | None = None,
    iterations: int = 60,
    enough: float = 0.0,
) -> tuple[Numbers, float]:
    """Return the closed position that Newton's method finds from q, and the largest residual that is left.

    Steps are the least ones, at most a radian long; directions that hardly close anything are left alone, and a step
    that does not bring the loops nearer is halved. `held` degrees of freedom stay. A residual that is `enough` is left.
    """
    left, stuck = residual(q), False

    def open_(q: Numbers) -> Numbers:
        return np.array([0.0 if stuck or not np.linalg.norm(left) > enough else np.inf])

    def moved(q: Numbers) -> Numbers:
        nonlocal left, stuck
        J = jacobian(q)
        if held is not None:
            J = np.where(held, 0.0, J)
        step = -np.linalg.lstsq(J, left, rcond=RANK)[0]
        step *= min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))
        for _ in range(12):
            tried = move(q, step)
            gap = residual(tried)
            if np.linalg.norm(gap) < np.linalg.norm(left):
                left = gap
                return tried
            step /= 2
        stuck = True  # nothing brings the loops nearer
        return q

    q = iterate(open_, moved, q, iterations)
    return q, float(np.abs(left).max(initial=0.0))
