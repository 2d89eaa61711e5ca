"""The pattern of the equations of loops: which take part and which depend on others, found before tracing.

Random positions, at which the loops are open, show which equations take part. Closed positions show which equations
depend on others. This is decided by geometry, from J with lengths relative to the mechanism's, and not by masses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...algebra.scalars import Numbers
from ...dynamics import closed, closure, kinematics
from ...errors import ModelError
from ...joints import kind
from ...model.flexible import modal_entries
from ...model.mechanism import Mechanism, kept_with_mechanism
from ...model.scales import loop_units
from .sweeps import Tree

# --- Newton's method for closing loops: of single positions by least squares, and of batches by compiled steps.

RANK = 1e-7
"""The ratio to the largest singular value of J below which a singular value counts as zero.

It holds at positions that are closed to rounding."""


def iterate(gap: Callable[[Numbers], Numbers], moved: Callable[[Numbers], Numbers], q: Numbers, rounds: int) -> Numbers:
    """Return positions [..., nq] after Newton steps, each until it is closed or `rounds` steps have been made.

    `gap` returns the gaps of positions [..., 1] as multiples of the tolerance, `moved` the positions one step further.
    """
    for _ in range(rounds):
        if not (open_ := gap(q) > 1.0).any():
            break
        q = np.where(open_, moved(q), q)
    return q


def newton(
    residual: Callable[[Numbers], Numbers],
    jacobian: Callable[[Numbers], Numbers],
    move: Callable[[Numbers, Numbers], Numbers],
    q: Numbers,
    *,
    held: np.ndarray | None = None,
    iterations: int = 60,
    enough: float = 0.0,
) -> tuple[Numbers, float]:
    """Return the closed position that Newton's method finds from q, and the largest residual that is left.

    Steps have least norm, and no entry larger than 1 (a radian). Directions with singular values below RANK are left
    out. A step that does not reduce the residual is halved. `held` degrees of freedom do not move. The search stops
    where the norm of the residual is at most `enough`.
    """
    left, stuck = residual(q), False

    def open_(q: Numbers) -> Numbers:
        return np.array([0.0 if stuck or not np.linalg.norm(left) > enough else np.inf])

    def moved(q: Numbers) -> Numbers:
        nonlocal left, stuck
        J = jacobian(q)
        if held is not None:
            J = np.where(held, 0.0, J)
        step = -np.linalg.lstsq(J, left, rcond=RANK)[0]
        step *= min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))
        for _ in range(12):
            tried = move(q, step)
            gap = residual(tried)
            if np.linalg.norm(gap) < np.linalg.norm(left):
                left = gap
                return tried
            step /= 2
        stuck = True  # no step along this direction reduces the residual
        return q

    q = iterate(open_, moved, q, iterations)
    return q, float(np.abs(left).max(initial=0.0))


IDLE = 1e-20
"""The ratio to the usual size of J I^-1 J^T below which a row vanishes; J is then 1e-10 of its size."""

DEPENDENT = 1e-8
"""The ratio of a pivot of J I^-1 J^T to its row's usual size below which the row depends on others.

J is then 1e-4 of its size. The pivot of a redundant row is proportional to the square of the gap, and the gap may be
that of a step not yet closed. Near a singular position, the row that is about to vanish is left out: its information
is lost in rounding."""

ROUNDING = 1e-13
"""The ratio of a pivot to its diagonal entry below which it is rounding error, for any masses."""

DEPENDENT_SINGLE, ROUNDING_SINGLE = 1e-5, 1e-6
"""DEPENDENT and ROUNDING in single precision, where rounding alone leaves pivots of 1e-7."""

USUAL = 1e-3
"""The least usual ratio of the pivot of an independent row to its diagonal entry.

Smaller ratios occur where light bodies are connected to heavy ones."""

LIGHT = 1e-11
"""The least ratio of a pivot to its diagonal entry that leaves some digits above rounding."""

BENT = 1e-4
"""The factor by which modes of flexible bodies move less than joints: these close the loops if they can."""

CLOSE = 1e-7
"""The largest gap of positions that are examined [rad, or lengths of the mechanism].

