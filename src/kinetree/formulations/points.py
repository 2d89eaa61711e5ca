"""Equimomental systems, points with the mass, center of mass and inertia of a body, and their equations of motion.

Three systems for physically possible bodies and one for any numbers. All use the second moment of a body,
J = sum m r r^T = tr(I)/2 1 - I, which is additive as mass is:

    seven     corners of a box about the frame's origin, masses of any sign              [Gupta2013] (1)-(13)
    four      equal masses at the corners of a stretched tetrahedron (Routh)
    positive  six points on the principal axes, none of negative mass
    signed    the same six at any distance with a seventh at the center: for any numbers, even zero mass

Derivations: docs/theory/points.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import from_moments
from ..errors import ModelError, unknown_name
from ..model.mechanism import Mechanism, resolve_parts
from .equations import Equations, armatures, external_wrenches
from .kinematics import BodyState, Matrix, body_states, gravity, skew

ROUNDING = 16 * np.finfo(float).eps
"""Second moments below this fraction of their sum count as zero: a few units of rounding."""

CORNERS = np.array([[1, 1, 1], [1, 1, -1], [-1, 1, -1], [-1, 1, 1], [-1, -1, 1], [1, -1, 1], [1, -1, -1]], dtype=float)
"""The signs of the seven points, in the order of [Gupta2013] table 1; the corner (-, -, -) is left out."""

TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)


@dataclass(frozen=True)
class Points:
    """Masses [k] in kg at positions [k, 3] in m, in a body's frame."""

    masses: Matrix
    positions: Matrix

    def moved(self, shift: ArrayLike) -> Points:
        """Return the same points in a frame with its origin at -shift."""
        return Points(self.masses, self.positions + np.asarray(shift, dtype=float))


def body_of(points: Points) -> tuple[float, Matrix, Matrix]:
    """Return mass [kg], center of mass [m] and inertia about it [3, 3], about the origin where the mass is zero."""
    m = float(points.masses.sum())
    first = points.masses @ points.positions
    com = first / m if m != 0 else np.zeros(3)
    arms = points.positions - com
    J = (arms.T * points.masses) @ arms
    return m, com, np.trace(J) * np.eye(3) - J


def seven_points(mass: float, com: ArrayLike, inertia: ArrayLike, *, where: str = "") -> Points:
    """Return the seven points of a body, about the origin of the frame.                [Gupta2013] (1)-(13)

    Differs from the paper: `inertia` is the tensor about that origin; its products have the opposite sign of the sums
    I_xy = sum m x y of (5)-(7). Its diagonal alone decides whether h is real. Masses can be negative. In a direction
    with h = 0, the equations of (2)-(7) multiplied by h vanish; the smallest masses that solve the rest are taken.

    Args:
        mass: Of the body [kg], more than zero.
        com: The center of mass in the frame [m].
        inertia: About the frame's origin [kg m^2], 3x3 or (xx, yy, zz, xy, yz, zx).
        where: Named in errors.
    """
    J = _second_moment(inertia)
    _refuse_massless(mass, "seven", where)
    floor = ROUNDING * abs(float(np.trace(J)))
    _refuse_imaginary(np.diag(J), floor, mass, ("I_xx", "I_yy", "I_zz"), ("h_x", "h_y", "h_z"), where)
    first = mass * np.asarray(com, dtype=float)
    h = np.sqrt(np.maximum(np.diag(J), 0.0) / mass)  # (11)-(13)
    for k in range(3):
        if J[k, k] <= floor:
            needed = first[k] != 0 or np.any(np.delete(J[k], k) != 0)
            h[k] = np.sqrt(floor / mass) if needed else 0.0  # zero within rounding
    x, y, z = CORNERS.T
    rows = np.array([np.ones(7), x, y, z, x * y, y * z, z * x])
    arms = np.array([1.0, *h, h[0] * h[1], h[1] * h[2], h[2] * h[0]])
    sums = np.array([mass, *first, J[0, 1], J[1, 2], J[2, 0]])
    kept = arms > 0
    masses, *_ = np.linalg.lstsq(rows[kept], sums[kept] / arms[kept], rcond=None)  # (1)-(7)
    return Points(np.asarray(masses, dtype=float), CORNERS * h)


def four_points(mass: float, com: ArrayLike, inertia: ArrayLike, *, where: str = "") -> Points:
    """Return Routh's four points of a body: mass / 4 each, real for every physically possible body.

    In principal axes at the center of mass they are at (+-a, +-b, +-c) with an even number of minus signs, where
    a^2 = J_x / m and so on: then sum m r = 0 and sum m r r^T = diag(J).

    Args:
        mass: Of the body [kg], more than zero.
        com: The center of mass in the frame [m].
        inertia: About the center of mass [kg m^2], 3x3 or (xx, yy, zz, xy, yz, zx).
        where: Named in errors.
    """
    _refuse_massless(mass, "four", where)
    moments, axes = _principal(inertia, mass, where)
    return Points(np.full(4, mass / 4), TETRAHEDRON * np.sqrt(moments / mass) @ axes.T).moved(com)


