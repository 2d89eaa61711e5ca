"""Reactions at all joints of a closed mechanism, in the tree or cut by a loop, for given multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import loops
from ..algebra.definite import Definite
from ..algebra.scalars import Scalar, is_plain_zero, sqrt, where
from ..algebra.spatial import Wrench
from ..algebra.vectors import add, cross, dot, neg, scale, sub, times, transpose
from . import kinematics
from .closure import Row, rows
from .inverse import newton_euler

Scalars = list[Scalar]
Ranks = tuple[tuple[float, ...], ...]
"""Compliances of all entries of the wrenches at joints and loops for each rank, 1 at most."""
DEPENDENT = 1e-10
"""The square of a direction's effect, beside that of its column, below which a rank leaves it open."""


@dataclass(frozen=True)
class SharedLoads:
    """Wrenches at the joints, then at the loops, six entries each, and all multipliers.

    `moved` has, for each entry, the square of its change by loads that the motion leaves open, in units of forces.
    """

    wrenches: Scalars
    multipliers: Scalars
    moved: Scalars


def shared_loads(tree, multipliers: Scalars, idle: tuple[int, ...], ranks: Ranks = ()) -> SharedLoads:
    """Return the reactions under multipliers; those of `idle` equations, which act on no motion, load joints least.

    The wrench of the parent on each child is at the joint's origin in the child's axes, that of a loop on frame b's
    body is at b's origin in b's axes. The sum of squares of all wrenches is least, with moments in units of the
    mechanism's length, as springs of equal compliance would share them. `ranks` are compliances of all entries: each
    rank minimizes the sum with its compliances, as far as those before leave it open.
    """
    newton_euler(tree)
    equations = rows(tree)
    whole = _carried(tree, list(zip(multipliers, equations, strict=True)))
    if not idle:
        return SharedLoads(whole, list(multipliers), [0.0] * len(whole))
    columns = [_column(tree, equations[k], _loop_of(tree, k)) for k in idle]
    length = mean_length(tree)
    square = length * length
    weights = [1.0 / square if n % 6 < 3 else 1.0 for n in range(len(whole))]
    turning = [c.unit == "rad" for c in tree.mechanism.closures]
    if ranks:
        sizes = [length if turning[k] else 1.0 for k in idle]
        unit = [[x * size for x in c] for c, size in zip(columns, sizes, strict=True)]
        change = [x * size for x, size in zip(_ranked(unit, whole, weights, ranks), sizes, strict=True)]
    else:
        change = _least(columns, whole, weights)
    shares = list(multipliers)
    for k, x in zip(idle, change, strict=True):
        shares[k] = shares[k] + x
    units = [square if turning[k] else 1.0 for k in idle]
    moved = [
        weights[n] * sum((u * c[n] * c[n] for u, c in zip(units, columns, strict=True)), start=0.0)
        for n in range(len(whole))
    ]
    return SharedLoads(_added(whole, change, columns), shares, moved)


def _least(columns: list[Scalars], whole: Scalars, weights: Scalars) -> Scalars:
    """Return the multipliers of columns with the least weighted sum of squares of whole and columns."""
    S = _squares(columns, weights)
    return Definite(S, [1e-14] * len(S), [1.0] * len(S)).solve([-_dot(c, whole, weights) for c in columns])


def _ranked(columns: list[Scalars], whole: Scalars, weights: Scalars, ranks: Ranks) -> Scalars:
    """Return the multipliers of columns that are least by each rank in turn.

    Directions that a rank leaves open are combinations of the columns: of one that its equations leave out, with
    those that keep its sum of squares as it is.
    """
    count = len(columns)
    change: Scalars = [0.0] * count
    parts = [[1.0 if k == m else 0.0 for m in range(count)] for k in range(count)]
    for n, compliances in enumerate(ranks):
        scaled = [w * c for w, c in zip(weights, compliances, strict=True)]
        S = _squares(columns, scaled)
        factors = Definite(S, [DEPENDENT] * count, [1.0] * count)
        found = factors.solve([-_dot(c, whole, scaled) for c in columns])
        whole, change = _added(whole, found, columns), _added(change, found, parts)
        if n + 1 < len(ranks):
            ways = [_open_way(factors, S, k) for k in range(count)]
            columns = [_added([0.0] * len(whole), way, columns) for way in ways]
            parts = [_added([0.0] * count, way, parts) for way in ways]
    return change


