"""Recursions over the bodies for the generalized matrices I, C and tau of the DeNOC, block by block."""

from __future__ import annotations

import numpy as np

from .articulated import CompositeBody
from .kinematics import Matrix, skew
from .links import Links


def composite_masses(links: Links) -> list[Matrix]:
    """Return M~_i = M_i + sum of A^T M~_c A over the children c.         [Saha2013] (20), [Saha1999] (23b)

    Differs from the paper: a sum over children, instead of one successor. (20) prints M~_{i+1} = 0 for M~_{n+1} = 0.
    """
    return links.inward([b.M for b in links.each])


def composite_convection(links: Links) -> list[Matrix]:
    """Return dM~_i = dM_i + sum of A^T dM~_c A over the children c.                         [Saha1999] (28)

    Differs from the paper: (28) has no A, which makes no difference about centers of mass.
    """
    return links.inward([b.dM for b in links.each])


def propagation_sums(links: Links, Mt: list[Matrix]) -> dict[tuple[int, int], Matrix]:
    """Return H~_ij = M~_i dA_ij + sum of A_ci^T H~_ci over the children c; H~_ii is that sum. [Saha1999] (28)

    Differs from the paper: a sum over children, instead of one successor. (27) prints a last row that repeats
    B_n2^T H~_{n,n-1}; it is H~_n1, ..., H~_{n,n-1}, O.
    """
    sums = [np.zeros((6, 6)) for _ in links.each]
    out: dict[tuple[int, int], Matrix] = {}
    for i in reversed(range(len(links))):
        for j in links.paths[i]:
            out[i, j] = Mt[i] @ links.propagation_rate(i, j) + sums[i]
        j = links.each[i].parent
        if j >= 0:
            sums[j] += links.propagation(i, j).T @ out[i, j]
    return out


def inertia_matrix(links: Links, Mt: list[Matrix]) -> Matrix:
    """Return I_ij = p_i^T M~_i A_ij p_j.                                   [Saha2013] (21), [Saha1999] (24)

    Differs from the paper: armature is added to the diagonal.
    """
    out = np.zeros((links.nv, links.nv))
    for i, b in enumerate(links.each):
        momentum = Mt[i] @ b.p
        for j in links.paths[i]:
            a = links.each[j]
            block = momentum.T @ links.propagation(i, j) @ a.p
            out[b.dofs, a.dofs], out[a.dofs, b.dofs] = block, block.T
        out[b.dofs, b.dofs] += np.diag(b.armature)
    return out


def convective_matrix(links: Links, Mt: list[Matrix]) -> Matrix:
    """Return C with dI/dt - 2 C skew, by blocks c_ij.                                       [Saha1999] (29)

    It is N^T (M dN + dM N), with W M for dM: see docs/theory/convective.md for the other matrices of this skewness.
    Differs from the paper: dp_j replaces Omega_j p_j, which is equal to it where axes are fixed in the child.
    A_ji^T dM~_j replaces dM~_j, which is equal to it about centers of mass.
    """
    out = np.zeros((links.nv, links.nv))
    dMt, Ht = composite_convection(links), propagation_sums(links, Mt)
    for i, b in enumerate(links.each):
        column = Mt[i] @ b.dp + (Ht[i, i] + dMt[i]) @ b.p
        for j in links.paths[i]:
            a, A = links.each[j], links.propagation(i, j)
            out[a.dofs, b.dofs] = a.p.T @ A.T @ column
            if j != i:
                out[b.dofs, a.dofs] = b.p.T @ (Mt[i] @ A @ a.dp + (Ht[i, j] + dMt[i] @ A) @ a.p)
    return out


def christoffel_matrix(links: Links, C: Matrix, N: Matrix) -> Matrix:
    """Return the Christoffel symbols of I: C minus sum tr(J) N_w^T (w x) N_w, J of each body about its center of mass.

    The difference does not contribute to C qd; see docs/theory/convective.md.
    """
    out = C.copy()
    for i, b in enumerate(links.each):
        Nw = N[6 * i : 6 * i + 3]
        out -= np.trace(CompositeBody(b.name, (b.name,), b.x, b.M).inertia) / 2 * Nw.T @ skew(b.w) @ Nw
    return out


def generalized_forces(links: Links, wrenches: Matrix) -> Matrix:
    """Return tau_i = p_i^T w~_i, w~_i = w_i + sum of A^T w~_c over the children c.           [Saha1999] (30)

    The wrenches [nb, 6] are about the points x, in the ground's axes.
    Differs from the paper: (25) of [Saha2013] omits w_i.
    """
    collected, tau = wrenches.copy(), np.zeros(links.nv)
    for i in reversed(range(len(links))):
        b = links.each[i]
        tau[b.dofs] = b.p.T @ collected[i]
        if b.parent >= 0:
            collected[b.parent] += links.propagation(i, b.parent).T @ collected[i]
    return tau


def weight_torques(links: Links) -> Matrix:
    """Return the torques that hold the mechanism at rest: gravity as an acceleration -g. [Saha1999] (32)"""
    rho = np.concatenate([np.zeros(3), -links.gravity])
    return generalized_forces(links, np.array([b.M @ rho for b in links.each]).reshape(-1, 6))
