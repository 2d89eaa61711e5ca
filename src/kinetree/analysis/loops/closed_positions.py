"""Closed positions that a mechanism can reach from a given one, and the rank of J there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers
from .kinematics import CLOSED, LoopKinematics, Mask, Motions

WALKS, STEPS, LONG, LENGTH = 5, 4, 30, 0.15
"""Walks, steps per walk, most steps of the first walk, and length of a step [rad, or lengths of the mechanism]."""
STILL = 1e-5
"""The largest share in any motion of a degree of freedom that counts as stationary."""


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
