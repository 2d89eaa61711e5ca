"""Runge-Kutta methods as data: their tableaus, error weights and dense outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

Row = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """A method with steps of one length: stages k_s = f(t + c_s h, y + h sum a_sj k_j), then y + h sum b_s k_s.

    Rows of `a` as long as the number of stages make it implicit.
    """

    name: str
    order: int
    a: tuple[Row, ...]
    b: Row
    c: Row

    @property
    def implicit(self) -> bool:
        """Whether stages depend on later ones."""
        return len(self.a[0]) == len(self.b)


@dataclass(frozen=True)
class Pair:
    """An embedded pair with step control and dense output.

    `e` (and `e3`, of an 8(5,3) pair) are the error weights, `q` the order of the error; `a_extra` and `c_extra` stages
    of the dense output alone; `p` the polynomials of the dense output: y + h sum_s k_s p_s(theta), theta^1 first.
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
"""The method of Gauss with two stages: symmetric and symplectic."""


@cache
def dopri5() -> Pair:
    """Return the pair of Dormand and Prince of orders 5 and 4, with Shampine's dense output of order 4."""
    from scipy.integrate import RK45

    return Pair("dopri5", 5, _lower(RK45.A, 6), _row(RK45.B), _row(RK45.C), _row(RK45.E), (), 5, (), (), _rows(RK45.P))


@cache
def dop853() -> Pair:
    """Return the method of order 8 of Dormand and Prince with Hairer's error estimate and dense output of order 7."""
    from scipy.integrate import DOP853

    return Pair(
        "dop853", 8, _lower(DOP853.A, 12), _row(DOP853.B), _row(DOP853.C[:12]), _row(DOP853.E5), _row(DOP853.E3), 8,
        _rows(DOP853.A_EXTRA), _row(DOP853.C_EXTRA), _dense_of_dop853(DOP853),
    )  # fmt: skip


def _dense_of_dop853(method) -> tuple[Row, ...]:
    """Return the polynomials p_s of y + h sum_s k_s p_s(x), x^1 first.

    Hairer writes the interpolant as y + x (F0 + (1-x) (F1 + x (F2 + (1-x) (F3 + ...)))) with F0 the step, F1 and F2
    made of it and of the rates at its ends, and F3 to F6 = D K: all of them sums over the sixteen stages.
    """
    stages = np.eye(16)
    step = np.concatenate([method.B, np.zeros(4)])
    parts = [step, stages[0] - step, 2 * step - (stages[12] + stages[0]), *method.D]
    total = np.zeros((16, 9))
    for k, part in enumerate(reversed(parts)):
        total[:, 0] += part
        raised = np.roll(total, 1, axis=1)
        total = raised if k % 2 == 0 else total - raised
    return _rows(total[:, 1:])


def _row(x) -> Row:
    return tuple(map(float, x))


def _rows(x) -> tuple[Row, ...]:
    return tuple(map(_row, x))


def _lower(x, stages: int) -> tuple[Row, ...]:
    return tuple(_row(x[s, :s]) for s in range(stages))
