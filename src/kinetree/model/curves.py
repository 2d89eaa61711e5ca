"""Planar curves of cams and slots, and laws of motion of couplings: plain frozen data, constants all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .._support.checks import plain
from ..errors import ModelError, brief
from .part_fields import as_list

Numbers = tuple[float, ...]
Points = tuple[Numbers, ...]


MOST_POINTS = 1000
"""The largest number of points of a curve: compiled code computes the distances of all of them."""
MOST_HARMONICS = 80
"""The largest number of harmonics of a curve, each of which has some 12 such points."""
MOST_NUMBERS = 2000
"""The largest number of points or coefficients of a law."""
SIZES = (1e-30, 1e30)
"""The sizes of curves [m]: squares and quotients of others would overflow."""
CLOSEST = 1e-12
"""The least distance of neighboring points, as a part of the length of the curve: a spline divides by it."""


@dataclass(frozen=True)
class Curve:
    """A curve in the xy plane of a loop's axes [m]: a cubic spline through points, or a sum of cosines and sines.

    A spline through `points` is closed and periodic, or open with natural ends. Otherwise the curve is the sum over k
    of cosines[k] cos(k s) + sines[k - 1] sin(k s), a list of points (x, y) each, of which cosines[0] is the center. The
    outside of a closed curve is on its right-hand side: give points against the clock.
    """

    points: Points = ()
    closed: bool = True
    cosines: Points = ()
    sines: Points = ()

    def __post_init__(self) -> None:
        """Check that the curve is complete."""
        for name, most in (("points", MOST_POINTS), ("cosines", MOST_HARMONICS + 1), ("sines", MOST_HARMONICS)):
            object.__setattr__(self, name, _points(getattr(self, name), f"curve, {name}", most))
        if bool(self.points) == bool(self.cosines):
            raise ModelError("a curve has points or cosines", remedy="give one of them")
        if not SIZES[0] <= self.size <= SIZES[1]:
            raise ModelError(f"a curve with a size of {self.size:.3g} m", remedy="give its points in meters")
        if self.points:
            if self.sines or len(self.points) < (3 if self.closed else 2):
                least = "3 points or more" if self.closed else "2 points or more, or closed = true with 3"
                raise ModelError(f"a curve of {len(self.points)} points", remedy=f"give {least}, and no sines")
            _refuse_repeated(self.points, closed=self.closed)
        elif not self.closed:
            raise ModelError("a curve of cosines and sines is closed", remedy="leave out closed = false")

    @property
    def size(self) -> float:
        """The largest distance of its points, or of its harmonics, from the origin [m]."""
        return max(math.hypot(*p) for p in (*self.points, *self.cosines, *self.sines))

    @classmethod
    def circle(cls, radius: float, center: tuple[float, float] = (0.0, 0.0)) -> Curve:
        """Return a circle, exactly."""
        return cls.ellipse(radius, radius, center)

    @classmethod
    def ellipse(cls, x: float, y: float, center: tuple[float, float] = (0.0, 0.0)) -> Curve:
        """Return an ellipse with half axes along x and y, exactly."""
        return cls(cosines=(tuple(center), (x, 0.0)), sines=((0.0, y),))


@dataclass(frozen=True)
class Law:
    """A function f(u) of a coupling: a cubic spline through points (u, f), or slope u + a sum of cosines and sines.

    A periodic spline repeats after its last point, with the difference of its last and first value added in each
    period; an open one goes on straight. The sum has cosines[k] cos(k u) + sines[k - 1] sin(k u), and `polynomial` has
    coefficients of 1, u, u^2, ... in its place.
    """

    points: Points = ()
    periodic: bool = False
    slope: float = 0.0
    cosines: Numbers = ()
    sines: Numbers = ()
    polynomial: Numbers = ()

    def __post_init__(self) -> None:
        """Check that the law is complete."""
        object.__setattr__(self, "points", _points(self.points, "law, points", MOST_NUMBERS))
        for name in ("cosines", "sines", "polynomial"):
            where = f"law, {name}"
            given = tuple(_number(x, where) for x in _listed(getattr(self, name), where, MOST_NUMBERS))
            object.__setattr__(self, name, given)
        object.__setattr__(self, "slope", _number(self.slope, "law, slope"))
        forms = [bool(self.points), bool(self.polynomial), bool(self.slope or self.cosines or self.sines)]
        if sum(forms) != 1:
            raise ModelError(
                "a law has points, a polynomial, or a slope with cosines and sines", remedy="give one of the three"
            )
        u = [p[0] for p in self.points]
        few = len(u) < (3 if self.periodic else 2)
        if self.points and (few or any(b - a <= CLOSEST * (u[-1] - u[0]) for a, b in pairwise(u))):
            raise ModelError(
                "the points of a law do not increase, or are too few",
                where="law, points",
                remedy="give two or more (u, f) with increasing u, three or more for a periodic law",
            )


def _listed(given: object, where: str, most: int) -> Sequence[Any]:
    out = as_list(given, where)
    if len(out) > most:
        raise ModelError(
            f"{len(out)} entries of {where.split(', ')[-1]}", where=where, remedy=f"give no more than {most}"
        )
    return out


def _points(given: object, where: str, most: int) -> Points:
    out = []
    for item in _listed(given, where, most):
        pair = as_list(item, where)
        if len(pair) != 2:
            raise ModelError(f"{len(pair)} numbers in a point", where=where, remedy="give two")
        out.append(tuple(_number(x, where) for x in pair))
    return tuple(out)


def _number(x: object, where: str) -> float:
    value = plain(x)
    if value is None or not math.isfinite(value):
        raise ModelError(f"{brief(x)} is not a finite number", where=where, remedy="give numbers, not formulas")
    if abs(value) > SIZES[1]:
        raise ModelError(f"{value:.3g} is too large", where=where, remedy=f"give numbers up to {SIZES[1]:g}")
    return value


def _refuse_repeated(points: Points, *, closed: bool) -> None:
    around = [*points, points[0]] if closed else list(points)
    chords = [math.dist(a, b) for a, b in pairwise(around)]
    least = CLOSEST * sum(chords)
    for k, chord in enumerate(chords):
        if chord <= least:
            same = around[k] == around[k + 1]
            raise ModelError(
                f"points {k} and {(k + 1) % len(points)} of a curve are "
                + (f"both {around[k]}" if same else f"only {chord:.3g} m apart"),
                where="curve, points",
                remedy="remove one of them; a closed curve returns to its first point by itself",
            )
