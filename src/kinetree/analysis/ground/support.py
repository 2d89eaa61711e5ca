"""Support polygons: convex hulls of points in a plane, and the distance of a point from their border."""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers


def convex_hull(points: Numbers) -> Numbers:
    """Return the corners of the convex hull of points [n, 2], counterclockwise; points on an edge are left out."""
    order = sorted({(float(x), float(y)) for x, y in points})
    if len(order) <= 2:
        return np.array(order).reshape(-1, 2)

    def chain(given: list[tuple[float, float]]) -> list[tuple[float, float]]:
        out: list[tuple[float, float]] = []
        for p in given:
            while len(out) > 1 and _turn(out[-2], out[-1], p) <= 0.0:
                out.pop()
            out.append(p)
        return out[:-1]

    return np.array(chain(order) + chain(order[::-1]))


def margin(corners: Numbers, point: Numbers) -> float:
    """Return the distance of a point [2] from the border of a convex polygon, negative outside of it.

    A polygon of one corner, or of two, has no inside. NaN without corners.
    """
    if not len(corners) or not np.isfinite(point).all():
        return float("nan")
    ends = np.roll(corners, -1, axis=0)
    along, away = ends - corners, point - corners
    size = np.maximum((along * along).sum(axis=-1), 1e-300)
    part = np.clip((away * along).sum(axis=-1) / size, 0.0, 1.0)
    distance = float(np.linalg.norm(away - part[:, None] * along, axis=-1).min())
    inside = len(corners) > 2 and bool((along[:, 0] * away[:, 1] - along[:, 1] * away[:, 0] >= 0.0).all())
    return distance if inside else -distance


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return twice the area of a triangle, positive if it is counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
