"""The DeNOC matrices and the quantities that the papers derive from them, for any tree and any joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, unknown_name
from ..model.mechanism import Mechanism
from . import tables
from .articulated import ArticulatedBody, CompositeBody
from .elimination import Elimination, Solution, elimination, solution
from .equations import Equations
from .kinematics import Matrix, skew
from .links import ABOUT, Link, Links, links
from .tables import NAMES, heading, layout, overview, pattern


def denoc(mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, *, about: str = "origin") -> DeNOC:
    """Return the DeNOC matrices of a mechanism at coordinates q [nq] and joint velocities qd [nv], zero by default.

    Twists are taken at the joints' origins ("origin": A_ij of [Saha2013] section 3) or at the centers of mass
    ("centre": B_ij of [Saha1999]). The generalized matrices I, C and g are the same for both.
    """
    return DeNOC(links(mechanism, q, qd, about=about, flexible=True))


def equations(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike, wrenches: ArrayLike | None = None, *, about: str = "origin"
) -> Equations:
    """Return the equations of motion by the DeNOC matrices; external wrenches [nb, 6] are in body axes."""
    d = denoc(mechanism, q, qd, about=about)
    return Equations(d.I, d.C @ d.qd, d.g, d.external(wrenches), d.C)


@dataclass(frozen=True)
class DeNOC:
    """The matrices of I qdd + C qd + g = tau, by the papers' names, all in the ground's axes.

    Each is an attribute and an item: `d.N_l`, `d["N_l"]`. `d.table("I")` prints one with its blocks named, `repr(d)`
    lists them all. Each matrix is computed on first use.
    """

    links: Links

    @property
    def about(self) -> str:
        """The points at which twists are taken: "origin" or "centre"."""
        return self.links.about

    @property
    def bodies(self) -> tuple[Link, ...]:
        """The bodies with their joints: p, dp, M and the other quantities of each."""
        return self.links.each

    @property
    def qd(self) -> Matrix:
        """The joint velocities."""
        return self.links.qd

    @cached_property
    def t(self) -> Matrix:
        """The twists of all bodies, [6 n].                                                   [Saha1999] (3)"""
        return np.concatenate([b.t for b in self.bodies]) if self.bodies else np.zeros(0)

    @cached_property
    def N_l(self) -> Matrix:
        """The lower block triangular matrix of propagations.      [Saha2013] (9b), (44), [Saha1999] (17)"""
        return self.links.on_paths(self.links.propagation)

    @cached_property
    def N_d(self) -> Matrix:
        """The block diagonal matrix of joint motions.             [Saha2013] (9b), (45), [Saha1999] (17)"""
        return self.links.columns(lambda b: b.p)

    @cached_property
    def N(self) -> Matrix:
        """The natural orthogonal complement, t = N qd.                     [Saha2013] (9a), [Saha1999] (16)"""
        return self.N_l @ self.N_d

    @cached_property
    def dN_l(self) -> Matrix:
        """The rate of N_l."""
        return self.links.on_paths(self.links.propagation_rate)

    @cached_property
    def dN_d(self) -> Matrix:
        """The rate of N_d.                                                                  [Saha1999] (26)

        Differs from the paper: it is Omega N_d only where the joints' axes are fixed in their children.
        """
        return self.links.columns(lambda b: b.dp)

    @cached_property
    def dN(self) -> Matrix:
        """The rate of N."""
        return self.dN_l @ self.N_d + self.N_l @ self.dN_d

    @cached_property
    def M(self) -> Matrix:
        """The mass matrices of the bodies.                                 [Saha2013] (14), [Saha1999] (4)"""
        return self.links.diagonal(lambda b: b.M)

    @cached_property
    def Omega(self) -> Matrix:
        """The angular velocities, in both halves of each twist.             [Saha1999] (4), [Saha2013] (48)"""
        return self.links.diagonal(lambda b: b.Omega)

    @cached_property
    def W(self) -> Matrix:
        """The angular velocities, in the angular halves.                                   [Saha2013] (14)"""
        return self.links.diagonal(lambda b: b.W)

    @cached_property
    def E(self) -> Matrix:
        """Ones in the angular halves.                                              [Saha2013] (47b), (48)"""
        return np.diag(np.concatenate([[1.0, 1.0, 1.0, *(0.0,) * (b.size - 3)] for b in self.bodies] or [np.zeros(0)]))

    @cached_property
    def dM(self) -> Matrix:
        """The convective matrices of the bodies, M t' + dM t = w: W M about centers of mass.  [Saha1999] (8), (10)

        Differs from the paper: its name, mass rate, belongs to another matrix; see docs/theory/convective.md.
        """
        return self.links.diagonal(lambda b: b.dM)

    @cached_property
    def composites(self) -> tuple[CompositeBody, ...]:
        """The composite bodies M~_i, by recursion.                       [Saha2013] (20), [Saha1999] (23b)"""
        return tuple(
            CompositeBody(b.name, self._members(i), b.x, M[:6, :6])
            for i, (b, M) in enumerate(zip(self.bodies, self._Mt, strict=True))
        )

    @cached_property
    def Mtilde(self) -> Matrix:
        """The mass matrix of composite bodies, N_l^T M N_l.               [Saha2013] (19), [Saha1999] (22)

        Differs from the paper: (21) of [Saha1999] prints N_d^T M N_d.
        """
        lower = self.links.on_paths(lambda i, j: self._Mt[i] @ self.links.propagation(i, j))
        return np.tril(lower) + np.tril(lower, -1).T

    @cached_property
    def I(self) -> Matrix:  # noqa: E743 - the papers' letter
        """The generalized inertia matrix (GIM), N^T M N plus armature.      [Saha2013] (21), [Saha1999] (24)"""
        return inertia_matrix(self.links, self._Mt)

    @cached_property
    def C(self) -> Matrix:
        """The matrix of convective inertia terms (MCI), N^T (M dN + dM N).           [Saha1999] (25)-(29)"""
        return convective_matrix(self.links, self._Mt)

    @cached_property
    def C_christoffel(self) -> Matrix:
        """The other C with the same C qd and skewness, whose entries are the Christoffel symbols of I."""
        return christoffel_matrix(self.links, self.C, self.N)

    @cached_property
    def g(self) -> Matrix:
        """The joint torques that hold the mechanism at rest.                             [Saha1999] (30), (32)"""
        return weight_torques(self.links)

    def external(self, wrenches: ArrayLike | None) -> Matrix:
        """Return N^T w_ext of wrenches [nb, 6] about the joints' origins, in body axes; zeros for none."""
        if wrenches is None:
            return np.zeros(self.links.nv)
        given = np.asarray(wrenches, dtype=float)
        if given.shape != (len(self.links), 6):
            raise InputError(f"wrenches have shape {given.shape}; expected {(len(self.links), 6)}")
        turned = [(b.R @ w[:3], b.R @ w[3:]) for b, w in zip(self.bodies, given, strict=True)]
        moved = [
            np.array([*(n - np.cross(b.shift, f)), *f, *(0.0,) * (b.size - 6)])
            for b, (n, f) in zip(self.bodies, turned, strict=True)
        ]
        return generalized_forces(self.links, moved)

    @cached_property
    def elimination(self) -> Elimination:
        """The reverse Gaussian elimination of I, body by body: psi, m^, E_k, U, D.   [Saha1999] appendix B"""
        return elimination(self.links)

    @cached_property
    def articulated(self) -> tuple[ArticulatedBody, ...]:
        """The articulated bodies M^_i, by recursion.                        [Saha2013] (31), [Saha1999] (50)"""
        return tuple(
            ArticulatedBody(b.name, self._members(i), b.x, M[:6, :6])
            for i, (b, M) in enumerate(zip(self.bodies, self.elimination.Mhat, strict=True))
        )

    def forward_dynamics(self, tau: ArrayLike, wrenches: ArrayLike | None = None) -> Solution:
        """Return qdd for joint torques tau [nv], with all intermediate values.               [Saha2013] (27)-(33)

        Wrenches [nb, 6] are about the joints' origins, in body axes.
        """
        given = np.asarray(tau, dtype=float)
        if given.shape != (self.links.nv,):
            raise InputError(f"tau has shape {given.shape}; expected ({self.links.nv},)")
        phi = given - self.C @ self.qd - self.g + self.external(wrenches)
        return solution(self.links, self.elimination, phi)

    def composite(self, name: str) -> CompositeBody:
        """Return the composite body of a body and all bodies behind it."""
        return self.composites[self.links.index(name)]

    def articulated_body(self, name: str) -> ArticulatedBody:
        """Return the articulated body of a body and all bodies behind it."""
        return self.articulated[self.links.index(name)]

    def __getitem__(self, name: str) -> Matrix:
        """Return a matrix by its name, such as "N_l"."""
        if name not in NAMES:
            raise unknown_name("matrix", str(name), NAMES)
        return getattr(self, name)

    def table(self, name: str) -> str:
        """Return a matrix as text, with its blocks named by bodies and joints."""
        return tables.text(*layout(self, name), heading=heading(self, name))

    def latex(self, name: str) -> str:
        """Return a matrix as a LaTeX array, with its blocks named by bodies and joints."""
        return tables.latex(*layout(self, name))

    def pattern(self, name: str) -> str:
        """Return the arrangement of the blocks of N_l, N_d, N or Mtilde, in the papers' symbols."""
        return pattern(self, name)

    def __repr__(self) -> str:
        """Return the list of all matrices, by name."""
        return overview(self)

    def __str__(self) -> str:
        """Return the equations of motion as numbers."""
        title = f"I qdd + C qd + g = tau of {self.links.name!r}, by DeNOC about the {ABOUT[self.about]}"
        return "\n\n".join([title, *(self.table(name) for name in ("I", "C", "g"))])

    def _repr_html_(self) -> str:
        return "".join(tables.html(*layout(self, n), heading=heading(self, n)) for n in ("I", "C", "g"))

    def _repr_latex_(self) -> str:
        return "$$\n" + r",\quad ".join(f"{n} = {self.latex(n)}" for n in ("I", "C", "g")) + "\n$$"

    @cached_property
    def _Mt(self) -> list[Matrix]:
        return composite_masses(self.links)

    def _members(self, i: int) -> tuple[str, ...]:
        return tuple(self.bodies[k].name for k in self.links.behind[i])


