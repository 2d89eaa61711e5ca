"""Springs, balancing linkage, and force sharing between bodies 3, 4 and 5 of CHARMIE: [Goncalves2023] 5.2.

Forces and torques have shape [..., 3], matrices are those of the paper, row by row.

Differs from the paper: the sum in (37) has four succeeding bodies; body 5 has three, arms and head, and its spring is a
term of its own. (40) holds if f_3sra is the force of the bar on body 3, the opposite of its name. (43) prints 3slr and
3slc for the uprights 4src and 4slc. The moments that an actuator carries from its head to its foot are not printed:
those of its forces along x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.mechanism import Mechanism, resolve_parts
from .auxiliary_bodies import BalancingHalf, inclination, length
from .kinematics import Matrix
from .newton_euler import Link, LinkMotion, Load, balance

Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Torso:
    """Points of bodies 3, 4 and 5 in their own axes [3], lengths of the linkage [m], springs (rate, length, preload).

    F3 and G3 are on the left; on the right x has the other sign.
    """

    B3: Matrix
    D3: Matrix
    F3: Matrix
    G3: Matrix
    B4: Matrix
    E4: Matrix
    F4: Matrix
    S4: Matrix
    E5: Matrix
    G5: Matrix
    H4z: float
    a: float
    b: float
    c: float
    spring_4: tuple[float, float, float]
    spring_5: tuple[float, float, float]


@dataclass(frozen=True)
class Half:
    """Forces of half the linkage in the axes of body 3: of spring and upright on the bar, of the bar on body 3."""

    spring: Matrix
    upright: Matrix
    base: Matrix


@dataclass(frozen=True)
class Shares:
    """Loads on a body of two preceding ones: actuator d and joint a, forces and torques in the axes of the body.

    `uprights` are the torques about z of the left and the right upright on body 4, [..., 2]; body 5 has none.
    """

    fd: Matrix
    mud: Matrix
    fa: Matrix
    mua: Matrix
    uprights: Matrix


def torso(mechanism: Mechanism) -> Torso:
    """Return the geometry of `charmie_complete` with the values of its parameters."""
    v = {name: float(x) for name, x in mechanism.values().items()}
    heads = {p.name: np.array(p.placement_a.translation, dtype=float) for p in _parts(mechanism.loops, mechanism)}
    feet = {j.name: np.array(j.placement.translation, dtype=float) for j in _parts(mechanism.joints, mechanism)}
    return Torso(
        B3=feet["joint_4"], D3=feet["foot_4d"], F3=feet["bar_4l"], G3=feet["foot_4sl"],
        B4=feet["joint_5"], E4=heads["head_4d"], F4=feet["foot_5d"], S4=feet["foot_5s"],
        E5=heads["head_5s"], G5=heads["head_5d"],
        H4z=v["H4z"], a=v["a4"], b=v["b4"], c=v["c4"],
        spring_4=(v["k4"], v["L4"], v["P4"]), spring_5=(v["k5"], v["L5"], v["P5"]),
    )  # fmt: skip


def spring_force(Ls: Matrix, data: tuple[float, float, float]) -> Matrix:
    """Return the force with which a spring pushes its ends apart [N]; an extension spring has negative preload."""
    ks, L0, F0 = data
    return ks * (L0 - Ls) + F0  # (35)


def tilt(Si: Matrix, Sj: Matrix, axis: int) -> Matrix:
    """Return the angle from z to the direction from S_i to S_j, toward the axis 0 (x) or 1 (y)."""
    return np.copysign(inclination(Si + Z, Si, Sj), (Sj - Si)[..., axis])  # (21)


def half_forces(T: Torso, half: BalancingHalf, side: float) -> Half:
    """Return the forces of a half of the linkage, in balance without mass."""
    F3, G3 = mirrored(T.F3, side), mirrored(T.G3, side)
    FT = spring_force(length(G3, half.spring), T.spring_4)
    alpha4 = tilt(np.broadcast_to(G3, half.spring.shape), half.spring, 0)
    zero = np.zeros_like(FT)
    f = np.stack([FT * np.sin(alpha4), zero, FT * np.cos(alpha4)], axis=-1)  # (39)
    r, arm = half.tip - F3, half.spring - F3
    a5 = f[..., 2] * arm[..., 0] - f[..., 0] * arm[..., 2]  # (41)
    one = np.ones_like(FT)
    rows = [[zero, one, zero], [-one, zero, one], [-r[..., 0], zero, zero]]
    known = np.stack([f[..., 0], f[..., 2], a5], axis=-1)
    up, x, z = np.moveaxis(_solved(rows, known), -1, 0)  # (40)
    return Half(f, np.stack([zero, zero, up], axis=-1), np.stack([x, zero, z], axis=-1))


def body_5(i: Link, at: LinkMotion, loads: list[Load], T: Torso, F4: Matrix) -> Shares:
    """Return the loads of actuator 5d and of body 4 on body 5; F4 is in the axes of body 5."""
    G5 = np.broadcast_to(T.G5, F4.shape)
    total, torque = balance(i, at, loads)  # (33), (34)
    a1, a2, a3, a4 = *np.moveaxis(total, -1, 0), torque[..., 0]  # (37)
    rd, ra = i.C - G5, np.broadcast_to(i.C - at.A, F4.shape)
    alpha5d = tilt(G5, F4, 1)
    o, e = np.zeros_like(a1), np.ones_like(a1)
    rows = [
        [e, o, o, e, o, o],
        [o, e, o, o, e, o],
        [o, o, e, o, o, e],
        [o, rd[..., 2], -rd[..., 1], o, ra[..., 2], -ra[..., 1]],
        [o, np.cos(alpha5d), -np.sin(alpha5d), o, o, o],
        [-e, o, o, e, o, o],
    ]
    found = _solved(rows, np.stack([a1, a2, a3, a4, o, o], axis=-1))  # (36)
    fd, fa = found[..., :3], found[..., 3:]
    left = torque - np.cross(fd, rd) - np.cross(fa, ra)  # (34)
    rows = [[e, o, e, o], [o, e, o, e], [e, o, -e, o], [o, e, o, -e]]
    half = _solved(rows, np.stack([left[..., 1], left[..., 2], o, o], axis=-1))  # (38)
    mud, mua = (np.stack([o, half[..., k], half[..., k + 1]], axis=-1) for k in (0, 2))
    return Shares(fd, mud, fa, mua, np.zeros((*a1.shape, 2)))


def body_4(i: Link, at: LinkMotion, loads: list[Load], T: Torso, D3: Matrix) -> Shares:
    """Return the loads of actuator 4d, of body 3 and of both uprights on body 4; D3 is in the axes of body 4."""
    E4 = np.broadcast_to(T.E4, D3.shape)
    total, torque = balance(i, at, loads)  # (33), (34)
    alpha4d = tilt(E4, D3, 1)
    o, e = np.zeros(total.shape[:-1]), np.ones(total.shape[:-1])
    rows = [[o, o, e, o], [e, o, o, e], [o, e, o, o], [np.cos(alpha4d), -np.sin(alpha4d), o, o]]
    y, z, x3, y3 = np.moveaxis(_solved(rows, np.concatenate([total, o[..., None]], axis=-1)), -1, 0)  # (42)
    fd, fa = np.stack([o, y, z], axis=-1), np.stack([x3, y3, o], axis=-1)
    left = torque - np.cross(fd, i.C - E4) - np.cross(fa, i.C - at.A)  # (34)
    rows = [[e, o, o, o], [o, e, o, o], [o, o, e, e], [o, o, e, -e]]
    found = _solved(rows, np.concatenate([left, o[..., None]], axis=-1))  # (43)
    mua = np.stack([found[..., 0], found[..., 1], o], axis=-1)
    return Shares(fd, np.zeros_like(fd), fa, mua, found[..., 2:])


def mirrored(point: Matrix, side: float) -> Matrix:
    """Return a point of the left half, or its mirror image on the right."""
    return point * np.array([-side, 1.0, 1.0])


def _solved(rows: list[list[Matrix]], known: Matrix) -> Matrix:
    matrix = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return np.asarray(np.linalg.solve(matrix, known[..., None])[..., 0], dtype=float)


def _parts(parts, mechanism: Mechanism):
    return resolve_parts(parts, mechanism.values())
