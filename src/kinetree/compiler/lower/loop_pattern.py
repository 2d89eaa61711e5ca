"""What the equations of closed loops are like in general, found on numbers before anything is traced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...dynamics import closed
from ...errors import ModelError
from ...joints import kind
from ...model.mechanism import Mechanism, resolved
from .sweeps import Tree

IDLE = 1e-20
"""A row of J I^-1 J^T this small beside its usual size is one that vanishes: J is then 1e-10 of its size."""

DEPENDENT = 1e-8
"""Pivots of J I^-1 J^T this small beside a row's usual size belong to rows that depend on others: J is then 1e-4 of it.
Redundant rows seem independent by the square of the gap, which is that of a step not yet closed; and a position this
near to a singular one is crossed without the row that is about to vanish, since what it says is lost in rounding."""

ROUNDING = 1e-12
"""Pivots this small beside their diagonal entry are what rounding leaves of rows that say the same everywhere."""

DEPENDENT_SINGLE = 1e-5
"""The same in single precision, where rounding alone makes pivots of 1e-7."""

RANK = 1e-7
"""Singular values of J this small beside the largest are zero, at positions that are closed to rounding."""


@dataclass(frozen=True)
class Closing:
    """The equations that take part (`kept`), the usual sizes of J I^-1 J^T's diagonal, and what is small beside them.

    Equations that are left out hold by themselves whatever the joints do, such as those across the plane of a planar
    mechanism.
    """

    kept: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()
    tolerance: float = DEPENDENT


@lru_cache(maxsize=256)
def closing(mechanism: Mechanism) -> Closing:
    """Return what is known of a mechanism's equations, from a few positions of its tree."""
    count = len(mechanism.closures)
    if not count:
        return Closing()
    rng = np.random.default_rng(1)
    sizes, pivots = np.zeros(count), np.zeros(count)
    for _ in range(3):
        tree = Tree(mechanism, {"q": random_coordinates(mechanism, rng)})
        tree.closing = Closing(tuple(range(count)), (0.0,) * count, ROUNDING)
        pulls = closed.at_rest(tree)
        sizes = np.maximum(sizes, np.array(pulls.diagonal(), dtype=float))
        pivots = np.maximum(pivots, np.array(pulls.factors().pivots, dtype=float))
    kept = tuple(int(k) for k in np.flatnonzero(sizes > IDLE * sizes.max()))
    _refuse_light(mechanism, [k for k in kept if ROUNDING * sizes[k] < pivots[k] < 10 * DEPENDENT * sizes[k]])
    return Closing(kept, tuple(map(float, sizes)))


def _refuse_light(mechanism: Mechanism, lost: list[int]) -> None:
    """Raise ModelError where masses alone make pivots so small that equations would seem to depend on others.

    At positions that do not close, rows that are redundant where they do are independent: only bodies that weigh next
    to nothing beside those that they hold together make a pivot small there.
    """
    if lost:
        names = ", ".join(dict.fromkeys(repr(mechanism.closures[k].name) for k in lost))
        raise ModelError(
            f"loop {names} holds heavy bodies together by bodies with less than some 1e-7 of their mass or inertia, "
            "and would be taken for redundant",
            where=f"mechanism {mechanism.name!r}",
            remedy="give the light bodies more mass, or put a rod in their place",
        )


def newton(
    residual: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    move: Callable[[np.ndarray, np.ndarray], np.ndarray],
    q: np.ndarray,
    *,
    held: np.ndarray | None = None,
    iterations: int = 60,
) -> tuple[np.ndarray, float]:
    """Return the closed position that Newton's method finds from q, and the largest residual that is left.

    Steps are the least ones, at most a radian long; directions that hardly close anything are left alone, and a step
    that does not bring the loops nearer is halved. `held` degrees of freedom stay.
    """
    gap = residual(q)
    for _ in range(iterations):
        size = np.linalg.norm(gap)
        if not size > 0:
            break
        J = jacobian(q)
        if held is not None:
            J = np.where(held, 0.0, J)
        step = -np.linalg.lstsq(J, gap, rcond=RANK)[0]
        step *= min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))
        for _ in range(12):
            tried = move(q, step)
            left = residual(tried)
            if np.linalg.norm(left) < size:
                break
            step /= 2
        else:
            break
        q, gap = tried, left
    return q, float(np.abs(gap).max(initial=0.0))


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
