"""Reverse Gaussian elimination of the inertia matrix, body by body: I = U D U^T, and the solutions based on it.

A joint of several degrees of freedom is eliminated column by column, the last first. It is a chain of joints of one
degree of freedom with massless bodies between them, all about one point. Columns are numbered 1 to nv, as in [Saha1999]
appendix B; the fields below hold column k at index k - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError
from . import tables
from .kinematics import Matrix
from .links import Links
from .tables import WRENCH, named_columns

FACTORS = {
    "psi": ("psi", "columns of U before they are propagated inward", "[Saha2013] (30)"),
    "mhat": ("mhat", "pivots", "[Saha2013] (30)"),
    "U": ("U", "upper triangular factor of I = U D U^T", "[Saha1999] (53)"),
    "D": ("D", "diagonal factor of I = U D U^T", "[Saha1999] (54)"),
    "inverse": ("I_inverse", "inverse of the inertia matrix", "[Saha1999] (55)"),
}
"""The matrices that `Elimination.table` shows by a name: the field, the meaning and the equation of each."""
PIVOT = 1e-14
"""Smallest pivot, relative to the composite inertia about the same axis: anything below is rounding."""


@dataclass(frozen=True)
class Elimination:
    """The reverse Gaussian elimination of I by the recursions over articulated bodies.   [Saha1999] (40)-(55)

    Mhat holds the articulated bodies M^_i, psihat and psi [6, nv] the columns M^ p and M^ p / m^, with further rows for
    the modes of deformed bodies, zero for others. mhat [nv] holds the
    pivots and alpha [nv, nv] the multipliers, alpha_ik in column k.
    """

    links: Links
    Mhat: tuple[Matrix, ...]
    psihat: Matrix
    psi: Matrix
    mhat: Matrix
    alpha: Matrix

    @property
    def U(self) -> Matrix:
        """The upper triangular factor: ones on the diagonal, alpha_ik above.                         [Saha1999] (53)"""
        return np.eye(len(self.mhat)) + self.alpha

    @property
    def D(self) -> Matrix:
        """The diagonal factor of the pivots m^.                                             [Saha1999] (54)"""
        return np.diag(self.mhat)

    def E(self, k: int) -> Matrix:
        """Return the elementary upper triangular matrix E_k = 1 - alpha_k lambda_k^T.   [Saha1999] (41)-(44)"""
        out = np.eye(len(self.mhat))
        out[:, self._checked(k, 1) - 1] -= self.alpha[:, k - 1]
        return out

    def L(self, k: int) -> Matrix:
        """Return L_k, I after elimination of columns nv ... k; L_{nv+1} is I.  [Saha1999] (40)-(46)

        Its entries are p_i^T M^_ik A_ij p_j. They come from the masses M^_ik of (49) and (50), not from I.
        """
        n = len(self.mhat)
        out = np.zeros((n, n))
        for r in range(n, self._checked(k, 1, n + 1) - 1, -1):  # rows unchanged since their own step
            out[r - 1, :r] = self._row(self._masses(r + 1), r)
        masses = self._masses(k)
        for r in range(1, k):
            out[r - 1, :r] = out[:r, r - 1] = self._row(masses, r)
        return out

    @cached_property
    def U_inverse(self) -> Matrix:
        """E = E_2 ... E_nv, the inverse of U without inverting anything.                 [Saha1999] (51), (53)"""
        out = np.eye(len(self.mhat))
        for k in range(2, len(self.mhat) + 1):
            out = out @ self.E(k)
        return out

    @cached_property
    def I_inverse(self) -> Matrix:
        """The inverse of the inertia matrix in closed form, U^-T D^-1 U^-1.                  [Saha1999] (55)"""
        return self.U_inverse.T @ (self.U_inverse / self.mhat[:, None])

    def table(self, name: str = "") -> str:
        """Return psi, psi^ and m^ of each degree of freedom as text, or one of FACTORS."""
        rows = tables.joint_labels((b.joint, b.p.shape[1]) for b in self.links.each)
        if name:
            field, meaning, equation = FACTORS[name]
            matrix = getattr(self, field)
            by_columns = rows if matrix.ndim == 2 else [(name, "")]
            wrench = tables.twist_labels([""], (*WRENCH, *tables.mode_names("Q", len(self.psi))))
            size = " x ".join(map(str, matrix.shape))
            by_rows, matrix = wrench if name == "psi" else rows, matrix.reshape(len(matrix), len(by_columns))
            return tables.text(matrix, by_rows, by_columns, heading=f"{name}: {meaning}, {size}  {equation}")
        columns = tables.twist_labels(["psihat", "psi"], (*WRENCH, *tables.mode_names("Q", len(self.psi))))
        matrix = np.column_stack([self.mhat, self.psihat.T, self.psi.T])
        return tables.text(matrix, rows, [("mhat", ""), *columns], heading="elimination, [Saha2013] (30)")

    def __repr__(self) -> str:
        """Return the range of the pivots."""
        n = len(self.mhat)
        span = f", pivots {self.mhat.min():.4g} to {self.mhat.max():.4g}" if n else ""
        return f"<elimination of {self.links.name!r}: {n} columns{span}; U, D, E(k), L(k), U_inverse, I_inverse>"

    def _masses(self, k: int) -> list[Matrix]:
        """Return M^_ik of every body: columns k and later are eliminated.                  [Saha1999] (49), (50)"""
        out = [b.M.copy() for b in self.links.each]
        for i in reversed(range(len(self.links))):
            b = self.links.each[i]
            for c in range(max(b.dofs.start, k - 1), b.dofs.stop):
                out[i] -= np.outer(self.psihat[: b.size, c], self.psi[: b.size, c])
            if b.parent >= 0:
                A = self.links.propagation(i, b.parent)
                out[b.parent] += A.T @ out[i] @ A
        return out

    def _row(self, masses: list[Matrix], r: int) -> Matrix:
        """Return i_rj = p_r^T M^_rk A_rj p_j for j = 1 ... r.                                  [Saha1999] (46)"""
        i = next(i for i, b in enumerate(self.links.each) if b.dofs.start < r <= b.dofs.stop)
        body, out = self.links.each[i], np.zeros(r)
        momentum = masses[i] @ body.p[:, r - 1 - body.dofs.start]
        for j in self.links.paths[i]:
            a = self.links.each[j]
            row = momentum @ self.links.propagation(i, j) @ a.p
            out[a.dofs.start : min(a.dofs.stop, r)] = row[: max(0, r - a.dofs.start)]
        out[r - 1] += body.armature[r - 1 - body.dofs.start]
        return out

    def _checked(self, k: int, lowest: int, highest: int | None = None) -> int:
        highest = len(self.mhat) if highest is None else highest
        if not lowest <= k <= highest:
            raise InputError(f"there is no step {k}; steps run from {highest} down to {lowest}")
        return k


def elimination(links: Links) -> Elimination:
    """Return the elimination of a tree's inertia matrix, tips first.    [Saha2013] (30), (31), [Saha1999] (46)-(50)

    Differs from the paper: the masses of all children are summed, instead of one successor's. Armature is added to the
    pivot. The articulated body is (50) for k = i + 1, where [Saha1999] prints k = i.
    """
    Mhat = [b.M.copy() for b in links.each]
    width = max((b.size for b in links.each), default=6)
    psihat, psi, mhat = np.zeros((width, links.nv)), np.zeros((width, links.nv)), np.zeros(links.nv)
    alpha = np.zeros((links.nv, links.nv))
    scale = links.inward([b.M for b in links.each])
    for i in reversed(range(len(links))):
        b = links.each[i]
        Mbar = Mhat[i].copy()
        for c in reversed(range(b.p.shape[1])):
            k, p = b.dofs.start + c, b.p[:, c]
            psihat[: b.size, k] = Mbar @ p  # [Saha2013] (30)
            mhat[k] = p @ psihat[: b.size, k] + b.armature[c]
            if not mhat[k] > PIVOT * (p @ scale[i] @ p + b.armature[c]):
                raise InputError(
                    f"joint {b.joint!r} moves nothing that has inertia (degree of freedom {c + 1}, pivot {mhat[k]:.3g})"
                    "; give the bodies behind it mass, or the joint armature, or leave a singular position"
                )
            psi[:, k] = psihat[:, k] / mhat[k]
            Mbar -= np.outer(psihat[: b.size, k], psi[: b.size, k])  # [Saha2013] (31)
            for j in links.paths[i]:
                a = links.each[j]
                alpha[a.dofs, k] = a.p.T @ links.propagation(i, j).T @ psi[: b.size, k]  # [Saha1999] (46)
            alpha[k:, k] = 0.0
        if b.parent >= 0:
            A = links.propagation(i, b.parent)
            carried = A.T @ Mbar @ A
            Mhat[b.parent] += (carried + carried.T) / 2  # asymmetric rounding would grow along a chain
    return Elimination(links, tuple(Mhat), psihat, psi, mhat, alpha)


@dataclass(frozen=True)
class Solution:
    """Forward dynamics U D U^T qdd = phi with all intermediate values.                  [Saha2013] (27)-(33)

    phi, tauhat = U^-1 phi, tautilde = D^-1 tauhat and qdd have shape [nv]; eta, eta_behind (eta_{i,i+1}), mu and
    mu_before (mu_{i,i-1}) have shape [nb, 6].
    """

    links: Links
    mhat: Matrix
    phi: Matrix
    tauhat: Matrix
    tautilde: Matrix
    qdd: Matrix
    eta: Matrix
    eta_behind: Matrix
    mu: Matrix
    mu_before: Matrix

    def table(self) -> str:
        """Return the steps as text: one table for the joints, two for the bodies."""
        rows = tables.joint_labels((b.joint, b.p.shape[1]) for b in self.links.each)
        names = ("phi", "mhat", "tauhat", "tautilde", "qdd")
        out = [named_columns({n: getattr(self, n) for n in names}, rows, "joints, [Saha2013] (28), (32), (33)")]
        bodies = [(b.name, "") for b in self.links.each]
        for titles, parts, what in (
            (("eta_i,i+1", "eta_i"), (self.eta_behind, self.eta), WRENCH),
            (("mu_i,i-1", "mu_i"), (self.mu_before, self.mu), tables.COMPONENTS),
        ):
            mode = "Q" if what is WRENCH else "e'"
            columns = tables.twist_labels(titles, (*what, *tables.mode_names(mode, parts[0].shape[1])))
            out.append(tables.text(np.hstack(parts), bodies, columns, heading="bodies, [Saha2013] (29), (33)"))
        return "\n\n".join(out)

    def __repr__(self) -> str:
        """Return the steps."""
        return self.table()


def solution(links: Links, by: Elimination, phi: Matrix) -> Solution:
    """Return qdd with I qdd = phi, in the three steps of the papers.       [Saha2013] 2.7, [Saha1999] (34)-(37)

    Differs from the paper: (35) of [Saha1999] prints psi_{i+1} tauhat_{i-1} for psi_{i+1} tauhat_{i+1}, and 2.7.2 of
    [Saha2013] prints U^T tauhat for U^T qdd. The eta of all children are summed, instead of one successor's.
    """
    n, nv = len(links), links.nv
    tauhat, qdd = np.zeros(nv), np.zeros(nv)
    eta, eta_behind, mu, mu_before = np.zeros((4, n, len(by.psi)))
    for i in reversed(range(n)):
        b = links.each[i]
        eta[i] = eta_behind[i]
        for k in reversed(range(b.dofs.start, b.dofs.stop)):
            tauhat[k] = phi[k] - b.p[:, k - b.dofs.start] @ eta[i, : b.size]  # (28)
            eta[i] += by.psi[:, k] * tauhat[k]  # (29)
        if b.parent >= 0:
            before = links.each[b.parent].size
            eta_behind[b.parent, :before] += links.propagation(i, b.parent).T @ eta[i, : b.size]
    tautilde = tauhat / by.mhat  # (32)
    for i, b in enumerate(links.each):
        if b.parent >= 0:
            before = links.each[b.parent].size
            mu_before[i, : b.size] = links.propagation(i, b.parent) @ mu[b.parent, :before]
        mu[i] = mu_before[i]
        for k in range(b.dofs.start, b.dofs.stop):
            qdd[k] = tautilde[k] - by.psi[:, k] @ mu[i]  # (33)
            mu[i, : b.size] += b.p[:, k - b.dofs.start] * qdd[k]
    return Solution(links, by.mhat, phi, tauhat, tautilde, qdd, eta, eta_behind, mu, mu_before)
