"""ModalBody: a flexible body as the moments of its points, its modal stiffnesses, and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.flexible import Bend, Moments
from ..algebra.nodes import Node
from ..algebra.vectors import to_moments
from ..errors import ModelError, unknown_name

NOISE = 1e-12
"""A moment this small, relative to the sum of the sizes of its terms, is the rounding error of a zero."""


ORTHOGONAL = 1e-10
"""A mass that couples two modes and is smaller than this, relative to their own, is a rounding error of a zero."""


SPANNED = 1e-9
"""A function this small, relative to the largest, is left out of those that span second-order displacements."""


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
        the body's frame, and for each node NAME of the body, as `node_NAME`, three or more nodes of the mesh. A .toml
        file names Matrix Market files of the matrices instead (docs/flexible.md). All are in SI units. A given `mass`
        [kg], which is compared to 1 percent, shows that they are.
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


MOST_MODES = 100
"""The most modes of a body that is given by its numbers: those are of the order of ten per pair of modes."""
SPREAD = 1e-9
"""The largest negative eigenvalue of a mass matrix with ones on its diagonal that may be rounding [1]."""


def numbers_of(body: ModalBody) -> dict[str, Any]:
    """Return a body as names and nested tuples of numbers, as `from_numbers` takes them; zeros are left out."""

    def unlike_zero(part: object, names: tuple[str, ...]) -> dict[str, Any]:
        return {key: getattr(part, key) for key in names if np.any(getattr(part, key))}

    nodes = [{"name": x.name, **unlike_zero(x, tuple(_node_shapes(1)))} for x in body.nodes]
    parts = {key: getattr(body, key) for key in ("names", "stiffness", "damping", "valid")}
    moments = unlike_zero(body.moments, tuple(_moment_shapes(1)))
    if body.moments.bends:
        moments["bends"] = [{key: getattr(bend, key) for key in _bend_shapes(1)} for bend in body.moments.bends]
    return {**parts, "moments": moments, "nodes": nodes}


def _moment_shapes(n: int) -> dict[str, tuple[int, ...]]:
    pair = (n, n, 3)
    return {
        "m": (), "mc": (3,), "J": (3, 3), "p": (n, 3), "g": pair, "N": (n, 3, 3), "N1": (n, n, 3, 3), "K": (n, n),
        "c": pair, "b": pair,
    }  # fmt: skip


def _bend_shapes(n: int) -> dict[str, tuple[int, ...]]:
    return {"mass": (), "T": (n, 3), "H": (n, n, 3)}


def _node_shapes(n: int) -> dict[str, tuple[int, ...]]:
    return {"x": (3,), "Phi": (n, 3), "G": (n, n, 3), "Psi": (n, 3)}


def from_numbers(table: Mapping[str, Any]) -> ModalBody:
    """Return a body of nested lists of numbers, or refuse other shapes, and masses that no points have."""
    _known(table, ("names", "stiffness", "damping", "valid", "moments", "nodes"), "")
    names = _names(table.get("names"), "names")
    n = len(names)
    if not 0 < n <= MOST_MODES:
        raise ModelError(f"{n} names of modes", where="names", remedy=f"give 1 to {MOST_MODES}")
    own = {key: _array(table.get(key, ()), (n,), key) for key in ("stiffness", "damping")}
    own["valid"] = _array(table["valid"], (n,), "valid") if table.get("valid") else ()
    for key, found in own.items():
        low = min(found, default=1.0)
        if low < 0 or (key == "valid" and low == 0):
            raise ModelError(f"{key} has an entry {low!r}", where=key, remedy="give numbers above zero")
    given = _known(table.get("moments"), (*_moment_shapes(n), "bends"), "moments")
    sums = {k: _array(given.get(k), shape, f"moments, {k}") for k, shape in _moment_shapes(n).items()}
    moments = Moments(**sums, bends=_bends(given.get("bends"), n))
    _check_positive(moments)
    nodes = []
    for item in table.get("nodes") or ():
        where = (
            f"node {item['name'][:80]!r}"
            if isinstance(item, Mapping) and isinstance(item.get("name"), str)
            else "nodes"
        )
        item = _known(item, ("name", *_node_shapes(n)), where)
        arrays = {key: _array(item.get(key), shape, f"{where}, {key}") for key, shape in _node_shapes(n).items()}
        nodes.append(Node(name=item.get("name"), **arrays))  # type: ignore[arg-type]
    _names([node.name for node in nodes], "nodes")
    return ModalBody(names, moments, **own, nodes=tuple(nodes))


def _bends(given: Any, n: int) -> tuple[Bend, ...]:
    if given is not None and not isinstance(given, list | tuple):
        raise ModelError("not a list", where="moments, bends", remedy="give a table for each bend")
    out = []
    for k, item in enumerate(given or ()):
        where, shapes = f"moments, bend {k + 1}", _bend_shapes(n)
        item = _known(item, tuple(shapes), where)
        bend = Bend(**{key: _array(item.get(key), shape, f"{where}, {key}") for key, shape in shapes.items()})
        if not bend.mass > 0:
            raise ModelError(f"the mass is {bend.mass!r}", where=where, remedy="give a number above zero")
        out.append(bend)
    return tuple(out)


def _known(table: Any, keys: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise ModelError("not a table", where=where, remedy=f"give {', '.join(keys)}")
    for key in table:
        if key not in keys:
            raise unknown_name("key", key, list(keys), where=where)
    return table


def _names(given: Any, where: str) -> tuple[str, ...]:
    good = isinstance(given, list | tuple) and all(isinstance(x, str) and x.isidentifier() for x in given)
    if not good or len(set(given)) < len(given):
        raise ModelError("the names are not different words", where=where, remedy="use letters, digits and _")
    return tuple(given)


def _array(given: Any, shape: tuple[int, ...], where: str) -> Any:
    """Return nested tuples of finite numbers of a shape; zeros for nothing."""
    if given is None:
        return _tuples(np.zeros(shape))
    if not shape:
        if isinstance(given, bool) or not isinstance(given, int | float) or not np.isfinite(given):
            raise ModelError(f"{str(given)[:80]!r} is no finite number", where=where, remedy="give one")
        return float(given)
    if not isinstance(given, list | tuple) or len(given) != shape[0]:
        size = len(given) if isinstance(given, list | tuple) else "no"
        raise ModelError(f"a list of {size} items where {shape[0]} belong", where=where, remedy=f"give [{shape[0]}]")
    return tuple(_array(x, shape[1:], where) for x in given)


def _check_positive(moments: Moments) -> None:
    """Refuse moments of which the mass matrix at rest gives negative kinetic energies.  docs/theory/flexible.md (7)"""
    J, mc, K = (np.array(x) for x in (moments.J, moments.mc, moments.K))
    N, p = np.array(moments.N), np.array(moments.p)
    across = np.cross(mc, np.eye(3)).T  # mc x a
    axial = np.stack([N[:, 1, 2] - N[:, 2, 1], N[:, 2, 0] - N[:, 0, 2], N[:, 0, 1] - N[:, 1, 0]])
    M = np.block([
        [np.trace(J) * np.eye(3) - J, across, axial],
        [across.T, moments.m * np.eye(3), p.T],
        [axial.T, p, K],
    ])  # fmt: skip
    size = np.sqrt(np.abs(np.diag(M)))
    size = np.where(size > 0, size, 1.0)
    least = float(np.linalg.eigvalsh((M + M.T) / np.outer(size, size) / 2).min())
    if (
        not moments.m > 0
        or not np.diag(K).min() > 0
        or least < -SPREAD
        or np.abs(M - M.T).max() > SPREAD * size.max() ** 2
    ):
        raise ModelError(
            "the mass matrix at rest is not that of any points",
            where="moments",
            remedy="give moments as kt.ModalBody computes them (docs/theory/flexible.md)",
        )


@dataclass(frozen=True)
class Points:
    """The points of a flexible body: masses [n], places [n, 3], Phi [n, m, 3] and G [n, m, m, 3]."""

    mass: np.ndarray
    x: np.ndarray
    Phi: np.ndarray
    G: np.ndarray

    def moments(self) -> Moments:
        """Return the sums over the points.                                  docs/theory/flexible.md (6), (11)"""
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
            float(self.mass.sum()),
            _tuples(total("n,na->a", x)),
            _tuples(total("n,na,nb->ab", x, x)),
            _tuples(total("n,nja->ja", Phi)),
            _tuples(total("n,njka->jka", G)),
            _tuples(total("n,na,njb->jab", x, Phi)),
            _tuples(N1),
            _tuples((K + K.T) / 2),
            _tuples(_turned(turn, total("n,nja,nkb->jkab", Phi, Phi))),
            _tuples(_turned(turn, total("n,na,njkb->jkab", x, G))),
            self._bends(total),
        )

    def _bends(self, total: Callable[..., Any]) -> tuple[Bend, ...]:
        """Return orthonormal functions that span the second-order displacements, component by component."""
        roots = np.sqrt(self.mass)
        basis = np.zeros((len(roots), 0))
        for component in np.moveaxis(self.G, 3, 0):
            columns = roots[:, None] * component.reshape(len(roots), -1)
            left = columns - basis @ (basis.T @ columns)
            if columns.size and np.abs(left).max() > NOISE * max(np.abs(columns).max(), np.finfo(float).tiny):
                functions, sizes, _ = np.linalg.svd(left, full_matrices=False)
                basis = np.hstack([basis, functions[:, sizes > SPANNED * sizes[0]]])
        psi = np.divide(basis, roots[:, None], out=np.zeros_like(basis), where=roots[:, None] > 0)
        T, H = total("n,ni,nja->ija", psi, self.Phi), total("n,ni,njka->ijka", psi, self.G)
        return tuple(Bend(1.0, _tuples(t), _tuples((h + h.transpose(1, 0, 2)) / 2)) for t, h in zip(T, H, strict=True))


def _turned(turn: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the cross products of sums of products a b^T."""
    return np.einsum("iab,jkab->jki", turn, products)


def _tuples(x: Any) -> Any:
    """Return an array as nested tuples of numbers."""
    return tuple(map(_tuples, x)) if np.ndim(x) else float(x) + 0.0
