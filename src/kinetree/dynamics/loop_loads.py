"""Reactions at all joints of a closed mechanism, in the tree or cut by a loop, for given multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import loops
from ..algebra.definite import Definite
from ..algebra.scalars import Scalar, sqrt
from ..algebra.spatial import Wrench
from ..algebra.vectors import add, cross, dot, neg, scale, sub, times, transpose
from . import kinematics
from .closure import Row, rows
from .inverse import newton_euler

Scalars = list[Any]


@dataclass(frozen=True)
class SharedLoads:
    """Wrenches at the joints, then at the loops, six entries each, and all multipliers.

    `moved` has, for each entry, the square of its change by loads that the motion leaves open, in units of forces.
    """

    wrenches: Scalars
    multipliers: Scalars
    moved: Scalars


def shared_loads(tree, multipliers: Scalars, idle: tuple[int, ...]) -> SharedLoads:
    """Return the reactions under multipliers; those of `idle` equations, which act on no motion, load joints least.

    The wrench of the parent on each child is at the joint's origin in the child's axes, that of a loop on frame b's
    body is at b's origin in b's axes. The sum of squares of all wrenches is least, with moments in parts of the
    mechanism's length, as springs of equal compliance would share them.
    """
    newton_euler(tree)
    equations = rows(tree)
    placed = list(zip(multipliers, equations, strict=True))
    whole = _carried(tree, placed, motion=True)
    if not idle:
        return SharedLoads(whole, list(multipliers), [0.0] * len(whole))
    columns = [_carried(tree, [(1.0 if k == m else 0.0, row) for m, row in enumerate(equations)]) for k in idle]
    length = mean_length(tree)
    square = length * length
    weights = [1.0 / square if n % 6 < 3 else 1.0 for n in range(len(whole))]
    S = [[_dot(columns[k], columns[m], weights) for m in range(k + 1)] for k in range(len(idle))]
    sizes = [1.0] * len(idle)
    change = Definite(S, [1e-14] * len(idle), sizes).solve([-_dot(c, whole, weights) for c in columns])
    shares = list(multipliers)
    for k, x in zip(idle, change, strict=True):
        shares[k] = shares[k] + x
    turning = [c.unit == "rad" for c in tree.mechanism.closures]
    units = [square if turning[k] else 1.0 for k in idle]
    moved = [
        weights[n] * sum((u * c[n] * c[n] for u, c in zip(units, columns, strict=True)), start=0.0)
        for n in range(len(whole))
    ]
    for x, column in zip(change, columns, strict=True):
        whole = [w + x * c for w, c in zip(whole, column, strict=True)]
    return SharedLoads(whole, shares, moved)


def mean_length(tree) -> Scalar:
    """Return the mean distance of joints and loops from their center [m]."""
    kinematics.place(tree)
    places = [i.T.place(neg(i.height)) for i in tree.records]
    places += [loop.b.record.T.place(loop.b.r) for loop in tree.loops]
    center = scale(1.0 / len(places), _sum(places))
    apart = [sub(p, center) for p in places]
    return sqrt(sum((dot(d, d) for d in apart), start=0.0) * (1.0 / len(places)))


def _carried(tree, acting: list[tuple[Any, Row]], *, motion: bool = False) -> Scalars:
    """Return the wrenches at joints and loops caused by multipliers, with those of the motion or alone."""
    for i in tree.records:
        i.load = i.w if motion else Wrench()
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
