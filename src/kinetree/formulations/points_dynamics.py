"""The equations of motion of a mechanism made of points: each has a mass and a velocity.   [Gupta2013] (14)-(35)

Every body is replaced by an equimomental system; N~ = D N_l N_d gives the points' velocities. Newton's equation for
each point is the only law of motion used: no rotational one is needed. Vectors are in the ground's axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..model.mechanism import Mechanism, resolve_parts
from .equations import Equations, armatures, external_wrenches
from .kinematics import BodyState, Matrix, body_states, gravity, skew
from .points import body_points


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
