"""Positions of bodies beside the main chains, from points of the main bodies: [Goncalves2023] 4.3.

Points are arrays [..., 3], lengths and angles [...].

Differs from the paper: (21) prints the cosine of the angle, without arccos. (25) prints B_4slc x on both sides; it is
that of B_4sla. (24) is for the left half, where x is negative; on the right the sign of the root changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .kinematics import Matrix
from .linear_actuators import first_invalid


@dataclass(frozen=True)
class BalancingHalf:
    """Points of one half of the balancing linkage in the axes of body 3, [..., 3] each.

    `tip` is B_4sla, where the bar carries the upright; `spring` is B_4slb, where the spring pulls the bar; `rail` is
    B_4slc, where the upright slides on body 4.
    """

    tip: Matrix
    spring: Matrix
    rail: Matrix


def length(Si: ArrayLike, Sj: ArrayLike) -> Matrix:
    """Return the distance l_s between the ends of a body, both in the same axes."""
    return np.sqrt(np.sum((np.asarray(Si, dtype=float) - np.asarray(Sj, dtype=float)) ** 2, axis=-1))  # (20)


def inclination(Ri: ArrayLike, Si: ArrayLike, Sj: ArrayLike) -> Matrix:
    """Return the angle alpha_s between the axis from S_i to R_i and the body from S_i to S_j, from 0 to pi."""
    ls, bs, as_ = length(Si, Sj), length(Si, Ri), length(Ri, Sj)
    # Differs from the paper: printed without arccos.
    return np.arccos(np.clip((ls**2 + bs**2 - as_**2) / (2 * ls * bs), -1.0, 1.0))  # (21)


def balancing_half(
    H4z: ArrayLike,
    F3: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    *,
    side: float,
    times: ArrayLike | None = None,
) -> BalancingHalf:
    """Return the points of a half: `side` is -1 for the left one, whose bar points along -x, and 1 for the right one.

    H4z is the height of the rail in the axes of body 3, F_3 the pivot of the bar, a and b the distances from there to
    the spring and to the tip, c the length of the upright. A bar that does not reach raises an InputError.
    """
    F3, H4z = np.asarray(F3, dtype=float), np.asarray(H4z, dtype=float)
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    rail_z = H4z  # (22)
    tip_z = rail_z - np.asarray(c, dtype=float)  # (23)
    rise = tip_z - F3[..., 2]
    _require(np.abs(rise) < b, rise, b, times)
    tip_x = F3[..., 0] + side * np.sqrt(b**2 - rise**2)  # (24)
    rail_x = tip_x  # (25)
    spring_x = F3[..., 0] + a / b * (tip_x - F3[..., 0])  # (26)
    spring_z = F3[..., 2] + a / b * (tip_z - F3[..., 2])  # (27)
    y = np.broadcast_to(F3[..., 1], tip_x.shape)
    points = ((tip_x, tip_z), (spring_x, spring_z), (rail_x, np.broadcast_to(rail_z, tip_x.shape)))
    return BalancingHalf(*(np.stack([x, y, z], axis=-1) for x, z in points))


def _require(valid: NDArray[np.bool_], rise: Matrix, b: Matrix, times: ArrayLike | None) -> None:
    """Raise an InputError for the first state in which a bar does not reach its tip."""
    if valid.all():
        return
    first, when = first_invalid(valid, times)
    far, long = (float(np.broadcast_to(x, valid.shape)[first]) for x in (rise, b))
    raise InputError(
        f"the bars of the balancing linkage are {long:.6g} m long, but their tips are {far:.6g} m above their pivots"
        f"{when}; expected less than their length: change b_4sla, c_4slc or the motion"
    )
