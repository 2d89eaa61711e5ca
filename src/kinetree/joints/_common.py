"""Helpers shared by several joint kinds: axes, unit twists, and random coordinates inside limits."""

from __future__ import annotations

import math

import numpy as np

from ..algebra.scalars import snap, sqrt, where
from ..algebra.spatial import Twist
from ..algebra.vectors import IDENTITY, ZERO, Matrix, Vector, dot, scale, to_matrix
from ..errors import ModelError

X, Y, Z = IDENTITY
TURN = (Twist(X, ZERO), Twist(Y, ZERO), Twist(Z, ZERO))
SLIDE = (Twist(ZERO, X), Twist(ZERO, Y), Twist(ZERO, Z))


def check_axis(axis: Vector, where: str, label: str = "axis") -> None:
    """Refuse an axis that is not three numbers or has no direction."""
    if len(axis) != 3 or not 1e-9 < math.hypot(*map(float, axis)) < 1e9:
        raise ModelError(
            f"the {label} {tuple(axis)} has no direction",
            where=where,
            remedy="give three numbers of ordinary size, such as (0, 0, 1)",
        )


def unit(v: Vector) -> Vector:
    """Return v divided by its length."""
    return scale(1.0 / sqrt(dot(v, v)), v)


def axes_with_z(axis: Vector) -> Matrix:
    """Return a rotation whose third column is the axis, made a unit vector.

    It is a signed permutation if the axis is one of +-x, +-y, +-z: the first column is x for z and for -z, -z for x,
    x for y. In general the first column for (x, y, z) is (1 + s a x^2, s a x y, -s x) with s the sign of z and
    a = -1/(s + z). It is finite for every axis and smooth except where z changes sign, so that axes may depend on free
    parameters.
    """
    x, y, z = unit(axis)
    s = where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (s + z)
    b = x * y * a
    rows = ((1.0 + s * x * x * a, b, x), (s * b, s + y * y * a, y), (-s * x, -y, z))
    return to_matrix(map(snap, row) for row in rows)


def random_in_limits(joint, rng, spans, size=None) -> tuple:
    """Return uniformly distributed coordinates inside the joint's limits, or inside +- span if a limit is missing."""
    out = []
    for k, span in enumerate(spans):
        lower = joint.limits.lower[k] if joint.limits.lower else -math.inf
        upper = joint.limits.upper[k] if joint.limits.upper else math.inf
        if math.isinf(lower):
            lower = -span if upper > -span else upper - 2 * span
        if math.isinf(upper):
            upper = span if lower < span else lower + 2 * span
        if upper > lower:
            out.append(rng.uniform(lower, upper, size))
        else:
            out.append(float(lower) if size is None else np.full(size, float(lower)))
    return tuple(out)
