"""Planar curves on scalars of any kind: the pieces near some points of a curve, and the choice among them.

A piece is a curve as a function of a parameter u that is zero at one of the points. The start of Newton's method is the
best of the points, by comparisons; the method itself stays within one point's distance of it. All curves are those of
the data `Curve` of a model: splines through points, or sums of sines and cosines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from ..algebra.scalars import Scalar, cos, is_number, sin, where
from .laws import knots_of

Pair = tuple[Scalar, Scalar]

ROUNDS = 7
"""Steps of Newton's method: from a tenth of a radian of arc, five are enough for rounding."""
SAMPLES = 12
"""Points per period of the highest harmonic at which Newton's method may start."""
LISTED = 32
"""The number of pieces from which the best one is found by its number."""


@dataclass(frozen=True)
class Place:
    """A point of a curve with its first and second derivative by the parameter."""

    c: Pair
    d: Pair
    dd: Pair


@dataclass(frozen=True)
class Piece:
    """A curve near one of its points: `numbers` determine it, `at(numbers, u)` evaluates it, within its bounds."""

    at: Callable[[Sequence[Scalar], Scalar], Place]
    numbers: tuple[Scalar, ...]
    below: Scalar
    above: Scalar

    def place(self, u: Scalar) -> Place:
        """Return the point at a parameter."""
        return self.at(self.numbers, u)

    @cached_property
    def start(self) -> Pair:
        """The point at the parameter zero."""
        return self.place(0.0).c

    def bounded(self, u: Scalar) -> Scalar:
        """Return the nearest parameter within the bounds."""
        u = where(u < self.below, self.below, u)
        return where(self.above < u, self.above, u)


@lru_cache(maxsize=256)
def pieces(curve: Any) -> tuple[Piece, ...]:
    """Return the pieces of a curve, each about one of its points."""
    return _of_points(curve) if curve.points else _of_harmonics(curve)


def chosen(piece: Sequence[Piece], score: Callable[[Piece], Scalar]) -> Piece:
    """Return the piece with the smallest score."""
    return best([(p,) for p in piece], score)[0]


def best(candidates: Sequence[tuple[Piece, ...]], score: Callable[..., Scalar]) -> tuple[Piece, ...]:
    """Return the first candidate with the smallest score, by a tournament: of the pieces, or of their numbers in lists.

    With numbers, a target can keep the lists in memory, so that its code grows by three operations per candidate.
    """
    if len(candidates) < LISTED:
        return _winner(candidates, lambda k: score(*candidates[k]), _either)
    listed = [list({id(p[j]): p[j] for p in candidates}.values()) for j in range(len(candidates[0]))]
    places = [{id(p): float(k) for k, p in enumerate(pieces_)} for pieces_ in listed]
    numbers = [tuple(at[id(x)] for at, x in zip(places, p, strict=True)) for p in candidates]
    found = _winner(numbers, lambda k: score(*candidates[k]), _select)
    return tuple(_numbered(p, k) for p, k in zip(listed, found, strict=True))


def _winner(
    candidates: Sequence[tuple], score: Callable[[int], Scalar], either: Callable[..., object]
) -> tuple[Any, ...]:
    """Return the first of the tuples with the smallest score, entry by entry.

    A score is computed shortly before it is compared: with all of them first, a thousand values would wait in memory.
    """

    def among(low: int, high: int) -> tuple[Scalar, tuple[Any, ...]]:
        if high - low == 1:
            return score(low), candidates[low]
        middle = (low + high) // 2
        (a, x), (b, y) = among(low, middle), among(middle, high)
        less = b < a
        return where(less, b, a), tuple(either(less, q, p) for p, q in zip(x, y, strict=True))

    if is_number(score(0)):  # of plain numbers: no code is written
        return candidates[min(range(len(candidates)), key=score)]
    return among(0, len(candidates))[1]