def positive_points(mass: float, com: ArrayLike, inertia: ArrayLike, *, where: str = "") -> Points:
    """Return six points of a body with no negative mass: a pair on each principal axis, all at the same distance.

    The distance is l = sqrt(tr(J) / m) and the mass of a pair m J_k / tr(J); the masses sum to m, and m r r^T to J.
    Points without mass are left out; a body without extent is one point.

    Args:
        mass: Of the body [kg], more than zero.
        com: The center of mass in the frame [m].
        inertia: About the center of mass [kg m^2], 3x3 or (xx, yy, zz, xy, yz, zx).
        where: Named in errors.
    """
    _refuse_massless(mass, "positive", where)
    moments, axes = _principal(inertia, mass, where)
    total = float(moments.sum())
    if total == 0:
        return Points(np.array([mass]), np.zeros((1, 3))).moved(com)
    return _pairs(mass * moments / total, np.sqrt(total / mass), axes).moved(com)


def signed_points(mass: float, com: ArrayLike, inertia: ArrayLike, *, length: float = 1.0) -> Points:
    """Return points of any mass and inertia: a pair on each principal axis, the remaining mass at the center.

    A pair at a distance l has the mass J_k / l^2 of either sign, and the center has m - tr(J) / l^2. A body with
    inertia but no mass is thus a system of some mass minus a point of that mass.

    Args:
        mass: Of the body [kg], any number.
        com: The center of mass in the frame [m].
        inertia: About the center of mass [kg m^2], 3x3 or (xx, yy, zz, xy, yz, zx).
        length: The distance l [m]; any value except zero.
    """
    moments, axes = np.linalg.eigh(_second_moment(inertia))
    pairs = _pairs(moments / length**2, length, axes)
    rest = mass - float(pairs.masses.sum())
    return Points(np.append(pairs.masses, rest), np.vstack([pairs.positions, np.zeros(3)])).moved(com)


SYSTEMS = ("seven", "four", "positive", "signed")


def body_points(body: Any, system: str = "seven", *, at: ArrayLike = (0.0, 0.0, 0.0)) -> Points:
    """Return the points of a body in its frame; a body without mass and inertia has none.

    `at` is the center of the box of seven points, by default the body's origin; [Gupta2013] uses the next joint's.
    A body with inertia but no mass has zero first moment; every system gives it the signed points at its origin.
    """
    if system not in SYSTEMS:
        raise unknown_name("system of points", system, SYSTEMS)
    mass, com = float(body.mass), np.asarray(body.com, dtype=float)
    central = np.array(from_moments(body.inertia), dtype=float)
    where = f"body {body.name!r}"
    if mass == 0:
        return signed_points(0.0, np.zeros(3), central) if central.any() else Points(np.zeros(0), np.zeros((0, 3)))
    if system == "four":
        return four_points(mass, com, central, where=where)
    if system == "positive":
        return positive_points(mass, com, central, where=where)
    if system == "signed":
        return signed_points(mass, com, central)
    arm = com - np.asarray(at, dtype=float)
    shifted = central + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return seven_points(mass, arm, shifted, where=where).moved(at)


def _second_moment(inertia: ArrayLike) -> Matrix:
    tensor = np.asarray(inertia, dtype=float)
    if tensor.shape == (6,):
        tensor = np.array(from_moments(tensor), dtype=float)
    return np.trace(tensor) / 2 * np.eye(3) - tensor


def _pairs(masses: Matrix, length: float, axes: Matrix) -> Points:
    kept = masses != 0
    arms = length * axes.T[kept]
    return Points(np.repeat(masses[kept] / 2, 2), np.stack([arms, -arms], axis=1).reshape(-1, 3))


def _principal(inertia: ArrayLike, mass: float, where: str) -> tuple[Matrix, Matrix]:
    """Return the principal second moments, with rounding below zero removed, and their axes as columns."""
    moments, axes = np.linalg.eigh(_second_moment(inertia))
    floor = ROUNDING * abs(float(moments.sum()))
    _refuse_imaginary(moments, floor, mass, ("I_1", "I_2", "I_3"), ("h_1", "h_2", "h_3"), where)
    return np.where(moments > floor, moments, 0.0), axes


def _refuse_imaginary(moments: Matrix, floor: float, mass: float, names, widths, where: str) -> None:
    inertia = moments.sum() - moments
    for k in range(3):
        if moments[k] < -floor:
            a, b = (names[(k + j) % 3] for j in (1, 2))
            raise ModelError(
                f"{widths[k]}^2 = {moments[k] / mass:.6g} m^2 is negative: {names[k]} = {inertia[k]:.6g} kg m^2 is too "
                f"large compared with {a} + {b} = {inertia.sum() - inertia[k]:.6g} kg m^2",
                where=where,
                remedy="no body can have this inertia: check units, signs and the point it is about; "
                "signed points represent any numbers",
            )


def _refuse_massless(mass: float, system: str, where: str) -> None:
    if not mass > 0:
        raise ModelError(
            f"a {system}-point system of mass {mass:g} kg: h^2 = J / m is not a number",
            where=where,
            remedy="give the body mass, or use signed points",
        )


