"""ModalBody: a flexible body as the moments of its points, its modal stiffnesses, and its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.flexible import Moments
from ..algebra.nodes import Node
from ..algebra.vectors import to_moments
from ..errors import ModelError, unknown_name

NOISE = 1e-12
"""A moment this small, relative to the sum of the sizes of its terms, is the rounding error of a zero."""


ORTHOGONAL = 1e-10
"""A mass that couples two modes and is smaller than this, relative to their own, is a rounding error of a zero."""


@dataclass(frozen=True)
class ModalBody:
    """A flexible body by its numbers: names of modal coordinates, moments, stiffness and damping of each, and nodes.

    The modes are orthogonal: none has a stiffness [N/m or N m/rad] or damping that couples it to another one. `valid`
    are the largest coordinates for which deflections are small.
    """

    names: tuple[str, ...]
    moments: Moments
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    nodes: tuple[Node, ...] = ()
    valid: tuple[float, ...] = ()

    @classmethod
    def read(cls, path: str | Path, *, modes: int = 12, damping: float = 0.0, mass: float | None = None) -> ModalBody:
        """Read a mesh of finite elements and reduce it to `modes` shapes, each with a damping ratio.

        The .npz file has `places` [n, 3], `mass` and `stiffness` [3 n, 3 n] of the free body, the nodes `clamped` in
        the body's frame, and for each node NAME of the body, as `node_NAME`, three or more nodes of the mesh. All are
        in SI units. A given `mass` [kg], which is compared to 1 percent, shows that they are.
        """
        from .finite_elements import lumped, read_mesh, reduced

        if not isinstance(modes, int) or isinstance(modes, bool) or not isinstance(damping, int | float) or damping < 0:
            raise ModelError(
                f"{modes!r} modes with a damping ratio of {damping!r}",
                where=str(path),
                remedy="give numbers above zero",
            )
        mesh = read_mesh(path)
        total = float(lumped(mesh.mass).sum())
        if mass is not None and not abs(total - mass) <= 0.01 * abs(mass):
            raise ModelError(
                f"the mass of the mesh is {total:.6g} kg, not {mass:.6g} kg", where=str(path), remedy="save SI units"
            )
        return reduced(mesh, modes, float(damping))

    @property
    def modal(self) -> ModalBody:
        """The body itself: what a Beam has to compute."""
        return self

    def node(self, name: str) -> Node:
        """Return a node by name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise unknown_name("node", name, [n.name for n in self.nodes])

    @property
    def size(self) -> float:
        """The largest distance of a node from the body's origin [m]."""
        return max((float(np.linalg.norm(n.x)) for n in self.nodes), default=0.0)

    @property
    def rigid(self) -> dict[str, Any]:
        """Mass, center of mass and inertia about it of the body at rest."""
        m, mc, J = self.moments.m, self.moments.mc, self.moments.J
        central = [[J[a][b] - mc[a] * mc[b] / m for b in range(3)] for a in range(3)]  # numbers or formulas
        trace = central[0][0] + central[1][1] + central[2][2]
        rows = tuple(tuple((trace if a == b else 0.0) - central[a][b] for b in range(3)) for a in range(3))
        return {"mass": m, "com": tuple(x / m for x in mc), "inertia": to_moments(rows)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Points:
    """The points of a flexible body: masses [n], places [n, 3], Phi [n, m, 3] and G [n, m, m, 3]."""

    mass: np.ndarray
    x: np.ndarray
    Phi: np.ndarray
    G: np.ndarray

    def moments(self) -> Moments:
        """Return the sums over the points.                                        docs/theory/flexible.md (6)"""
        x, Phi, G = self.x, self.Phi, self.G
        if not np.all(self.mass >= 0) or not self.mass.sum() > 0:
            raise ModelError("the points of a flexible body have no mass", remedy="give positive masses")
        turn = np.zeros((3, 3, 3))  # the cross product, a x b = sum turn[i, a, b]
        for i, a, b in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            turn[i, a, b], turn[i, b, a] = 1.0, -1.0

        def total(rule: str, *factors: np.ndarray) -> Any:
            value = np.einsum(rule, self.mass, *factors)
            size = np.einsum(rule, self.mass, *(np.abs(f) for f in factors))
            return np.where(np.abs(value) <= NOISE * size, 0.0, value)

        N1 = total("n,nka,njb->jkab", Phi, Phi) + total("n,na,njkb->jkab", x, G)
        K = total("n,nja,nka->jk", Phi, Phi)
        weights = np.sqrt(np.diag(K))
        K = np.where(np.abs(K) <= ORTHOGONAL * np.outer(weights, weights), 0.0, K)
        return Moments(
            float(self.mass.sum()), _tuples(total("n,na->a", x)), _tuples(total("n,na,nb->ab", x, x)),
            _tuples(total("n,nja->ja", Phi)), _tuples(total("n,njka->jka", G)),
            _tuples(total("n,na,njb->jab", x, Phi)), _tuples(N1), _tuples((K + K.T) / 2),
            _tuples(_turned(turn, total("n,nja,nkb->jkab", Phi, Phi))),
            _tuples(_turned(turn, total("n,na,njkb->jkab", x, G))),
        )  # fmt: skip


def _turned(turn: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the cross products of sums of products a b^T."""
    return np.einsum("iab,jkab->jki", turn, products)


def _tuples(x: Any) -> Any:
    """Return an array as nested tuples of numbers."""
    return tuple(map(_tuples, x)) if np.ndim(x) else float(x) + 0.0
