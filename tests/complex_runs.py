"""Runs of fixed steps on complex numbers: an independent route to their derivatives, exact to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from interpreted import STEP
from kinetree.compiler.ir.operations import apply
from kinetree.compiler.ir.program import Program
from kinetree.simulation.tableaus import RK4

ROUNDS = 10
"""The most steps of Newton's method on the loops of a state."""


def derivatives_of_rk4(
    rates: Program,
    start: np.ndarray,
    columns: np.ndarray,
    steps: int,
    h: float,
    *,
    more: Sequence[np.ndarray] = (),
    closing: Program | None = None,
    quaternions: Sequence[int] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state [n] after steps of rk4 and its derivatives [n, columns], which are `columns` at the start.

    `more` are further inputs of the rates with the columns as imaginary parts, [size, columns].
    """
    y = start[:, None] + 1j * STEP * columns
    for k in range(steps):
        y = _unit(_rk4(rates, y, k * h, h, more), quaternions)
        if closing is not None:
            y = _closed(closing, y, (k + 1) * h, more)
    return np.real(y[:, 0]), np.imag(y) / STEP


def _rk4(rates: Program, y: np.ndarray, t: float, h: float, more: Sequence[np.ndarray]) -> np.ndarray:
    stages: list[np.ndarray] = []
    for weights, c in zip(RK4.a, RK4.c, strict=True):
        at = y + h * sum(a * k for a, k in zip(weights, stages, strict=True))
        stages.append(np.concatenate(_outputs(rates, at, t + c * h, more)))
    return y + h * sum(b * k for b, k in zip(RK4.b, stages, strict=True))


def _outputs(program: Program, y: np.ndarray, t: float, more: Sequence[np.ndarray]) -> list[np.ndarray]:
    nq = program.inputs[1].size
    found = program.replay([[t], list(y[:nq]), list(y[nq:]), *map(list, more)], apply)
    return [np.array([np.broadcast_to(x, y.shape[1:]) for x in entries]) for entries in found]


def _unit(y: np.ndarray, quaternions: Sequence[int]) -> np.ndarray:
    for place in quaternions:
        part = y[place : place + 4]
        y[place : place + 4] = part / np.sqrt((part * part).sum(axis=0))
    return y


def _closed(closing: Program, y: np.ndarray, t: float, more: Sequence[np.ndarray]) -> np.ndarray:
    """Return a state with its loops closed; its derivatives are projected once more when they are."""
    nq = closing.inputs[1].size
    for _ in range(ROUNDS):
        moved, _, gap = _outputs(closing, y, t, more)
        if np.real(gap).max() <= 1.0:
            y[:nq] = np.real(y[:nq]) + 1j * np.imag(moved)
            break
        y[:nq] = moved
    return np.concatenate([y[:nq], _outputs(closing, y, t, more)[1]])
