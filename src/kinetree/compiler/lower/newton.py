"""Newton's method for closing loops: of single positions by least squares, and of batches by compiled steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...algebra.arrays import Numbers

RANK = 1e-7
"""The ratio to the largest singular value of J below which a singular value counts as zero.

It holds at positions that are closed to rounding."""


def iterate(gap: Callable[[Numbers], Numbers], moved: Callable[[Numbers], Numbers], q: Numbers, rounds: int) -> Numbers:
    """Return positions [..., nq] after Newton steps, each until it is closed or `rounds` steps have been made.

    `gap` returns the gaps of positions [..., 1] as multiples of the tolerance, `moved` the positions one step further.
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

    Steps have least norm, and no entry larger than 1 (a radian). Directions with singular values below RANK are left
    out. A step that does not reduce the residual is halved. `held` degrees of freedom do not move. The search stops
    where the norm of the residual is at most `enough`.
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
        stuck = True  # no step along this direction reduces the residual
        return q

    q = iterate(open_, moved, q, iterations)
    return q, float(np.abs(left).max(initial=0.0))
