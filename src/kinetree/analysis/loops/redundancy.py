"""Redundant equations, and the reactions that are not unique because of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import leading_rows, random_coordinates
from ...compiler.lower.sweeps import Tree
from ...dynamics.closure import rows as equations_of
from .kinematics import LoopKinematics, Mask, Motions
from .tolerances import CLOSED, IDLE, SHARE, STILL


@dataclass(frozen=True)
class Dependence:
    """An equation that follows from others, with their coefficients for lengths in units of the mechanism's length."""

    equation: int
    of: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Redundancy:
    """Equations that hold by themselves (`idle`), those that follow from others, and forces that are not unique.

    `open` are the equations whose multipliers are not unique although they affect the motion, `joints` the joints
    whose reactions depend on them. `idle_joints` have reactions that are not unique because of idle equations.
    """

    idle: tuple[int, ...]
    dependent: tuple[Dependence, ...]
    open: tuple[int, ...]
    joints: tuple[str, ...]
    idle_joints: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of redundant equations."""
        return len(self.idle) + len(self.dependent)


def redundancy(loops: LoopKinematics, q: Numbers) -> Redundancy:
    """Return the redundancy at a position, which should be a generic one."""
    count = len(loops.mechanism.closures)
    kept = _alive(loops)
    idle = np.setdiff1d(np.arange(count), kept)
    J = loops.jacobian(q)[kept]
    chosen = leading_rows(J, SHARE)
    dependent = [k for k in range(len(J)) if k not in chosen]
    found = []
    for k in dependent:
        shares = np.linalg.lstsq(J[chosen].T, J[k], rcond=None)[0] if chosen else np.zeros(0)
        big = SHARE * max(1.0, np.abs(shares).max(initial=0.0))
        of = tuple((int(kept[n]), float(x)) for n, x in zip(chosen, shares, strict=True) if abs(x) > big)
        found.append(Dependence(int(kept[k]), of))
    stresses = np.zeros((count, len(found)))
    for column, dependence in enumerate(found):
        stresses[dependence.equation, column] = 1.0
        for k, x in dependence.of:
            stresses[k, column] = -x
    opened = tuple(int(k) for k in np.flatnonzero(np.abs(stresses).max(axis=1, initial=0.0) > SHARE))
    return Redundancy(
        tuple(int(k) for k in idle),
        tuple(found),
        opened,
        _stressed(loops, q, stresses),
        _stressed(loops, q, np.eye(count)[:, idle]),
    )


def _alive(loops: LoopKinematics) -> NDArray[np.int64]:
    """Return the equations that depend on joints at some position of the tree; the others hold by themselves."""
    rng = np.random.default_rng(1)
    sizes = np.zeros(len(loops.mechanism.closures))
    for _ in range(3):
        J = loops.jacobian(np.array(random_coordinates(loops.mechanism, rng)))
        sizes = np.maximum(sizes, np.linalg.norm(J, axis=1))
    return np.flatnonzero(sizes > IDLE * sizes.max(initial=0.0))


def _stressed(loops: LoopKinematics, q: Numbers, stresses: Numbers) -> tuple[str, ...]:
    """Return the joints with reactions by multipliers [equations, count] that cause no joint torques."""
    inputs = {"q": [float(x) for x in q]}
    if loops.parameters is not None:
        inputs["parameters"] = [float(x) for x in np.asarray(loops.parameters)]
    tree = Tree(loops.mechanism, inputs)
    rows = equations_of(tree)
    carried: dict[str, Numbers] = {}
    for k in np.flatnonzero(np.abs(stresses).max(axis=1, initial=0.0) > SHARE):
        for chain, _, w in rows[k].wrenches:
            for i in reversed(chain):
                wrench = np.array([*w.n, *(loops.length * x for x in w.f)], dtype=float)
                share = np.outer(wrench, stresses[k] / loops.units[k])
                carried[i.joint.name] = carried.get(i.joint.name, 0.0) + share
                w = i.A.T @ w
    largest = max((float(np.abs(x).max()) for x in carried.values()), default=0.0)
    order = [j.name for j in loops.mechanism.joints]
    found = [name for name, x in carried.items() if np.abs(x).max() > SHARE * largest]
    return tuple(sorted(found, key=order.index))


# --- Closed positions that a mechanism can reach from a given one, and the rank of J there ---

WALKS, STEPS, LONG, LENGTH = 5, 4, 30, 0.15
"""Walks, steps per walk, most steps of the first walk, and length of a step [rad, or lengths of the mechanism]."""


@dataclass(frozen=True)
class Surroundings:
    """Motions by J at a position and at closed positions around it that the mechanism can reach."""

    here: Motions
    around: tuple[Motions, ...]
    positions: tuple[Numbers, ...]

    @property
    def rank(self) -> int:
        """The generic rank of J: the largest at the positions around, or that here if the mechanism cannot move."""
        return max((m.rank for m in self.around), default=self.here.rank)

    @property
    def mobility(self) -> int:
        """The degrees of freedom of finite motions."""
        return min((m.mobility for m in self.around), default=0)

    @property
    def closeness(self) -> float:
        """The smallest singular value of J here relative to that around: 0 at singular positions, about 1 at others."""
        at = self.rank - 1
        if at < 0 or not self.around:
            return 1.0
        usual = float(np.median([m.sizes[at] for m in self.around]))
        return float(self.here.sizes[at]) / usual if self.here.rank > at else 0.0

    @property
    def lost(self) -> Numbers:
        """The direction [nv] that is free, or nearly free, here and not at the positions around."""
        return self.here.rows[max(self.rank - 1, 0)]

    def stands_still(self) -> tuple[Mask, Mask]:
        """Return masks [nv] of degrees of freedom that cannot move here, and that cannot move around it either."""
        here = np.linalg.norm(self.here.motions, axis=1) < STILL
        around = [np.linalg.norm(m.motions, axis=1) < STILL for m in self.around]
        return here, np.all([here, *around], axis=0)

    def usual(self, q: Numbers) -> Numbers:
        """Return a position around at which J has the generic rank, or q if there is none."""
        for position, m in zip(self.positions, self.around, strict=True):
            if m.rank == self.rank:
                return position
        return q


def surroundings(loops: LoopKinematics, q: Numbers) -> Surroundings:
    """Walk from a closed position along its motions in random directions, the same in every run."""
    rng = np.random.default_rng(2)
    here = loops.motions(q)
    found: list[tuple[Motions, Numbers]] = []
    for walk in range(WALKS):
        at, motions, left = q, here, STEPS
        for _ in range(STEPS if walk else LONG):
            moved = _moved(loops, at, motions, rng)
            if moved is None or not left:
                break
            before, at, motions = motions, moved, loops.motions(moved)
            left = left - 1 if motions.rank <= before.rank else STEPS  # a highly singular position is left step by step
            found.append((motions, at))
    return Surroundings(here, tuple(m for m, _ in found), tuple(x for _, x in found))


def _moved(loops: LoopKinematics, q: Numbers, motions: Motions, rng: np.random.Generator) -> Numbers | None:
    """Return a closed position one step away, or None if no direction leads to one.

    The joint that moves most is held, so that Newton's method cannot return to q. A structure with only infinitesimal
    mobility then does not close.
    """
    for length in (LENGTH, LENGTH / 5):
        for _ in range(3 if motions.mobility else 0):
            direction = motions.motions @ rng.normal(size=motions.mobility)
            most = np.abs(direction).max()
            held = np.arange(len(direction)) == np.argmax(np.abs(direction))
            further, gap = loops.close(loops.move(q, direction * length / most), held)
            if gap <= CLOSED:
                return further
    return None
