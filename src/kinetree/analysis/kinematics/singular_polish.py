"""Last steps toward targets near singular positions, by Newton's method with singular values.

There the native search advances slowly: the error grows off a curved path along which it is small, and normal equations
lose half of the digits. Steps of Newton's method may increase the error for a while. The best position is returned.
"""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers
from ...model.scales import loop_units
from .pose_search import Found, PoseSearch

NEAR = 1e-3
"""Half the squared error from which the steps start: farther away, the native search has found a local minimum."""
ROUNDS = 100
"""The most steps; where two solutions meet, each reduces the error to a quarter."""
STRIDE = 0.2
"""The largest entry of a step [rad, characteristic lengths]."""
RANK = 1e-13
"""Directions with smaller singular values, in parts of the largest, are rounding errors."""


def polished(search: PoseSearch, found: Found) -> Numbers:
    """Return the positions found [n, nq], after further steps where the error is small but above the tolerance."""
    rows = np.flatnonzero((found.size <= NEAR) & ~(found.worst <= search.tolerance))
    if not len(rows):
        return found.q
    out, part = found.q.copy(), search.part(rows)
    there = best = out[rows]
    F, A, size, worst = part.errors_at(there)
    for _ in range(ROUNDS):
        there = part.ranges.clipped(part.targets.system.integrate(there, _step(part, there, F, A)))
        F, A, after, new = part.errors_at(there)
        better = after < size
        best = np.where(better[:, None], there, best)
        size, worst = np.where(better, after, size), np.where(better, new, worst)
        if (worst <= search.tolerance).all():
            break
    out[rows] = best
    return out


def _step(search: PoseSearch, q: Numbers, F: Numbers, A: Numbers) -> Numbers:
    """Return steps of Newton's method [n, nv]; degrees of freedom at a limit that would leave the range do not move."""
    ranges = search.ranges
    x = np.zeros((len(q), A.shape[-1]))
    x[:, ranges.v_places] = q[:, ranges.q_places]
    slope = np.einsum("nik,ni->nk", A, F)
    blocked = ((x >= ranges.upper) & (slope > 0)) | ((x <= ranges.lower) & (slope < 0))
    flat = np.ones_like(x, dtype=bool)
    flat[:, ranges.v_places] = False
    U, s, V = np.linalg.svd(A * (ranges.free * (flat | ~blocked))[:, None, :], full_matrices=False)
    inverse = s / (s * s + (RANK * s[:, :1]) ** 2 + 1e-300)
    dq = np.einsum("nki,nk->ni", V, inverse * np.einsum("nik,ni->nk", U, F))
    reach = np.maximum(1.0, np.abs(dq).max(axis=-1, initial=0.0) / STRIDE)
    return dq / reach[:, None] * loop_units(search.targets.system.mechanism)[1]
