"""Height fields: heights over a uniform grid in x and y, joined by cubic splines with continuous curvature.

A spline is a sum of basis functions b(x/dx - i) b(y/dy - j), each of which covers four intervals. Its coefficients are
those of the interpolating natural spline, so that the surface passes through the given heights. Beyond the grid the
surface continues level, at the heights of its border.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.scalars import sqrt, where
from .meeting import Ball, Meeting

Rows = tuple[tuple[float, ...], ...]


def on_heights(surface: Any, ball: Ball) -> Meeting:
    """Return where a point meets a height field: the gap is (z - h) n_z, which is zero on the surface alone."""
    (x, y, z), (vx, vy, _) = ball.c, ball.v
    dx, dy = surface.spacing
    C = coefficients(surface.heights)
    bx, by = (_basis(u, count) for u, count in ((x / dx, len(C)), (y / dy, len(C[0]))))
    h = _sum(C, bx[0], by[0])
    hx, hy = _sum(C, bx[1], by[0]) / dx, _sum(C, bx[0], by[1]) / dy
    hxx, hxy, hyy = (
        _sum(C, bx[2], by[0]) / (dx * dx),
        _sum(C, bx[1], by[1]) / (dx * dy),
        _sum(C, bx[0], by[2]) / (dy * dy),
    )
    dhx, dhy = hxx * vx + hxy * vy, hxy * vx + hyy * vy
    nz = 1.0 / sqrt(1.0 + hx * hx + hy * hy)
    dnz = -(nz * nz * nz) * (hx * dhx + hy * dhy)
    n = (-(hx * nz), -(hy * nz), nz)
    dn = (-(dhx * nz + hx * dnz), -(dhy * nz + hy * dnz), dnz)
    return Meeting((z - h) * nz, n, dn)


@lru_cache(maxsize=64)
def coefficients(heights: Rows) -> Rows:
    """Return the coefficients of the spline through heights [nx, ny], with one more row and column on each side."""
    C = np.asarray(heights, dtype=float)
    for axis in (0, 1):
        count = C.shape[axis]
        A = np.zeros((count + 2, count + 2))
        rows = np.arange(1, count + 1)
        A[rows, rows - 1], A[rows, rows], A[rows, rows + 1] = 1 / 6, 4 / 6, 1 / 6
        A[0, :3] = A[-1, -3:] = 1.0, -2.0, 1.0  # no curvature at the border
        right = np.zeros((count + 2, C.shape[1 - axis]))
        right[1:-1] = C if axis == 0 else C.T
        C = np.linalg.solve(A, right)
        C = C if axis == 0 else C.T
    return tuple(map(tuple, C.tolist()))


def _basis(u: Any, count: int) -> tuple[list, list, list]:
    """Return value, slope and curvature of the basis functions, the first of which is centered at u = -1."""
    last = float(count - 3)
    inside = where(u < 0.0, 0.0, where(u > last, 0.0, 1.0))
    u = where(u < 0.0, 0.0, where(u > last, last, u))
    out: tuple[list, list, list] = ([], [], [])
    for i in range(count):
        d = u - (i - 1.0)
        sign, size = where(d < 0.0, -1.0, 1.0), where(d < 0.0, -d, d)
        a, b = (where(size < reach, reach - size, 0.0) for reach in (2.0, 1.0))
        out[0].append((a * a * a - 4.0 * (b * b * b)) / 6.0)
        out[1].append(inside * sign * (4.0 * (b * b) - a * a) / 2.0)
        out[2].append(inside * (a - 4.0 * b))
    return out


def _sum(C: Rows, bx: list, by: list) -> Any:
    total = 0.0
    for row, x in zip(C, bx, strict=True):
        inner = 0.0
        for c, y in zip(row, by, strict=True):
            inner = inner + c * y
        total = total + x * inner
    return total
