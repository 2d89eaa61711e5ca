"""Runge-Kutta methods as data: their tableaus, error weights and dense outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from .dormand_prince import DOP853, DOPRI5

Row = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """A method with fixed steps: stages k_s = f(t + c_s h, y + h sum a_sj k_j), then y + h sum b_s k_s.

    The method is implicit if the rows of `a` have one entry per stage.
    """

    name: str
    order: int
    a: tuple[Row, ...]
    b: Row
    c: Row

    @property
    def implicit(self) -> bool:
        """Whether stages depend on themselves or on later ones."""
        return len(self.a[0]) == len(self.b)

    @property
    def chain(self) -> Row:
        """The weights of stages each of which follows from the one before it alone; empty for other methods."""
        if self.implicit or not all(self.b) or any(any(row[:-1]) for row in self.a):
            return ()
        return tuple(row[-1] for row in self.a[1:])


@dataclass(frozen=True)
class Pair:
    """An embedded pair with step control and dense output.

    `e` (and `e3` for an 8(5,3) pair) are the error weights, and `q` is the order of the error. `a_extra` and `c_extra`
    are stages for the dense output only. `p` are the polynomials of the dense output y + h sum_s k_s p_s(theta), with
    the coefficient of theta^1 first.
    """

    name: str
    order: int
    a: tuple[Row, ...]
    b: Row
    c: Row
    e: Row
    e3: Row
    q: int
    a_extra: tuple[Row, ...]
    c_extra: Row
    p: tuple[Row, ...]


RK4 = Tableau("rk4", 4, ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6), (0.0, 0.5, 0.5, 1.0))

MIDPOINT = Tableau("midpoint", 2, ((0.5,),), (1.0,), (0.5,))
"""The implicit midpoint rule: symmetric and symplectic."""

_S = math.sqrt(3.0) / 6.0
GAUSS = Tableau("gauss", 4, ((0.25, 0.25 - _S), (0.25 + _S, 0.25)), (0.5, 0.5), (0.5 - _S, 0.5 + _S))
"""The Gauss method with two stages: symmetric and symplectic."""


@cache
def dopri5() -> Pair:
    """Return the Dormand-Prince pair of orders 5 and 4, with Shampine's dense output of order 4."""
    m = DOPRI5
    return Pair("dopri5", 5, m.A, m.B, m.C, m.E, (), 5, (), (), m.P)


@cache
def dop853() -> Pair:
    """Return the Dormand-Prince method of order 8 with Hairer's error estimate and dense output of order 7."""
    m = DOP853
    return Pair("dop853", 8, m.A, m.B, m.C, m.E5, m.E3, 8, m.A_EXTRA, m.C_EXTRA, _dense_of_dop853())


def _dense_of_dop853() -> tuple[Row, ...]:
    """Return the polynomials p_s of y + h sum_s k_s p_s(x), with the coefficient of x^1 first.

    Hairer writes the interpolant as y + x (F0 + (1-x) (F1 + x (F2 + (1-x) (F3 + ...)))). F0 is the step, F1 and F2
    depend on it and on the rates at its ends, and F3 to F6 = D K. All of them are sums over the sixteen stages.
    """
    stages = np.eye(16)
    step = np.concatenate([DOP853.B, np.zeros(4)])
    parts = [step, stages[0] - step, 2 * step - (stages[12] + stages[0]), *DOP853.D]
    total = np.zeros((16, 9))
    for k, part in enumerate(reversed(parts)):
        total[:, 0] += part
        raised = np.roll(total, 1, axis=1)
        total = raised if k % 2 == 0 else total - raised
    return tuple(tuple(row) for row in total[:, 1:].tolist())