def _open_way(factors: Definite, S: list[Scalars], k: int) -> Scalars:
    """Return the combination of columns around a column k that was left out; zeros where it takes part."""
    row = [S[max(k, m)][min(k, m)] for m in range(len(S))]
    if all(map(is_plain_zero, row)):
        return [1.0 if m == k else 0.0 for m in range(len(S))]
    way = factors.solve([-x for x in row])
    way[k] = way[k] + 1.0
    return [0.0 if is_plain_zero(x) else where(factors.inverse[k] > 0.0, 0.0, x) for x in way]


def _squares(columns: list[Scalars], weights: Scalars) -> list[Scalars]:
    return [[_dot(columns[k], columns[m], weights) for m in range(k + 1)] for k in range(len(columns))]


def _added(whole: Scalars, change: Scalars, columns: list[Scalars]) -> Scalars:
    out = list(whole)
    for x, column in zip(change, columns, strict=True):
        out = [w + x * c for w, c in zip(out, column, strict=True)]
    return out


def mean_length(tree) -> Scalar:
    """Return the mean distance of joints and loops from their center [m]."""
    kinematics.place(tree)
    places = [i.T.place(neg(i.height)) for i in tree.records]
    places += [loop.b.record.T.place(loop.b.r) for loop in tree.loops]
    center = scale(1.0 / len(places), _sum(places))
    apart = [sub(p, center) for p in places]
    return sqrt(sum((dot(d, d) for d in apart), start=0.0) * (1.0 / len(places)))


def _carried(tree, acting: list[tuple[Any, Row]]) -> Scalars:
    """Return the wrenches at joints and loops of the motion with its multipliers."""
    for i in tree.records:
        i.load = i.w
    tree.ground.load = Wrench()
    for x, row in acting:
        for _, tip, w in row.wrenches:
            tip.load = tip.load - w * x

    @tree.inward
    def carry(i, p):
        i.own = i.in_body(i.load)
        p.load = p.load + i.A.T @ i.load

    out, at = list(tree.bodies("own")), 0
    for loop in tree.loops:
        count = len(loops.labels(loop.loop))
        total = Wrench()
        for x, row in acting[at : at + count]:
            total = total + row.wrenches[1][2] * x
        out += _at_frame(loop, total).entries()
        at += count
    return out


def _column(tree, row: Row, number: int) -> Scalars:
    """Return the wrenches of a unit multiplier of a loop, by its number: only joints between its ends carry any."""
    for i in tree.records:
        i.load = Wrench()
    for chain, _, w in row.wrenches:
        for i in reversed(chain):
            i.load = i.load - w
            w = i.A.T @ w
    out = [x for i in tree.records for x in i.in_body(i.load).entries()]
    for k, loop in enumerate(tree.loops):
        out += _at_frame(loop, row.wrenches[1][2]).entries() if k == number else (0.0,) * 6
    return out


def _loop_of(tree, equation: int) -> int:
    """Return the number of the loop that has an equation; -1 for equations of couplings."""
    end = 0
    for k, loop in enumerate(tree.loops):
        end += len(loops.labels(loop.loop))
        if equation < end:
            return k
    return -1


def _at_frame(loop, w: Wrench) -> Wrench:
    """Return a wrench on the body of frame b, in its working frame, at b's origin in the axes of b's placement."""
    back, turn = transpose(loop.b.R), loops.frame(loop.loop)
    n = times(back, sub(w.n, cross(loop.b.r, w.f)))
    return Wrench(times(turn, n), times(turn, times(back, w.f)))


def _dot(a: Scalars, b: Scalars, weights: Scalars) -> Scalar:
    return sum((w * x * y for w, x, y in zip(weights, a, b, strict=True)), start=0.0)


def _sum(vectors):
    total = vectors[0]
    for v in vectors[1:]:
        total = add(total, v)
    return total