It is far below the root of DEPENDENT."""

REACHED = 1e-3
"""The gap [rad, or lengths of the mechanism] above which a position is not evidence for closed ones."""

STRIDE = 0.2
"""The distance from the guess to the second closed position that is examined [rad, or lengths of the mechanism]."""


@dataclass(frozen=True)
class Closing:
    """The equations that take part (`kept`), the usual sizes of the diagonal of J I^-1 J^T, and tolerances.

    Equations that are left out hold at every position, such as those perpendicular to the plane of a planar mechanism.
    `shares` are the factors by which light bodies make the pivots smaller than USUAL times the sizes, 1 elsewhere.
    `redundant` is true if some equation follows from others wherever the loops are closed. `misfit` is the
    contradiction between such equations [rad, or lengths of the mechanism].
    """

    kept: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    redundant: bool = False
    misfit: float = 0.0
    tolerance: float = DEPENDENT
    rounding: float = ROUNDING

    def tolerances(self, equations: Iterable[int]) -> list[float]:
        """Return the tolerances of some equations, relative to their sizes."""
        return [max(self.tolerance * self.shares[k], min(self.rounding, self.tolerance)) for k in equations]


@kept_with_mechanism
@lru_cache(maxsize=256)
def closing_pattern(mechanism: Mechanism) -> Closing:
    """Return the pattern of a mechanism's equations, found at a few positions."""
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
    """The findings at closed positions: independent equations, whether others depend on them, sizes and pivots.

    `size` and `pivot` are the diagonal entries of J I^-1 J^T and its pivots, `misfit` is the contradiction between
    equations that depend on others. Where the loops do not close from the guess, there are no findings.
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
    loops = PlainLoops(mechanism)
    positions = loops.positions()
    for q, J in positions:
        try:
            here = _factored(mechanism, q, kept.tolist())
        except ZeroDivisionError:  # Euler angles at their singular position: no inertia resists one of the joints
            continue
        found = [int(kept[k]) for k in leading_rows(J[kept], np.sqrt(DEPENDENT))]
        rank, independent = max(rank, len(found)), independent | set(found)
        size[kept], pivot[kept] = np.maximum(size[kept], here[0][kept]), np.maximum(pivot[kept], here[1])
    redundant = 0 < rank < len(kept)
    misfit = max(loops.closed(q)[1] for q, _ in positions) if redundant else 0.0
    return _Closed(tuple(sorted(independent)), redundant, misfit, size, pivot)


class _GivenRows(Tree):
    """A tree for which the equations that take part are given."""

    closing: Closing


def _factored(mechanism: Mechanism, q, kept) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of J I^-1 J^T at a position, and the pivots of the kept rows."""
    count = len(mechanism.closures)
    tree = _GivenRows(mechanism, {"q": [float(x) for x in q]})
    tree.closing = Closing(tuple(kept), (0.0,) * count, (1.0,) * count, tolerance=ROUNDING)
    pulls = closed.at_rest(tree)
    return np.array(pulls.diagonal(), dtype=float), np.array(pulls.factors().pivots, dtype=float)


class PlainLoops:
    """Residual, J and steps of a mechanism on plain numbers, with lengths relative to the mechanism's."""

    def __init__(self, mechanism: Mechanism) -> None:
        """Find the units of the equations and of the degrees of freedom."""
        self.mechanism = mechanism
        self.units, speeds = loop_units(mechanism)
        self.speeds = speeds.copy()
        self.speeds[modal_entries(mechanism, 1)] *= BENT

    def residual(self, q: np.ndarray) -> np.ndarray:
        """Return the residual of every equation."""
        return np.array(closure.closure_residual(Tree(self.mechanism, {"q": q.tolist()})), dtype=float) / self.units

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return J."""
        rows = closure.closure_jacobian(Tree(self.mechanism, {"q": q.tolist()}))
        return np.array(rows, dtype=float).reshape(len(self.units), -1) * self.speeds / self.units[:, None]

    def of_positions(self, q: np.ndarray) -> np.ndarray:
        """Return J with zero rows for equations that restrict velocities alone."""
        return np.where([[e.holonomic] for e in self.mechanism.closures], self.jacobian(q), 0.0)

    def move(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return q displaced by a step."""
        given = {"q": q.tolist(), "qd": (self.speeds * step).tolist()}
        return np.array(kinematics.integrate(Tree(self.mechanism, given)), dtype=float)

    def closed(self, q: np.ndarray, enough: float = 0.0, *, held: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Return the closed position that Newton's method finds from q, and its gap; `held` ones do not move."""
        return newton(self.residual, self.of_positions, self.move, q, held=held, iterations=20, enough=enough)

    def positions(self, count: int = 2) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return closed positions with J: one near the guess, then others at distances STRIDE from those before."""
        out: list[tuple[np.ndarray, np.ndarray]] = []
        rng = np.random.default_rng(2)
        q = self.regular(np.array(self.mechanism.neutral), rng)
        for _ in range(count):
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

    def regular(self, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a position near q at which all equations exist; a rod has no direction where its ends coincide."""
        for _ in range(5):
            try:
                self.jacobian(q)
            except ZeroDivisionError:
                q = self.move(q, STRIDE * rng.normal(size=self.mechanism.nv))
        return q


def leading_rows(J: np.ndarray, least: float) -> list[int]:
    """Return the rows that do not depend on earlier ones.

    What remains of such a row, orthogonal to the earlier ones, is longer than `least` times the longest row.
    """
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
    """Raise ModelError if masses make the pivots of independent equations as small as rounding."""
    if lost:
        names = ", ".join(dict.fromkeys(repr(mechanism.closures[k].name) for k in lost))
        raise ModelError(
            f"loop {names} connects heavy bodies by bodies with less than about 1e-11 of their mass or inertia: "
            "its forces have no correct digits after rounding",
            where=f"mechanism {mechanism.name!r}",
            remedy="give the light bodies more mass, or replace them by a rod",
        )


def random_coordinates(mechanism: Mechanism, rng: np.random.Generator) -> list[float]:
    """Return random coordinates of the tree."""
    return [float(x) for j in mechanism.resolved_joints for x in kind(j.kind).random(j, rng)]