def _numbered(listed: Sequence[Piece], k: Scalar) -> Piece:
    """Return the piece with a number in a list, by halving."""
    if is_number(k):
        return listed[int(k)]
    columns = [*zip(*((*p.numbers, p.below, p.above) for p in listed), strict=True)]

    def among(low: int, high: int) -> list[Scalar]:
        if high - low == 1:
            return [x[low] for x in columns]
        middle = (low + high) // 2
        condition = k < middle - 0.5
        pairs = zip(among(low, middle), among(middle, high), columns, strict=True)
        return [x[0] if same else where(condition, a, b) for (a, b, x), same in zip(pairs, constant, strict=True)]

    constant = [len(set(x)) == 1 for x in columns]
    *numbers, below, above = among(0, len(listed))
    return Piece(listed[0].at, tuple(numbers), below, above)


def _either(condition: Scalar, yes: Piece, no: Piece) -> Piece:
    numbers = tuple(_select(condition, y, n) for y, n in zip(yes.numbers, no.numbers, strict=True))
    return Piece(no.at, numbers, *(_select(condition, y, n) for y, n in ((yes.below, no.below), (yes.above, no.above))))


def _select(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    if yes is no or (is_number(yes) and is_number(no) and yes == no):
        return no
    return where(condition, yes, no)


def _of_points(curve: Any) -> tuple[Piece, ...]:
    """Return a spline through points, by the lengths of the chords between them."""
    points = [*curve.points, curve.points[0]] if curve.closed else list(curve.points)
    s = [0.0]
    for (x, y), (x2, y2) in pairwise(points):
        s.append(s[-1] + math.hypot(x2 - x, y2 - y))
    out = []
    for k in knots_of(s, points, closed=curve.closed):
        out.append(Piece(_cubic, (*k.value, *k.slope, *k.bend, *k.left, *k.right), k.below, k.above))
    return tuple(out)


def _cubic(numbers: Sequence[Scalar], u: Scalar) -> Place:
    left, out = u < 0.0, []
    for k in range(2):
        c0, c1, c2 = numbers[k], numbers[k + 2], numbers[k + 4]
        c3 = _select(left, numbers[k + 6], numbers[k + 8])
        out.append((((c3 * u + c2) * u + c1) * u + c0, (3.0 * c3 * u + 2.0 * c2) * u + c1, 6.0 * c3 * u + 2.0 * c2))
    x, d, dd = ((out[0][n], out[1][n]) for n in range(3))
    return Place(x, d, dd)


def _of_harmonics(curve: Any) -> tuple[Piece, ...]:
    """Return a sum of sines and cosines; its pieces differ in the angle at which they begin."""
    order = max(len(curve.cosines) - 1, len(curve.sines), 1)
    count = SAMPLES * order
    step = 2.0 * math.pi / count

    def at(numbers: Sequence[Scalar], u: Scalar) -> Place:
        c, s = _sum_of_angles((numbers[0], numbers[1]), (cos(u), sin(u)))
        x, d, dd = list(curve.cosines[0]), [0.0, 0.0], [0.0, 0.0]
        ck, sk = c, s
        for k in range(1, order + 1):
            for i in range(2):
                a = curve.cosines[k][i] if k < len(curve.cosines) else 0.0
                b = curve.sines[k - 1][i] if k <= len(curve.sines) else 0.0
                x[i] = x[i] + (a * ck + b * sk)
                d[i] = d[i] + k * (b * ck - a * sk)
                dd[i] = dd[i] - k * k * (a * ck + b * sk)
            ck, sk = _sum_of_angles((ck, sk), (c, s))
        return Place((x[0], x[1]), (d[0], d[1]), (dd[0], dd[1]))

    angles = [step * k for k in range(count)]
    return tuple(Piece(at, (math.cos(a), math.sin(a)), -1.5 * step, 1.5 * step) for a in angles)


def _sum_of_angles(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[1] * b[0] + a[0] * b[1]
