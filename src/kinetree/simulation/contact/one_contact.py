"""The cone problem of one contact, solved exactly: open, sticking, or slipping in the direction that fits."""

from __future__ import annotations

import numpy as np

from .redundant_forces import null_space, within_cones

ANGLES = np.linspace(-np.pi, np.pi, 49)
"""Directions of slip between which roots are bracketed [rad]."""
COSINES, SINES = np.cos(ANGLES), np.sin(ANGLES)
RANK = 1e-11
"""The ratio to the largest below which a singular value of W is rounding."""
HALVINGS = 60
"""The largest number of steps of the search for a direction."""


def solved(W: np.ndarray, c: np.ndarray, mu: float, ray: np.ndarray, floor: float) -> np.ndarray:
    """Return the force (n, t1, t2) of a contact with u = W f + c; its normal force is `floor` or more."""
    if not np.isnan(ray[0]) or mu == 0.0:
        along = np.zeros(2) if mu == 0.0 else -mu * ray
        slope = W[0, 0] + W[0, 1:] @ along
        normal = max(floor, -c[0] / slope) if slope > 0 else floor
        return np.array([normal, *(normal * along)])
    left = _tangential(W, c, mu, np.full_like(ANGLES, floor), floor)
    if c[0] + W[0] @ left >= 0:
        return left
    stick, _, rank, _ = np.linalg.lstsq(W, -c, rcond=RANK)
    if stick[0] >= floor and np.hypot(stick[1], stick[2]) <= mu * stick[0]:
        return stick
    if rank < 3 and floor == 0.0:  # the body cannot move in some direction: it may be wedged
        free = null_space(W, RANK)
        wedged = within_cones(stick[None], free, np.array([mu]), np.array([False]))
        if wedged is not None and np.abs(W @ wedged[0] + c).max() <= 1e-13 * np.abs(c).max():
            return wedged[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = W[0, 0] - mu * (W[0, 1] * COSINES + W[0, 2] * SINES)
        normals = np.where(slopes > 0, -c[0] / slopes, np.inf)
    return _tangential(W, c, mu, normals, None)


def _tangential(W: np.ndarray, c: np.ndarray, mu: float, normals: np.ndarray, fixed: float | None) -> np.ndarray:
    """Return the force that slips, with its normal force fixed or that of u_n = 0; if fixed, it may also stick."""
    if fixed is not None:
        if fixed == 0.0:
            return np.zeros(3)
        rest = _resting(W[1:, 1:], -(c[1:] + W[1:, 0] * fixed))
        if np.hypot(*rest) <= mu * fixed:
            return np.array([fixed, *rest])

    def normal(cos: float, sin: float) -> float:
        if fixed is not None:
            return fixed
        slope = W[0, 0] - mu * (W[0, 1] * cos + W[0, 2] * sin)
        return -c[0] / slope if slope > 0 else np.inf

    def slip(angle: float) -> tuple[float, float, np.ndarray]:
        cos, sin = np.cos(angle), np.sin(angle)
        size = normal(cos, sin)
        f = size * np.array([1.0, -mu * cos, -mu * sin])
        u = c[1:] + W[1:] @ f
        return cos * u[1] - sin * u[0], cos * u[0] + sin * u[1], f

    with np.errstate(invalid="ignore"):
        f = normals * np.array([np.ones_like(ANGLES), -mu * COSINES, -mu * SINES])
        u = c[1:, None] + W[1:] @ f
        turn, along = COSINES * u[1] - SINES * u[0], COSINES * u[0] + SINES * u[1]
        crossing = (turn[:-1] * turn[1:] <= 0) & ((along[:-1] > 0) | (along[1:] > 0))
    best = None  # a direction to which slip turns back comes before others, then a smaller force
    for k in np.flatnonzero(crossing & np.isfinite(normals[:-1]) & np.isfinite(normals[1:])):
        low, high, at_low = ANGLES[k], ANGLES[k + 1], turn[k]
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            value = slip(middle)[0]
            if value * at_low > 0:
                low = middle
            else:
                high = middle
            if high - low < 4e-16:
                break
        _, speed, force = slip(0.5 * (low + high))
        rank = (at_low < 0, force[0])
        if speed >= 0 and (best is None or rank < best[0]):
            best = rank, force
    if best is not None:
        return best[1]
    middle = int(np.nanargmin(np.where(along > 0, np.abs(turn), np.inf))) if (along > 0).any() else 0
    return slip(float(ANGLES[middle]))[2]


def _resting(S: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the tangential force with S f = wanted; infinite if there is none, the smallest if a motion is planar."""
    if np.linalg.det(S) > RANK * np.trace(S) ** 2:
        return np.linalg.solve(S, wanted)
    found = np.linalg.lstsq(S, wanted, rcond=RANK)[0]
    fits = np.abs(S @ found - wanted).max() <= 1e-12 * np.abs(wanted).max()
    return found if fits else np.full(2, np.inf)
