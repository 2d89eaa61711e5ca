"""Shape functions of beams on s = x / L, as Legendre series on [0, 1]: polynomials, eigenmodes, and their roots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Series:
    """Functions on [0, 1] as rows of coefficients of Legendre polynomials of 2 s - 1."""

    c: np.ndarray

    @classmethod
    def of(cls, functions: Sequence[Function], degree: int) -> Series:
        """Return the series of functions, by Gauss quadrature."""
        s, weights = gauss(degree + 1)
        values = np.array([f(s) for f in functions]).reshape(len(functions), len(s))
        return cls.through(values, s, weights, degree)

    @classmethod
    def through(cls, values: np.ndarray, s: np.ndarray, weights: np.ndarray, degree: int) -> Series:
        """Return the series of values at Gauss points."""
        basis = legendre.legvander(2 * s - 1, degree)
        return cls((values * weights) @ basis * (2 * np.arange(degree + 1) + 1))

    def at(self, s: object) -> np.ndarray:
        """Return the values [..., count] at s."""
        return legendre.legvander(2 * np.asarray(s, dtype=float) - 1, self.c.shape[-1] - 1) @ self.c.T

    def slope(self, order: int = 1) -> Series:
        """Return the derivatives with respect to s."""
        return Series(legendre.legder(self.c, order, scl=2.0, axis=-1))

    def integral(self) -> Series:
        """Return the integrals from 0 to s."""
        return Series(legendre.legint(self.c, 1, lbnd=-1, scl=0.5, axis=-1))

    def mixed(self, weights: np.ndarray) -> Series:
        """Return other functions: column j of the weights has those of the j-th."""
        return Series(weights.T @ self.c)


def gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and weights of Gauss quadrature on [0, 1]."""
    x, w = legendre.leggauss(count)
    return (x + 1) / 2, w / 2


def polynomials(n: int, clamps: tuple[int, int]) -> list[Function]:
    """Return n polynomials that vanish at the ends to given orders."""

    def made(k: int) -> Function:
        return lambda s: s ** clamps[0] * (1 - s) ** clamps[1] * legendre.legval(2 * s - 1, np.eye(n)[k])

    return [made(k) for k in range(n)]


CLAMPS = {"clamped-free": (2, 0), "clamped-pinned": (2, 1), "clamped-clamped": (2, 2), "pinned-pinned": (1, 1)}
"""The orders to which bending shapes vanish at x = 0 and x = L."""


def bending_roots(n: int, ends: str, ratio: float = 0.0) -> list[float]:
    """Return the first n numbers beta with omega = beta^2 sqrt(EI / (mu L^4)), for a ratio of tip mass to own mass."""
    if ends == "pinned-pinned":
        return [k * math.pi for k in range(1, n + 1)]

    def equation(b: float) -> float:  # divided by cosh b, which is large
        t, h = math.tanh(b), 1 / math.cosh(b)
        if ends == "clamped-free":
            return h + math.cos(b) + b * ratio * (math.cos(b) * t - math.sin(b))
        if ends == "clamped-clamped":
            return math.cos(b) - h
        return math.sin(b) - math.cos(b) * t

    out, step = [], 0.05
    b = 0.3 if ends == "clamped-free" else 3.0
    b = 1e-3 if ratio else b
    while len(out) < n:
        if equation(b) * equation(b + step) <= 0:
            out.append(_root(equation, b, b + step))
        b += step
    return out


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    sign = f(low) > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (f(middle) > 0) == sign else (low, middle)
    return (low + high) / 2


def eigenmode(b: float, ends: str) -> Function:
    """Return a bending mode; e^b is not formed, so that high modes are as accurate as low ones."""
    if ends == "pinned-pinned":
        return lambda s: np.sin(b * s)
    # v = cosh - cos - sigma (sinh - sin), and 1 - sigma is small.
    sine, cosine, decay = math.sin(b), math.cos(b), math.exp(-b)
    if ends == "clamped-free":
        left = (sine - cosine - decay) / (math.sinh(b) + sine)
    else:
        left = (cosine - sine - decay) / (math.sinh(b) - sine)
    sigma = 1 - left
    return lambda s: (left * np.exp(b * s) + (1 + sigma) * np.exp(-b * s)) / 2 - np.cos(b * s) + sigma * np.sin(b * s)


def modes_of(stiffness: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squares of frequencies and modes of unit modal mass."""
    left = np.linalg.inv(np.linalg.cholesky(mass))
    squares, turned = np.linalg.eigh(left @ stiffness @ left.T)
    return squares, left.T @ turned


def largest(shapes: Series) -> np.ndarray:
    """Return the value of each function where it is largest, with its sign."""
    values = shapes.at(np.linspace(0.0, 1.0, 2001))
    return np.take_along_axis(values, np.abs(values).argmax(axis=0)[None, :], axis=0)[0]


def rod_roots(n: int, ratio: float = 0.0) -> list[float]:
    """Return the first n numbers beta of a rod that is fixed at x = 0, with beta tan beta = 1 / ratio."""
    if not ratio:
        return [(k + 0.5) * math.pi for k in range(n)]
    return [_root(lambda b: math.cos(b) - ratio * b * math.sin(b), k * math.pi, (k + 0.5) * math.pi) for k in range(n)]


def sine(b: float) -> Function:
    """Return the mode of a rod with the root b."""
    return lambda s: np.sin(b * s)
