"""Drift of closed contacts removed: gaps, and the velocities that the mode keeps at zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .cone_problem import RANK
from .modes import Mode
from .touching import AWAY, Coefficients

ROUNDS = 3
"""Newton steps on the gaps; each squares the error of the one before."""


def settled(given: Coefficients, mode: Mode, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest state whose closed contacts have no gap, and no velocity where they stick.

    Corrections are the smallest in the kinetic-energy norm. Quaternions get unit length, and loops are closed.
    """
    q = placed(given, mode.closed, q)
    closer = given.functions.closer
    if closer is not None:
        q, qd = closer.close(q, qd, given.parameters)
    if mode.closed:
        qd = _stopped(given, mode, q, qd)
        qd = _stopped(given, mode, q, qd)  # rounding of the first
    return q, qd


def placed(given: Coefficients, closed: Sequence[int], q: np.ndarray) -> np.ndarray:
    """Return the nearest position at which closed contacts have no gap, with unit quaternions.

    Contacts whose surface has ended, also by a step of the correction itself, are not moved back to it.
    """
    functions, more = given.functions, given.more
    rest = np.zeros(functions.problem.mechanism.nv)
    q = functions.integrate(q, rest, *more)
    for _ in range(ROUNDS if closed else 0):
        state = given.at(q, rest)
        near = [i for i in closed if abs(state.gap[i]) <= AWAY * given.scales.length]
        gaps = state.gap[near]
        if np.abs(gaps).max(initial=0.0) <= 1e-15 * given.scales.length:
            break
        _, X, W = state.answers(near)
        f = np.linalg.lstsq(W[::3, ::3], -gaps, rcond=RANK)[0]
        q = functions.integrate(q, X[:, ::3] @ f, *more)
    return q


def _stopped(given: Coefficients, mode: Mode, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    state = given.at(q, qd)
    _, X, W = state.answers(mode.closed)
    rows = [3 * k + j for k, i in enumerate(mode.closed) for j in ((0,) if i in mode.slip else (0, 1, 2))]
    v = state.v[list(mode.closed)].ravel()[rows]
    f = np.linalg.lstsq(W[np.ix_(rows, rows)], -v, rcond=RANK)[0]
    return qd + X[:, rows] @ f
