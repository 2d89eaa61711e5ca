"""Axes of a contact: its normal and two tangents, with their rates."""

from __future__ import annotations

from ..algebra.scalars import sqrt
from ..algebra.vectors import Matrix, Vector, add, cross, dot, scale, sub

Y = (0.0, 1.0, 0.0)


def axes_of(n: Vector, dn: Vector) -> tuple[Matrix, Matrix]:
    """Return (n, t1, t2) and their rates; t1 lies in the xz plane of the surface, and t2 = n x t1.

    Normals along y, at which t1 would have no direction, do not occur: surfaces are graphs over their xy plane, or
    walls perpendicular to x.
    """
    t, dt = cross(Y, n), cross(Y, dn)
    size = sqrt(dot(t, t))
    t1 = scale(1.0 / size, t)
    dt1 = scale(1.0 / size, sub(dt, scale(dot(t1, dt), t1)))
    t2, dt2 = cross(n, t1), add(cross(dn, t1), cross(n, dt1))
    return (n, t1, t2), (dn, dt1, dt2)