# --- Recursions over the bodies for the generalized matrices I, C and tau, block by block


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
    """Return H~_ij = M~_i dA_ij + H~_ii A_ij, with H~_ii the sum of A_ci^T H~_ci over the children c. [Saha1999] (28)

    Differs from the paper: a sum over children, instead of one successor, and A_ij, which leaves H~_ii of rigid bodies
    as it is. (27) prints a last row that repeats
    B_n2^T H~_{n,n-1}; it is H~_n1, ..., H~_{n,n-1}, O.
    """
    sums = [np.zeros((b.size, b.size)) for b in links.each]
    out: dict[tuple[int, int], Matrix] = {}
    for i in reversed(range(len(links))):
        for j in links.paths[i]:
            out[i, j] = Mt[i] @ links.propagation_rate(i, j) + sums[i] @ links.propagation(i, j)
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
    for b, rows in zip(links.each, links.rows, strict=True):
        if b.size > 6:  # C of a deformed body, as points, has these entries already
            continue
        Nw = N[rows][:3]
        out -= np.trace(CompositeBody(b.name, (b.name,), b.x, b.M).inertia) / 2 * Nw.T @ skew(b.w) @ Nw
    return out


def generalized_forces(links: Links, wrenches: Sequence[Matrix]) -> Matrix:
    """Return tau_i = p_i^T w~_i, w~_i = w_i + sum of A^T w~_c over the children c.           [Saha1999] (30)

    The wrench of each body is about the point x, in the ground's axes, with the forces of the modes of a deformed one.
    Differs from the paper: (25) of [Saha2013] omits w_i.
    """
    collected, tau = [w.copy() for w in wrenches], np.zeros(links.nv)
    for i in reversed(range(len(links))):
        b = links.each[i]
        tau[b.dofs] = b.p.T @ collected[i]
        if b.parent >= 0:
            collected[b.parent] += links.propagation(i, b.parent).T @ collected[i]
    return tau


def weight_torques(links: Links) -> Matrix:
    """Return the torques that hold the mechanism at rest: gravity as an acceleration -g. [Saha1999] (32)"""
    rho = np.concatenate([np.zeros(3), -links.gravity])
    return generalized_forces(links, [b.M[:, :6] @ rho for b in links.each])
