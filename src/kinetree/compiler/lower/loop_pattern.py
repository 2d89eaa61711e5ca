"""What the equations of closed loops are like in general, found on numbers before anything is traced.

Positions of the tree, which are open, show which equations take part at all. Closed positions show which depend on
others: by geometry, from J with lengths in parts of the mechanism's, and not by the masses of its bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...dynamics import closed, closure, states
from ...errors import ModelError
from ...joints import kind
from ...model.mechanism import Mechanism, resolved
from ...model.scales import loop_units
from .newton import newton
from .sweeps import Tree

IDLE = 1e-20
"""A row of J I^-1 J^T this small beside its usual size is one that vanishes: J is then 1e-10 of its size."""

DEPENDENT = 1e-8
"""Pivots of J I^-1 J^T this small beside a row's usual size belong to rows that depend on others: J is then 1e-4 of it.
Redundant rows seem independent by the square of the gap, which is that of a step not yet closed; and a position this
near to a singular one is crossed without the row that is about to vanish, since what it says is lost in rounding."""

ROUNDING = 1e-13
"""Pivots this small beside their diagonal entry are what rounding leaves, whatever the masses are."""

DEPENDENT_SINGLE, ROUNDING_SINGLE = 1e-5, 1e-6
"""The same in single precision, where rounding alone makes pivots of 1e-7."""

USUAL = 1e-3
"""Pivots of independent rows that are smaller, beside the diagonal entry, come of light bodies beside heavy ones."""

LIGHT = 1e-11
"""The least of such pivots that leaves some digits above rounding."""

CLOSE = 1e-7
"""Gaps of positions that are examined, far below the root of DEPENDENT [rad, or lengths of the mechanism]."""

REACHED = 1e-3
"""Positions with a larger gap [rad, or lengths of the mechanism] say nothing of closed ones."""

STRIDE = 0.2
"""The distance from the guess to the second closed position that is examined [rad, or lengths of the mechanism]."""


@dataclass(frozen=True)
class Closing:
    """The equations that take part (`kept`), the usual sizes of J I^-1 J^T's diagonal, and what is small beside them.

    Equations that are left out hold by themselves whatever the joints do, such as those perpendicular to the plane of a
    planar mechanism. `shares` are how much smaller than USUAL of the sizes light bodies make the pivots, 1 elsewhere.
    `redundant` tells that some equation follows from others wherever the loops are closed, `misfit` by how much they
    contradict each other [rad, or lengths of the mechanism].
    """

    kept: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    redundant: bool = False
    misfit: float = 0.0
    tolerance: float = DEPENDENT
    rounding: float = ROUNDING

    @property
    def tolerances(self) -> list[float]:
        """What is small beside the size of each equation that takes part."""
        return [max(self.tolerance * self.shares[k], min(self.rounding, self.tolerance)) for k in self.kept]


@lru_cache(maxsize=256)
def closing(mechanism: Mechanism) -> Closing:
    """Return what is known of a mechanism's equations, from a few positions."""
    count = len(mechanism.closures)
    if not count:
        return Closing()
    rng = np.random.default_rng(1)
    sizes = np.zeros(count)
    for _ in range(3):
        sizes = np.maximum(sizes, _factored(mechanism, random_coordinates(mechanism, rng), range(count))[0])
    kept = np.flatnonzero(sizes > IDLE * sizes.max())
    shares = np.ones(count)
    found = _where_closed(mechanism, kept)
    for k in found.independent:
        if found.pivot[k] < USUAL * sizes[k]:
            sizes[k], shares[k] = found.size[k], min(1.0, found.pivot[k] / (USUAL * found.size[k]))
    _refuse_light(mechanism, [k for k in found.independent if USUAL * shares[k] < LIGHT])
    return Closing(
        tuple(kept.tolist()), tuple(sizes.tolist()), tuple(shares.tolist()), found.redundant, float(found.misfit)
    )


@dataclass(frozen=True)
class _Closed:
    """What is found at closed positions: independent equations, whether others depend on them, and numbers of all.

    `size` and `pivot` are the diagonal entries of J I^-1 J^T and its pivots, `misfit` is the contradiction of equations
    that depend on others. Where the loops do not close from the guess, nothing is known of them.
    """

    independent: tuple[int, ...]
    redundant: bool
    misfit: float
    size: np.ndarray
    pivot: np.ndarray


