"""Joints that linear actuators move indirectly, and the bodies beside them, from lengths: [Goncalves2023] 4.1, 4.3.

All arguments are arrays of any leading shape [...], points [..., 3]. A motion is a position with its first and second
time derivative. The paper prints positions only; derivatives follow from the same triangles.

Differs from the paper: (6) prints E'_3 y for E'_4 y; both y axes have the same origin. (9) prints alpha_5 on its left
for alpha_4 of (7). (14) prints a plus sign before h_4, with which G_4 is on neither circle; (13) requires a minus sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .kinematics import Matrix

Motion = tuple[Matrix, Matrix, Matrix]
"""A position, its velocity and its acceleration, [...] each."""


def sliding_joint(
    act: Motion, D3: ArrayLike, E4: ArrayLike, B3z: float, *, part: str = "actuator_4", times: ArrayLike | None = None
) -> Motion:
    """Return the displacement d_4 of a prismatic joint along z, moved by an actuator from D_3 to E_4 in the y-z plane.

    B3z is the height of the joint on body 3 [m]. An actuator that is too short raises an InputError with its time.
    """
    D3, E4 = np.asarray(D3, dtype=float), np.asarray(E4, dtype=float)
    length, rate, second = (np.asarray(x, dtype=float) for x in act)
    across = E4[..., 1] - D3[..., 1]
    _require(
        length > np.abs(across),
        length,
        part,
        times,
        f"more than {np.max(np.abs(across)):.6g} m, the distance of its ends across the joint",
    )
    rise = np.sqrt(length**2 - across**2)
    d = B3z - (D3[..., 2] + rise - E4[..., 2])  # (5), (6)
    up = length * rate / rise
    return d, -up, -(rate**2 + length * second - up**2) / rise


def rotating_joint(
    act: Motion,
    F4: ArrayLike,
    B4: ArrayLike,
    G5: ArrayLike,
    *,
    part: str = "actuator_5",
    times: ArrayLike | None = None,
) -> Motion:
    """Return the angle theta_5 of a revolute joint about x at B_4, moved by an actuator from F_4 to G_5.

    F_4 and B_4 are in the axes of body 4, G_5 in those of body 5 with its origin in the joint. An actuator that is too
    short or too long raises an InputError with its time.
    """
    F4, B4, G5 = (np.asarray(x, dtype=float) for x in (F4, B4, G5))
    length, rate, second = (np.asarray(x, dtype=float) for x in act)
    Fy, Fz, By, Bz = F4[..., 1], F4[..., 2], B4[..., 1], B4[..., 2]
    beta5 = np.arctan2(G5[..., 1], G5[..., 2])  # (8)
    e4 = np.hypot(Fy - By, Fz - Bz)  # (10)
    r = np.hypot(G5[..., 1], G5[..., 2])
    least, most = np.abs(e4 - r), e4 + r
    limits = f"between {np.max(least):.6g} and {np.min(most):.6g} m, by the distances of its ends from the joint"
    _require((length > least) & (length < most), length, part, times, limits)
    l4 = (length**2 - r**2 + e4**2) / (2 * e4)  # (11)
    h4 = np.sqrt(length**2 - l4**2)  # (12)
    Gy = l4 / e4 * (By - Fy) + h4 / e4 * (Bz - Fz) + Fy  # (13)
    # Differs from the paper: printed + h_4 / e_4.
    Gz = l4 / e4 * (Bz - Fz) - h4 / e4 * (By - Fy) + Fz  # (14)
    alpha4 = np.arctan2(Gz - Bz, Gy - By)  # (9)
    angle = alpha4 + beta5 - np.pi / 2  # (7)
    angle = np.pi - (np.pi - angle) % (2 * np.pi)
    # act^2 = |G - F|^2, differentiated twice: G moves on a circle about B.
    lever = -(Gy - Fy) * (Gz - Bz) + (Gz - Fz) * (Gy - By)
    turning = length * rate / lever
    bend = r**2 - (Gy - Fy) * (Gy - By) - (Gz - Fz) * (Gz - Bz)
    return angle, turning, (rate**2 + length * second - turning**2 * bend) / lever


def first_invalid(valid: NDArray[np.bool_], times: ArrayLike | None) -> tuple[tuple[int, ...], str]:
    """Return the index of the first state that is not valid, and the words for messages: its time, or its index."""
    first = tuple(int(k[0]) for k in np.nonzero(~valid)) if valid.ndim else ()
    if times is not None:
        return first, f" at t = {float(np.broadcast_to(np.asarray(times, dtype=float), valid.shape)[first]):g} s"
    return first, f" in state {list(first)}" if first else ""


def _require(valid: NDArray[np.bool_], length: Matrix, part: str, times: ArrayLike | None, expected: str) -> None:
    """Raise an InputError for the first length that closes no triangle."""
    if valid.all():
        return
    first, when = first_invalid(valid, times)
    value = float(np.broadcast_to(length, valid.shape)[first])
    raise InputError(
        f"{part} is {value:.6g} m long{when}; expected {expected}: change its motion, or the points of its ends"
    )


# --- Positions of bodies beside the main chains, from points of the main bodies: [Goncalves2023] 4.3.
#
# Points are arrays [..., 3], lengths and angles [...].
#
# Differs from the paper: (21) prints the cosine of the angle, without arccos. (25) prints B_4slc x on both sides; it is
# that of B_4sla. (24) is for the left half, where x is negative; on the right the sign of the root changes.


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
    _require_reach(np.abs(rise) < b, rise, b, times)
    tip_x = F3[..., 0] + side * np.sqrt(b**2 - rise**2)  # (24)
    rail_x = tip_x  # (25)
    spring_x = F3[..., 0] + a / b * (tip_x - F3[..., 0])  # (26)
    spring_z = F3[..., 2] + a / b * (tip_z - F3[..., 2])  # (27)
    y = np.broadcast_to(F3[..., 1], tip_x.shape)
    points = ((tip_x, tip_z), (spring_x, spring_z), (rail_x, np.broadcast_to(rail_z, tip_x.shape)))
    return BalancingHalf(*(np.stack([x, y, z], axis=-1) for x, z in points))


def _require_reach(valid: NDArray[np.bool_], rise: Matrix, b: Matrix, times: ArrayLike | None) -> None:
    """Raise an InputError for the first state in which a bar does not reach its tip."""
    if valid.all():
        return
    first, when = first_invalid(valid, times)
    far, long = (float(np.broadcast_to(x, valid.shape)[first]) for x in (rise, b))
    raise InputError(
        f"the bars of the balancing linkage are {long:.6g} m long, but their tips are {far:.6g} m above their pivots"
        f"{when}; expected less than their length: change b_4sla, c_4slc or the motion"
    )
