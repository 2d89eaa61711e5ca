"""Spatial operators: the equations of motion about centers of mass, by the large matrices of [Wolinski2015].

Velocities are V = [v; omega] of the centers of mass, the linear part first, in the ground's axes. The paper treats
chains of revolute joints. Here a body's block row has its parent's column, and H_j has one column per degree of freedom
of any joint. Derivations: docs/theory/spatial-operators.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..model.mechanism import Mechanism
from .equations import Equations, armatures, external_wrenches
from .kinematics import BodyState, Matrix, body_states, gravity, skew


@dataclass(frozen=True)
class SpatialOperators:
    """The operators of a mechanism of n bodies at one state: D qdd + C qd + G + Q = T.   [Wolinski2015] (23)

    B, Phi, dB, M and Omega are [6n, 6n], H and dH [6n, nv] (of (44), which prints 6n x 6n), F_G and F_Q [6n]; D and C
    [nv, nv], G and Q [nv]. D excludes the armature of drives.
    """

    B: Matrix
    H: Matrix
    Phi: Matrix
    dB: Matrix
    dH: Matrix
    M: Matrix
    Omega: Matrix
    F_G: Matrix
    F_Q: Matrix
    D: Matrix
    C: Matrix
    G: Matrix
    Q: Matrix


def spatial_operators(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, wrenches: ArrayLike | None = None
) -> SpatialOperators:
    """Return the operators for coordinates q [nq], velocities qd [nv] and wrenches [nb, 6] on the bodies."""
    states = body_states(mechanism, q, qd)
    g, external = gravity(mechanism), external_wrenches(states, wrenches)
    n, nv = len(states), mechanism.nv
    B, dB, M, Omega = np.zeros((4, 6 * n, 6 * n))
    H, dH = np.zeros((2, 6 * n, nv))
    F_G, F_Q = np.zeros((2, 6 * n))
    Phi = np.eye(6 * n)
    for j, body in enumerate(states):
        rows = slice(6 * j, 6 * j + 6)
        H[rows, body.dofs], dH[rows, body.dofs] = joint_matrices(body)
        M[rows, rows], Omega[rows, rows] = mass_matrices(body)
        F_G[rows][:3] = body.m * g  # (49)
        F_Q[rows] = np.concatenate([external[j][3:], external[j][:3] - np.cross(body.d, external[j][3:])])  # (50)
        if body.parent >= 0:
            parent = slice(6 * body.parent, 6 * body.parent + 6)
            B[rows, parent], dB[rows, parent] = shift_matrices(states[body.parent], body)  # (40), (43)
            # Differs from the paper: step 3 of section 3 prints the rows 6j - 5 to 6j of Phi; those of i are meant.
            Phi[rows, : 6 * j] = B[rows, parent] @ Phi[parent, : 6 * j]  # (42), by step 3 of section 3
    V = Phi @ H  # (11): V = Phi H qd
    dV = Phi @ (dB @ V + dH)  # (13), since the rate of Phi = (1 - B)^-1 is Phi dB Phi
    D = V.T @ M @ V  # (24)
    # Differs from the paper: (22) has Omega inside the bracket behind M Phi; (25), used here, is correct.
    C = V.T @ (M @ dV - Omega @ V)  # (25)
    return SpatialOperators(B, H, Phi, dB, dH, M, Omega, F_G, F_Q, D, C, -V.T @ F_G, -V.T @ F_Q)  # (26), (27)


def shift_matrices(parent: BodyState, body: BodyState) -> tuple[Matrix, Matrix]:
    """Return B_ij = [1 -r~; 0 1] with r from the parent's center of mass to the body's, and its rate.

    [Wolinski2015] (36), (38). Differs from the paper: (38) omits the tilde over its bracket, the rate of r_ij.
    """
    B, dB = np.eye(6), np.zeros((6, 6))
    B[:3, 3:] = -skew(body.c - parent.c)
    dB[:3, 3:] = -skew(_center_velocity(body) - _center_velocity(parent))
    return B, dB


def joint_matrices(body: BodyState) -> tuple[Matrix, Matrix]:
    """Return H_j, the joint's motion at the body's center of mass with the linear part first, and its rate.

    [Wolinski2015] (37), (39) for a revolute joint, where s_ji = -d, d from the joint to the center of mass. Here, for
    any joint motion P = [w; v] at the origin, H = [v + w x d; w]. Differs from the paper: the first term of (39) prints
    (omega~ h~) s for (omega~ h)~ s.
    """
    w, v, dw, dv = body.P[:3], body.P[3:], body.dP[:3], body.dP[3:]
    d, dd = skew(body.d), skew(np.cross(body.w, body.d))
    return np.vstack([v - d @ w, w]), np.vstack([dv - d @ dw - dd @ w, dw])


def mass_matrices(body: BodyState) -> tuple[Matrix, Matrix]:
    """Return M_j = diag(m 1, J) and Omega_j = diag(0, -omega~ J).        [Wolinski2015] (45)-(47)

    The minus sign is printed and correct: Omega V is on the side of the forces in (14).
    """
    M, Omega = np.zeros((2, 6, 6))
    M[:3, :3], M[3:, 3:] = body.m * np.eye(3), body.I
    Omega[3:, 3:] = -skew(body.w) @ body.I
    return M, Omega


def equations(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, wrenches: ArrayLike | None = None
) -> Equations:
    """Return the equations of motion by spatial operators, with the armature of drives on the diagonal of I."""
    s = spatial_operators(mechanism, q, qd, wrenches)
    speeds = np.zeros(mechanism.nv) if qd is None else np.asarray(qd, dtype=float)
    return Equations(I=s.D + np.diag(armatures(mechanism)), convective=s.C @ speeds, g=s.G, external=-s.Q, C=s.C)


def _center_velocity(body: BodyState) -> Matrix:
    return body.v + np.cross(body.w, body.d)
