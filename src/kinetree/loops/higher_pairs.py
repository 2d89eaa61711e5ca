"""Higher pairs: a point, a roller, a flat face or another curve of b touches a curve in the xy plane of a.

The parameter of the contact is eliminated: it is the solution of an equation of its own, found by Newton's method
within the code. At the solution its changes do not change the residual, so that the direction of the equation is the
common normal at the contact, and only the rate of that direction depends on the rate of the parameter.
(docs/theory/higher-pairs.md)
"""

from __future__ import annotations

from typing import Any

from ..algebra.scalars import Scalar, sqrt, where
from ..algebra.vectors import ZERO, Vector, add, cross, times, transpose
from ..joints._common import axes_with_z, unit
from .blocks import Equation
from .curves import ROUNDS, Pair, Place, best, chosen, pieces

FLOOR = 0.1
"""The least slope of the foot point's equation, relative to the squared speed of the curve, with which Newton's method
divides: beyond the center of curvature, it would leave the foot point."""


def point(loop, r, R, w, v) -> list[Equation]:
    """Keep the origin of b on a curve."""
    return [beside(loop, r, v, 0.0)[0]]


def roller(loop, r, R, w, v) -> list[Equation]:
    """Keep a roller about the origin of b in contact with a curve, on its right-hand side."""
    return [beside(loop, r, v, loop.radius)[0]]


def rolling(loop, r, R, w, v) -> list[Equation]:
    """Let a roller that is fixed to b roll on a curve: its point at the contact is at rest relative to the curve.

    That point is at p = -radius n from the origin of b. Along the tangent t, which is n turned by a right angle, the
    direction of the equation is [p x t; t], and p x t = -radius z does not change.
    """
    touching, normal, turning = beside(loop, r, v, loop.radius)
    t, dt = (-normal[1], normal[0], 0.0), (-turning[1], turning[0], 0.0)
    n = (0.0, 0.0, -loop.radius)
    return [touching, Equation("rolling", "m", 0.0, n, t, ZERO, dt, holonomic=False)]


def beside(pair: Any, r, v, radius: Scalar) -> tuple[Equation, Pair, Pair]:
    """Keep the origin of b at a distance from a pair's curve, on its right-hand side: outside of a left-handed one.

    Returns the equation, the normal at the contact, and its rate.

    At the foot point s, (r - c) . c' = 0, the distance is (r - c) . n with the normal n.
    """
    at = (r[0], r[1])
    around = pieces(pair.curve)
    piece = chosen(around, lambda p: _square(_sub(at, p.start)))
    u: Scalar = 0.0
    for _ in range(ROUNDS):
        p = piece.place(u)
        away, speed = _sub(at, p.c), _square(p.d)
        slope = _dot(away, p.dd) - speed
        slope = where(slope < -FLOOR * speed, slope, -speed)
        u = piece.bounded(u - _dot(away, p.d) / slope)
    p = piece.place(u)
    away = _sub(at, p.c)
    normal, turning = _normal(p)
    rate = _dot((v[0], v[1]), p.d) / (_square(p.d) - _dot(away, p.dd))
    gap = _dot(away, normal)
    changing = _times(rate, turning)
    return Equation("distance", "m", gap - radius, f=_flat(normal), df=_flat(changing)), normal, changing


def face(loop, r, R, w, v) -> list[Equation]:
    """Keep a flat face of b, through its origin and perpendicular to its second axis, in contact with a curve.

    The axis points away from the curve. The contact is the farthest point of the curve along the axis m: m . c' = 0.
    """
    m = times(R, times(transpose(axes_with_z(loop.axis)), unit(loop.axis2)))
    dm = cross(w, m)
    along: Pair = (m[0], m[1])
    around = pieces(loop.curve)
    piece = chosen(around, lambda p: -_dot(along, p.start))
    u: Scalar = 0.0
    for _ in range(ROUNDS):
        p = piece.place(u)
        bend = _dot(along, p.dd)
        u = piece.bounded(u - where(bend < 0.0, _dot(along, p.d) / where(bend < 0.0, bend, -1.0), 0.0))
    p = piece.place(u)
    rate = -_dot((dm[0], dm[1]), p.d) / _dot(along, p.dd)
    d: Vector = (r[0] - p.c[0], r[1] - p.c[1], 0.0)
    dd: Vector = (v[0] - rate * p.d[0], v[1] - rate * p.d[1], 0.0)
    n, dn = cross(m, d), add(cross(dm, d), cross(m, dd))
    return [Equation("distance", "m", _dot(along, (d[0], d[1])), n, _flat(along), dn, _flat((dm[0], dm[1])))]


