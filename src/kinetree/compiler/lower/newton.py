"""Newton's method that closes loops: of single positions by least squares, and of batches by compiled steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...algebra.arrays import Numbers

RANK = 1e-7
"""Singular values of J this small beside the largest are zero, at positions that are closed to rounding."""

Once = Callable[[Numbers], tuple[Numbers, Numbers]]


def iterate(once: Once, q: Numbers, rounds: int) -> Numbers:
    """Return positions [..., nq] after steps of Newton's method, each until it is closed or the rounds are used up.

    `once` returns the positions one step further, and their gaps [..., 1] before it, in parts of what is left alone.
    """
    for _ in range(rounds):
        moved, gap = once(q)
        if not (open_ := gap > 1.0).any():
            break
        q = np.where(open_, moved, q)
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
    gap = residual(q)

    def once(q: Numbers) -> tuple[Numbers, Numbers]:
        nonlocal gap
        size = np.linalg.norm(gap)
        if not size > enough:
            return q, np.zeros(1)
        J = jacobian(q)
        if held is not None:
            J = np.where(held, 0.0, J)
        step = -np.linalg.lstsq(J, gap, rcond=RANK)[0]
        step *= min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))
        for _ in range(12):
            tried = move(q, step)
            left = residual(tried)
            if np.linalg.norm(left) < size:
                gap = left
                return tried, np.full(1, np.inf)
            step /= 2
        return q, np.zeros(1)  # nothing brings the loops nearer

    q = iterate(once, q, iterations)
    return q, float(np.abs(gap).max(initial=0.0))