def _where_closed(mechanism: Mechanism, kept: np.ndarray) -> _Closed:
    count = len(mechanism.closures)
    size, pivot = np.zeros(count), np.zeros(count)
    rank, independent = 0, set[int]()
    loops = _Loops(mechanism)
    positions = loops.positions()
    for q, J in positions:
        found = [int(kept[k]) for k in leading_rows(J[kept], np.sqrt(DEPENDENT))]
        rank, independent = max(rank, len(found)), independent | set(found)
        here = _factored(mechanism, q, kept.tolist())
        size[kept], pivot[kept] = np.maximum(size[kept], here[0][kept]), np.maximum(pivot[kept], here[1])
    redundant = 0 < rank < len(kept)
    misfit = max(loops.closed(q)[1] for q, _ in positions) if redundant else 0.0
    return _Closed(tuple(sorted(independent)), redundant, misfit, size, pivot)


class _GivenRows(Tree):
    """A tree whose equations that take part are given."""

    closing: Closing


def _factored(mechanism: Mechanism, q, kept) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of J I^-1 J^T at a position, and the pivots of some rows."""
    count = len(mechanism.closures)
    tree = _GivenRows(mechanism, {"q": [float(x) for x in q]})
    tree.closing = Closing(tuple(kept), (0.0,) * count, (1.0,) * count, tolerance=ROUNDING)
    pulls = closed.at_rest(tree)
    return np.array(pulls.diagonal(), dtype=float), np.array(pulls.factors().pivots, dtype=float)


class _Loops:
    """Residual, J and steps of a mechanism on numbers, with lengths in parts of the mechanism's."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.units, self.speeds = loop_units(mechanism)

    def residual(self, q: np.ndarray) -> np.ndarray:
        return np.array(closure.closure_residual(Tree(self.mechanism, {"q": q.tolist()})), dtype=float) / self.units

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        rows = closure.closure_jacobian(Tree(self.mechanism, {"q": q.tolist()}))
        return np.array(rows, dtype=float).reshape(len(self.units), -1) * self.speeds / self.units[:, None]

    def move(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        given = {"q": q.tolist(), "qd": (self.speeds * step).tolist()}
        return np.array(states.integrate(Tree(self.mechanism, given)), dtype=float)

    def closed(self, q: np.ndarray, enough: float = 0.0) -> tuple[np.ndarray, float]:
        return newton(self.residual, self.jacobian, self.move, q, iterations=20, enough=enough)

    def positions(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return two closed positions with J: one near the guess, and one some way from it."""
        out: list[tuple[np.ndarray, np.ndarray]] = []
        q = np.array(guess(self.mechanism))
        rng = np.random.default_rng(2)
        for _ in range(2):
            if not np.isfinite(self.residual(q)).all():
                break
            q, gap = self.closed(q, CLOSE)
            if not gap < REACHED:
                break
            J = self.jacobian(q)
            out.append((q, J))
            _, sizes, rows = np.linalg.svd(J)
            free = rows[int((sizes > np.sqrt(DEPENDENT) * sizes.max(initial=0.0)).sum()) :]
            step = rng.normal(size=len(free)) @ free
            q = self.move(q, STRIDE * step / max(np.abs(step).max(initial=0.0), 1e-300))
        return out


def leading_rows(J: np.ndarray, least: float) -> list[int]:
    """Return the rows that do not depend on those before them: of which more than `least` of the largest is left."""
    chosen, basis = [], np.zeros((0, J.shape[1]))
    largest = np.linalg.norm(J, axis=1).max(initial=0.0)
    for k, row in enumerate(J):
        left = row - basis.T @ (basis @ row)
        left = left - basis.T @ (basis @ left)
        size = np.linalg.norm(left)
        if size > least * largest:
            chosen.append(k)
            basis = np.vstack([basis, left / size])
    return chosen


def _refuse_light(mechanism: Mechanism, lost: list[int]) -> None:
    """Raise ModelError where masses make the pivots of independent equations as small as rounding."""
    if lost:
        names = ", ".join(dict.fromkeys(repr(mechanism.closures[k].name) for k in lost))
        raise ModelError(
            f"loop {names} holds heavy bodies together by bodies with less than some 1e-11 of their mass or inertia: "
            "rounding leaves no digits of its forces",
            where=f"mechanism {mechanism.name!r}",
            remedy="give the light bodies more mass, or put a rod in their place",
        )


def guess(mechanism: Mechanism) -> list[float]:
    """Return the mechanism's own guess of a closed position, and no displacement where it has none."""
    given, out = dict(mechanism.guess), []
    for joint in resolved(mechanism.joints, mechanism.values()):
        out += given.get(joint.name) or kind(joint.kind).neutral(joint)
    return [float(x) for x in out]


def random_coordinates(mechanism: Mechanism, rng: np.random.Generator) -> list[float]:
    """Return random coordinates of the tree."""
    joints = resolved(mechanism.joints, mechanism.values())
    return [float(x) for j in joints for x in kind(j.kind).random(j, rng)]