def curves(loop, r, R, w, v) -> list[Equation]:
    """Keep a curve of b in contact with a curve of a, each outside the other: both are left-handed.

    The nearest points have parallel tangents and lie on the common normal.
    """
    of_a, of_b = pieces(loop.curve), pieces(loop.curve_b)
    spots = {id(q): _placed(r, R, q.place(0.0)).c for q in of_b}
    a, b = best([(p, q) for p in of_a for q in of_b], lambda p, q: _square(_sub(spots[id(q)], p.start)))
    x: Pair = (0.0, 0.0)
    for _ in range(ROUNDS):
        step = _solved(*_conditions(a.place(x[0]), _placed(r, R, b.place(x[1]))))
        x = a.bounded(x[0] - step[0]), b.bounded(x[1] - step[1])
    p, local = a.place(x[0]), b.place(x[1])
    q = _placed(r, R, local)
    (normal, turning), matrix = _normal(p), _conditions(p, q)[1]
    arm = times(R, (*local.c, 0.0))
    speed = add(v, cross(w, arm))
    swing = cross(w, (*q.d, 0.0))
    moved = (_cross(p.d, (swing[0], swing[1])), _dot((speed[0], speed[1]), p.d))
    ds, de = _solved((-moved[0], -moved[1]), matrix)
    darm = add(cross(w, arm), times(R, (de * local.d[0], de * local.d[1], 0.0)))
    f, df = _flat(normal), _flat(_times(ds, turning))
    n, dn = cross(arm, f), add(cross(darm, f), cross(arm, df))
    return [Equation("distance", "m", _dot(_sub(q.c, p.c), normal), n, f, dn, df)]


def _placed(r, R, p: Place) -> Place:
    """Return a point of b's curve in the axes of a."""
    moved = [times(R, (*x, 0.0)) for x in (p.c, p.d, p.dd)]
    c = add(r, moved[0])
    return Place((c[0], c[1]), (moved[1][0], moved[1][1]), (moved[2][0], moved[2][1]))


def _conditions(p: Place, q: Place) -> tuple[Pair, tuple[Pair, Pair]]:
    """Return c_a' x c_b' and (c_b - c_a) . c_a' of two points, and their derivatives by the two parameters."""
    away = _sub(q.c, p.c)
    values = (_cross(p.d, q.d), _dot(away, p.d))
    return values, ((_cross(p.dd, q.d), _cross(p.d, q.dd)), (_dot(away, p.dd) - _square(p.d), _dot(q.d, p.d)))


def _solved(b: Pair, A: tuple[Pair, Pair]) -> Pair:
    """Return the solution of two linear equations A x = b; about 0 where they are singular."""
    size = _cross(A[0], A[1])
    share = 1.0 / where(0.0 < size * size, size, 1e300)
    return _cross(b, (A[0][1], A[1][1])) * share, _cross((A[0][0], A[1][0]), b) * share


def _normal(p: Place) -> tuple[Pair, Pair]:
    """Return the normal on the right-hand side of a curve, and its derivative by the parameter."""
    square = _square(p.d)
    speed = sqrt(square)
    normal = (p.d[1] / speed, -p.d[0] / speed)
    return normal, _times(_cross(p.d, p.dd) / (square * speed), p.d)


def _flat(a: Pair) -> Vector:
    return (a[0], a[1], 0.0)


def _sub(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _times(k: Scalar, a: Pair) -> Pair:
    return k * a[0], k * a[1]


def _dot(a: Pair, b: Pair) -> Scalar:
    return a[0] * b[0] + a[1] * b[1]


def _cross(a: Pair, b: Pair) -> Scalar:
    return a[0] * b[1] - a[1] * b[0]


def _square(a: Pair) -> Scalar:
    return a[0] * a[0] + a[1] * a[1]
