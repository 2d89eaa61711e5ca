"""Impacts of rigid bodies: restitution by Newton's or Poisson's law, with Coulomb friction of the impulses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cone_problem import ConeProblem, NoForces, solve
from .touching import Coefficients, State

ADDED = 1e-13
"""The part of the kinetic energy that rounding may add at an impact."""
HALVINGS = 50
"""The number of halvings by which restitution is reduced where it would add energy: down to rounding."""


@dataclass(frozen=True)
class Impact:
    """The velocities after an impact, the impulses of the candidates that touched [k, 3], and what was reduced.

    `kept` is the part of restitution that was applied: 1, or less where the law would have added energy.
    """

    qd: np.ndarray
    which: tuple[int, ...]
    impulses: np.ndarray
    after: np.ndarray
    residuals: tuple[float, float, float]
    kept: float = 1.0


def impact(given: Coefficients, state: State, qd: np.ndarray, which: list[int], restitution: np.ndarray) -> Impact:
    """Return the impact of the candidates that touch, with a coefficient of restitution for each."""
    J, X, W = state.answers(which)
    before = (J @ qd).reshape(-1, 3)

    def applied(part: float) -> tuple[np.ndarray, tuple[float, float, float]]:
        return _impulses(given, W, before, which, part * restitution)

    kept = 1.0
    try:
        impulses, residuals = applied(kept)
    except NoForces:  # a body that is wedged cannot rebound
        if not restitution.any():
            raise
        kept = 0.0
        impulses, residuals = applied(kept)
    if _gain(W, before, impulses) > ADDED * _energy(W, before):
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            impulses, residuals = applied(middle)
            if _gain(W, before, impulses) > 0:
                high = middle
            else:
                low = middle
        kept = low
        impulses, residuals = applied(kept)
    after = before + (W @ impulses.ravel()).reshape(-1, 3)
    return Impact(qd + X @ impulses.ravel(), tuple(which), impulses, after, residuals, kept)


def _impulses(given: Coefficients, W, before, which, e) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Return the impulses and the residuals of their cone problem.

    Newton: after >= -e before in the normal velocity of each contact. Poisson: the normal impulse of expansion is at
    least e times that of compression, which ends where the normal velocity is zero.
    """
    mu, poisson = given.mu[which], given.poisson[which] & (e > 0)
    closing = np.minimum(before[:, 0], 0.0)
    if not poisson.any():
        b = before.copy()
        b[:, 0] += e * closing
        found = solve(ConeProblem.of(W, b, mu))
        return found.forces, found.residuals
    first = solve(ConeProblem.of(W, before, mu))
    b = first.velocities.copy()
    b[:, 0] += np.where(poisson, 0.0, e * closing)
    floor = np.where(poisson, e * first.forces[:, 0], 0.0)
    second = solve(ConeProblem.of(W, b, mu, floor=floor))
    worst = tuple(max(x, y) for x, y in zip(first.residuals, second.residuals, strict=True))
    return first.forces + second.forces, worst  # type: ignore[return-value]


def _gain(W, before, impulses) -> float:
    """Return the kinetic energy that impulses add."""
    f = impulses.ravel()
    return float(f @ before.ravel() + 0.5 * f @ (W @ f))


def _energy(W, before) -> float:
    """Return the kinetic energy of the motion of the contacts: what a plastic impact of all rows would take."""
    v = before.ravel()
    return 0.5 * float(v @ np.linalg.lstsq(W, v, rcond=1e-12)[0])
