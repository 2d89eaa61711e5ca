"""Redundant arms: motion in the null space toward the middle of the joints' ranges, with the frame at its target."""

from __future__ import annotations

import math

import numpy as np

from ...algebra.arrays import Numbers
from ...model.scales import loop_units
from ..loops.kinematics import Mask
from .null_motions import scaled_jacobian
from .pose_search import PoseSearch

ROUNDS = 60
"""The most steps toward the middle; each reduces the distance, or is halved."""
LEAST = 1e-6
"""The decrease of the squared distance, in parts of it, below which the search ends."""


def centered(search: PoseSearch, q: Numbers, good: Mask) -> Numbers:
    """Return positions [n, nq] nearest to the middle of the ranges among those reached from q with the same pose.

    Distances are in parts of half the range of each joint; of half a revolution, or of the characteristic length, for
    joints without limits. Targets that are not `good` stay as they are.
    """
    system, ranges = search.targets.system, search.ranges
    units = loop_units(system.mechanism)[1]
    half = 0.5 * (ranges.upper - ranges.lower)
    half = np.where(np.isfinite(half) & (half > 0), half, np.where(units == 1.0, math.pi, units)) * ranges.free
    middle = np.broadcast_to(ranges.middle(), q.shape)
    q, stride, live = q.copy(), np.ones(len(q)), np.array(good, dtype=bool)
    cost = _distance(search, q, middle, half)
    for _ in range(ROUNDS):
        rows = np.flatnonzero(live)
        if not len(rows):
            break
        part = search.part(rows)
        step = _toward(part, q[rows], middle[rows], half) * stride[rows, None]
        tried, report = part.run(ranges.clipped(system.integrate(q[rows], step)))
        after = _distance(part, tried, middle[rows], half)
        better = (report[:, 0] <= search.tolerance) & (after < cost[rows])
        ended = better & (after > (1.0 - LEAST) * cost[rows])
        q[rows] = np.where(better[:, None], tried, q[rows])
        cost[rows] = np.where(better, after, cost[rows])
        stride[rows] = np.where(better, np.minimum(1.0, 1.5 * stride[rows]), 0.4 * stride[rows])
        live[rows] = ~ended & (stride[rows] > 1e-4)
    return q


def _distance(search: PoseSearch, q: Numbers, middle: Numbers, half: Numbers) -> Numbers:
    away = search.targets.system.difference(middle, q)
    return ((away / np.where(half > 0, half, 1.0)) ** 2 * (half > 0)).sum(axis=-1)


def _toward(search: PoseSearch, q: Numbers, middle: Numbers, half: Numbers) -> Numbers:
    """Return the part of the way to the middle that keeps the pose to first order."""
    t = search.targets
    units = loop_units(t.system.mechanism)[1]
    scale = half / units
    J = scaled_jacobian(t.system, t.frame, t.used, q, search.parameters) * scale
    way = t.system.difference(q, middle) / np.where(half > 0, half, 1.0) * (half > 0)
    return (way - np.einsum("nij,njk,nk->ni", np.linalg.pinv(J, rcond=1e-7), J, way)) * half