# --- The equations of motion of a mechanism made of points: each has a mass and a velocity.   [Gupta2013] (14)-(35)
#
# Every body is replaced by an equimomental system; N~ = D N_l N_d gives the points' velocities. Newton's equation for
# each point is the only law of motion used: no rotational one is needed. Vectors are in the ground's axes.


@dataclass(frozen=True)
class PointMatrices:
    """The DeNOC matrices of k points on n bodies, and their rates.                       [Gupta2013] (21)-(32)

    D and dD are [3k, 6n], N_l and dN_l [6n, 6n], N_d and dN_d [6n, nv], masses [k].
    """

    masses: Matrix
    D: Matrix
    dD: Matrix
    N_l: Matrix
    dN_l: Matrix
    N_d: Matrix
    dN_d: Matrix

    @property
    def N(self) -> Matrix:
        """The points' velocities per unit joint velocity, N~ = D N_l N_d [3k, nv].                         (27)"""
        return self.D @ self.N_l @ self.N_d

    @property
    def dN(self) -> Matrix:
        """The rate of N~ [3k, nv], as in section V.B."""
        return self.dD @ self.N_l @ self.N_d + self.D @ self.dN_l @ self.N_d + self.D @ self.N_l @ self.dN_d

    @property
    def M(self) -> Matrix:
        """The masses, each repeated three times, on the diagonal of M~ [3k, 3k].                   (32a)"""
        return np.diag(np.repeat(self.masses, 3))


def point_matrices(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, *, system: str = "seven"
) -> PointMatrices:
    """Return the matrices for coordinates q [nq] and velocities qd [nv], every body replaced by a system of points.

    Systems are "seven", "four", "positive" and "signed": see `points`.
    """
    states, values = body_states(mechanism, q, qd), mechanism.values()
    points = [body_points(resolve_parts(body, values), system) for body in mechanism.bodies]
    n, k = len(states), sum(len(p.masses) for p in points)
    D, dD = np.zeros((2, 3 * k, 6 * n))
    N_l, dN_l = np.zeros((2, 6 * n, 6 * n))
    N_d, dN_d = np.zeros((2, 6 * n, mechanism.nv))
    at = 0
    for i, (body, own) in enumerate(zip(states, points, strict=True)):
        columns = slice(6 * i, 6 * i + 6)
        for r in own.positions:
            D[at : at + 3, columns], dD[at : at + 3, columns] = point_matrix(body, r)
            at += 3
        j = i
        while j >= 0:
            block = slice(6 * j, 6 * j + 6)
            N_l[columns, block], dN_l[columns, block] = propagation(states[j], body)
            j = states[j].parent
        N_d[columns, body.dofs], dN_d[columns, body.dofs] = body.P, body.dP
    masses = np.concatenate([np.zeros(0), *(p.masses for p in points)])
    return PointMatrices(masses, D, dD, N_l, dN_l, N_d, dN_d)


def point_matrix(body: BodyState, r: Matrix) -> tuple[Matrix, Matrix]:
    """Return a row [-d x, 1] of D_i, for a point at r in the body's frame, and its rate.       [Gupta2013] (14)-(22)

    d = R r points from the body's origin to the point. Differs from the paper: section V adds the link's length a_1 to
    all three components of d_1j; it belongs only to x, along the link.
    """
    d = body.R @ r
    return np.hstack([-skew(d), np.eye(3)]), np.hstack([-skew(np.cross(body.w, d)), np.zeros((3, 3))])


def propagation(before: BodyState, body: BodyState) -> tuple[Matrix, Matrix]:
    """Return A_ij = [1 0; a_ij x 1], a_ij from O_i to O_j, for a body i behind j, and its rate.    [Gupta2013] (29)"""
    A, dA = np.eye(6), np.zeros((6, 6))
    A[3:, :3] = skew(before.o - body.o)
    dA[3:, :3] = skew(before.v - body.v)
    return A, dA


def equations(
    mechanism: Mechanism,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    *,
    system: str = "seven",
) -> Equations:
    """Return the equations of motion by points, with the armature of drives on the diagonal of I.   [Gupta2013] (35)

    External wrenches [nb, 6] act on the bodies by N^T w, as would any forces f on the points with the sum D^T f.
    """
    p = point_matrices(mechanism, q, qd, system=system)
    states = body_states(mechanism, q, qd)
    N, dN, m = p.N, p.dN, np.repeat(p.masses, 3)[:, None]
    C = N.T @ (m * dN)
    weight = (p.masses[:, None] * gravity(mechanism)).ravel()  # (40)
    speeds = np.zeros(mechanism.nv) if qd is None else np.asarray(qd, dtype=float)
    external = (p.N_l @ p.N_d).T @ np.concatenate([np.zeros(0), *external_wrenches(states, wrenches)])
    inertia = N.T @ (m * N) + np.diag(armatures(mechanism))
    return Equations(I=inertia, convective=C @ speeds, g=-N.T @ weight, external=external, C=C)
