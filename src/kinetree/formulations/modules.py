"""The DeNOC matrices of a tree by blocks of kinematic modules, the serial chains that form the tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from ..model import topology
from ..model.mechanism import Mechanism
from .kinematics import Matrix
from .links import Links, links

# --- Kinematic modules: the serial chains that form a tree ---


@dataclass(frozen=True)
class Module:
    """A serial chain of links that starts at the last link of its parent module.              [Saha2013] 3

    `number` is the index i of the paper's M_i. `parent` is an index into the list of modules, -1 for the ground. `rows`
    are the module's rows in the twists of all bodies, `dofs` its entries in the joint velocities.
    """

    number: int
    parent: int
    links: tuple[int, ...]
    names: tuple[str, ...]
    rows: slice
    dofs: slice

    @property
    def label(self) -> str:
        """The name of the module, such as M_1."""
        return f"M_{self.number}"

    def __repr__(self) -> str:
        """Return the label and the links."""
        return f"<module {self.label}: {' - '.join(self.names)}>"


def first_number(mechanism: Mechanism) -> int:
    """Return the number of the first module: 0 if it is a floating body that carries all others, else 1."""
    roots = [i for i, parent in enumerate(mechanism.parents) if parent < 0]
    floats = len(roots) == 1 and len(topology.modules(mechanism)[0]) == 1
    return 0 if floats and joint_kinds.kind(mechanism.joints[0].kind).NV == 6 else 1


def chains(tree: Links, mechanism: Mechanism) -> tuple[Module, ...]:
    """Return the modules of a mechanism, parents first."""
    found = topology.modules(mechanism)
    last = {chain[-1]: m for m, chain in enumerate(found)}
    out = []
    for m, chain in enumerate(found):
        first, end = tree.each[chain[0]], tree.each[chain[-1]]
        out.append(
            Module(
                number=m + first_number(mechanism),
                parent=last.get(first.parent, -1),
                links=chain,
                names=tuple(tree.each[i].name for i in chain),
                rows=slice(6 * chain[0], 6 * chain[-1] + 6),  # in depth order the bodies of a chain are adjacent
                dofs=slice(first.dofs.start, end.dofs.stop),
            )
        )
    return tuple(out)


def module_denoc(mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None) -> ModuleDeNOC:
    """Return the DeNOC matrices by modules at coordinates q [nq] and joint velocities qd [nv], zero by default."""
    tree = links(mechanism, q, qd)
    return ModuleDeNOC(tree, chains(tree, mechanism))


@dataclass(frozen=True)
class ModuleDeNOC:
    """The DeNOC matrices of a tree by module blocks; arguments i and j are indices into `modules`.

    A fixed joint has a block of zero columns. All matrices are about the joints' origins, in the ground's axes.
    """

    links: Links
    modules: tuple[Module, ...]

    def t_bar(self, i: int) -> Matrix:
        """Return the twists of a module's links, [6 eta].                                   [Saha2013] (38)"""
        return np.concatenate([self.links.each[k].t for k in self.modules[i].links])

    def A_bar(self, i: int, j: int) -> Matrix:
        """Return the module-twist propagation from module j to i behind it; 1 for i = j. [Saha2013] (41a)"""
        if i == j:
            return np.eye(6 * len(self.modules[i].links))
        return self._from_last(i, j, self.links.propagation)

    def dA_bar(self, i: int, j: int) -> Matrix:
        """Return the rate of A_bar."""
        if i == j:
            return np.zeros((6 * len(self.modules[i].links),) * 2)
        return self._from_last(i, j, self.links.propagation_rate)

    def N_bar_l(self, i: int) -> Matrix:
        """Return the propagations inside a module, lower block triangular.                  [Saha2013] (39)"""
        return self._inside(i, self.links.propagation)

    def N_bar_d(self, i: int) -> Matrix:
        """Return the joint motions of a module, block diagonal.                             [Saha2013] (39)"""
        return self._joints(i, "p")

    def N_bar(self, i: int) -> Matrix:
        """Return the module-joint-rate propagation, t_bar = A_bar t_bar_parent + N_bar qd. [Saha2013] (41b)"""
        return self.N_bar_l(i) @ self.N_bar_d(i)

    def dN_bar(self, i: int) -> Matrix:
        """Return the rate of N_bar."""
        rate = self._inside(i, self.links.propagation_rate)
        return rate @ self.N_bar_d(i) + self.N_bar_l(i) @ self._joints(i, "dp")

    @cached_property
    def N_l(self) -> Matrix:
        """The propagations between modules.                                                  [Saha2013] (44)

        Differs from the matrix by bodies: inside a module it is 1, since N_d holds the module's own propagations.
        """
        out = np.zeros((6 * len(self.links),) * 2)
        for i, module in enumerate(self.modules):
            for j in self.paths[i]:
                out[module.rows, self.modules[j].rows] = self.A_bar(i, j)
        return out

    @cached_property
    def N_d(self) -> Matrix:
        """The joint-rate propagations of the modules, block diagonal.                        [Saha2013] (45)"""
        out = np.zeros((6 * len(self.links), self.links.nv))
        for i, module in enumerate(self.modules):
            out[module.rows, module.dofs] = self.N_bar(i)
        return out

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each module, those on the path from the ground to it, itself last."""
        out: list[tuple[int, ...]] = []
        for i, module in enumerate(self.modules):
            out.append((i,) if module.parent < 0 else (*out[module.parent], i))
        return tuple(out)

    @cached_property
    def composites(self) -> tuple[Matrix, ...]:
        """The composite modules M~bar_i = Mbar_i + sum of A_bar^T M~bar_c A_bar: (20), for modules.

        Modules behind a module add only to the last block of its mass matrix.
        """
        out = [self._diagonal(i, "M") for i in range(len(self.modules))]
        for i, module in reversed(list(enumerate(self.modules))):
            if module.parent >= 0:
                A = self.A_bar(i, module.parent)
                out[module.parent] += A.T @ out[i] @ A
        return tuple(out)

    @cached_property
    def I(self) -> Matrix:  # noqa: E743 - the papers' letter
        """The GIM by module blocks I_ij = N_bar_i^T M~bar_i A_bar_ij N_bar_j, plus armature: (21), for modules."""
        out = np.zeros((self.links.nv,) * 2)
        for i, a in enumerate(self.modules):
            momentum = self.composites[i] @ self.N_bar(i)
            for j in self.paths[i]:
                b = self.modules[j]
                block = momentum.T @ self.A_bar(i, j) @ self.N_bar(j)
                out[a.dofs, b.dofs], out[b.dofs, a.dofs] = block, block.T
        return out + np.diag(self._armature)

    @cached_property
    def C(self) -> Matrix:
        """The MCI by module blocks, with dI/dt - 2 C skew: [Saha1999] (29), for modules.

        B~bar_i collects the convective terms of the modules behind module i, as M~bar_i collects their mass.
        """
        out = np.zeros((self.links.nv,) * 2)
        for i, a in enumerate(self.modules):
            M, B, N, dN = self.composites[i], self._convection[i], self.N_bar(i), self.dN_bar(i)
            column = M @ dN + B @ N
            for j in self.paths[i]:
                b, A, Nj = self.modules[j], self.A_bar(i, j), self.N_bar(j)
                out[b.dofs, a.dofs] = (A @ Nj).T @ column
                if j != i:
                    rate = self.dA_bar(i, j) @ Nj + A @ self.dN_bar(j)
                    out[a.dofs, b.dofs] = N.T @ (M @ rate + B @ A @ Nj)
        return out

    @cached_property
    def elimination(self) -> ModuleElimination:
        """The block elimination of I, module by module, tips first."""
        n = len(self.modules)
        M = [self._diagonal(i, "M") for i in range(n)]
        Psihat, Psi, mhat = [np.zeros((0, 0))] * n, [np.zeros((0, 0))] * n, [np.zeros((0, 0))] * n
        for i, module in reversed(list(enumerate(self.modules))):
            N = self.N_bar(i)
            Psihat[i] = M[i] @ N  # (30), for modules
            mhat[i] = N.T @ Psihat[i] + np.diag(self._armature[module.dofs])
            Psi[i] = np.asarray(np.linalg.solve(mhat[i], Psihat[i].T).T, dtype=float)
            if module.parent >= 0:
                A = self.A_bar(i, module.parent)
                M[module.parent] += A.T @ (M[i] - Psihat[i] @ Psi[i].T) @ A  # (31), for modules
        return ModuleElimination(self, tuple(M), tuple(Psihat), tuple(Psi), tuple(mhat))

    def __repr__(self) -> str:
        """Return the modules, one per line."""
        lines = [f"modules of {self.links.name!r}: {len(self.modules)}"]
        for module in self.modules:
            on = self.modules[module.parent].label if module.parent >= 0 else "ground"
            count = module.dofs.stop - module.dofs.start
            lines.append(f"  {module.label:<5} on {on:<7} {count:>2} dofs  {' - '.join(module.names)}")
        return "\n".join(lines)

    @cached_property
    def _convection(self) -> tuple[Matrix, ...]:
        """B~bar_i = dMbar_i + sum of A_bar^T (M~bar_c dA_bar + B~bar_c A_bar): [Saha1999] (28), for modules."""
        out = [self._diagonal(i, "dM") for i in range(len(self.modules))]
        for i, module in reversed(list(enumerate(self.modules))):
            if module.parent >= 0:
                A, dA = self.A_bar(i, module.parent), self.dA_bar(i, module.parent)
                out[module.parent] += A.T @ (self.composites[i] @ dA + out[i] @ A)
        return tuple(out)

    @property
    def _armature(self) -> Matrix:
        return np.concatenate([np.zeros(0), *(b.armature for b in self.links.each)])

    def _inside(self, i: int, block: Callable[[int, int], Matrix]) -> Matrix:
        chain = self.modules[i].links
        return np.block([[block(a, b) if a >= b else np.zeros((6, 6)) for b in chain] for a in chain])

    def _from_last(self, i: int, j: int, block: Callable[[int, int], Matrix]) -> Matrix:
        """Return blocks in the columns of the last link of module j."""
        chain, before = self.modules[i].links, self.modules[j].links
        out = np.zeros((6 * len(chain), 6 * len(before)))
        if j in self.paths[i]:
            out[:, -6:] = np.vstack([block(k, before[-1]) for k in chain])
        return out

    def _joints(self, i: int, what: str) -> Matrix:
        module = self.modules[i]
        out = np.zeros((6 * len(module.links), module.dofs.stop - module.dofs.start))
        for row, k in enumerate(module.links):
            b = self.links.each[k]
            at = slice(b.dofs.start - module.dofs.start, b.dofs.stop - module.dofs.start)
            out[6 * row : 6 * row + 6, at] = getattr(b, what)
        return out

    def _diagonal(self, i: int, what: str) -> Matrix:
        chain = self.modules[i].links
        out = np.zeros((6 * len(chain),) * 2)
        for row, k in enumerate(chain):
            out[6 * row : 6 * row + 6, 6 * row : 6 * row + 6] = getattr(self.links.each[k], what)
        return out


@dataclass(frozen=True)
class ModuleElimination:
    """I = U D U^T by module blocks: articulated modules Mhat, Psihat = Mhat N_bar, mhat = N_bar^T Psihat, Psi."""

    denoc: ModuleDeNOC
    Mhat: tuple[Matrix, ...]
    Psihat: tuple[Matrix, ...]
    Psi: tuple[Matrix, ...]
    mhat: tuple[Matrix, ...]

    @property
    def U(self) -> Matrix:
        """The upper factor: 1 on the diagonal, and N_bar_j^T A_bar_ij^T Psi_i where module j carries module i."""
        out = np.eye(self.denoc.links.nv)
        for i, a in enumerate(self.denoc.modules):
            for j in self.denoc.paths[i][:-1]:
                b = self.denoc.modules[j]
                out[b.dofs, a.dofs] = self.denoc.N_bar(j).T @ self.denoc.A_bar(i, j).T @ self.Psi[i]
        return out

    @property
    def D(self) -> Matrix:
        """The block diagonal factor of the articulated modules' inertias mhat."""
        out = np.zeros((self.denoc.links.nv,) * 2)
        for i, module in enumerate(self.denoc.modules):
            out[module.dofs, module.dofs] = self.mhat[i]
        return out
