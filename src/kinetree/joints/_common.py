"""What several joint kinds share: axes, unit twists, and the limits of random states."""

from __future__ import annotations

import math

from ..algebra.scalars import is_number, snap, sqrt
from ..algebra.spatial import Twist
from ..algebra.vectors import IDENTITY, ZERO, Matrix, Vector, cross, dot, scale, sub, transpose
from ..errors import ModelError

X, Y, Z = IDENTITY
TURN = (Twist(X, ZERO), Twist(Y, ZERO), Twist(Z, ZERO))
SLIDE = (Twist(ZERO, X), Twist(ZERO, Y), Twist(ZERO, Z))


def check_axis(axis: Vector, where: str, label: str = "axis") -> None:
    """Refuse an axis without direction."""
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
    """Return a rotation whose third column is the axis; a signed permutation where the axis is one of x, y, z.

    The first column is y for x, z for y, x for z (and for -z); else it is the part of the coordinate axis least
    along the axis that is across it.
    """
    if all(is_number(x) for x in axis):
        axis = tuple(snap(x) for x in unit(axis))  # type: ignore[assignment]
        for k, e in enumerate(IDENTITY):
            if axis == e:
                return transpose((IDENTITY[(k + 1) % 3], IDENTITY[(k + 2) % 3], e))
            if axis == tuple(-x for x in e):
                first, second = IDENTITY[(k + 1) % 3], IDENTITY[(k + 2) % 3]
                return transpose((first, tuple(-x for x in second), axis))  # type: ignore[arg-type]
        least = min(range(3), key=lambda k: abs(axis[k]))
    else:
        axis, least = unit(axis), 0  # a free parameter: any value must do, but one along x
    across = IDENTITY[least]
    first = unit(sub(across, scale(dot(across, axis), axis)))
    return transpose((first, cross(axis, first), axis))


def random_in_limits(joint, rng, spans) -> tuple[float, ...]:
    """Return uniform coordinates inside the joint's limits, or inside +- span where a limit is missing."""
    out = []
    for k, span in enumerate(spans):
        lower = joint.limits.lower[k] if joint.limits.lower else -span
        upper = joint.limits.upper[k] if joint.limits.upper else span
        lower = max(lower, -span) if math.isinf(lower) else lower
        upper = min(upper, span) if math.isinf(upper) else upper
        out.append(float(rng.uniform(lower, upper)) if upper > lower else float(lower))
    return tuple(out)
