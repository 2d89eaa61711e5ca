"""Independent degrees of freedom at a closed position: which lead, and how the others follow them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers
from ...model.axes import axis_names
from ...model.parts import GROUND
from ..joint_entries import entries, listed
from .kinematics import LoopKinematics

WEAK = 0.02
"""A preferred degree of freedom is taken where it has at least this share in the motions that are left."""
ENOUGH = 0.4
"""The first degree of freedom is taken that has this part of the largest share: threshold pivoting."""


@dataclass(frozen=True)
class Independence:
    """Which degrees of freedom lead at a position, and which follow: qd = G qd_independent.

    `names` are the independent ones, `dependent` the others, as joint or joint.axis; `at` is where the independent ones
    are in qd, and G [nv, mobility] has the rates of all to theirs, in SI units.
    """

    names: tuple[str, ...]
    dependent: tuple[str, ...]
    at: tuple[int, ...]
    G: Numbers

    @property
    def mobility(self) -> int:
        """The number of degrees of freedom that are left by the loops."""
        return len(self.names)

    def __str__(self) -> str:
        """Return who leads and by how much the others follow."""
        if not self.names:
            return "mobility 0: nothing can move"
        width = max(map(len, (*self.names, *self.dependent)))
        lines = [f"mobility {self.mobility}; {', '.join(self.names)} lead{'s' if self.mobility == 1 else ''}"]
        leaders = set(self.at)
        rest = iter(self.dependent)
        for k, row in enumerate(self.G):
            if k in leaders:
                continue
            terms = [f"{x:+.4g} {n}'" for x, n in zip(row, self.names, strict=True) if abs(x) > 1e-12]
            name = f"{next(rest)}'"
            lines.append(f"  {name:<{width + 1}} = {' '.join(terms) or '0'}")
        return "\n".join(lines)


def leading(loops: LoopKinematics, q: Numbers, prefer: str | Iterable[str] = ()) -> Independence:
    """Return degrees of freedom that determine all velocities at a closed position.

    The null space of J is factored with pivoting, lengths in parts of the mechanism's: each pivot is the first degree
    of freedom with a good share of the motions that are left, joints on the ground before others. Those that are
    preferred come before all, unless they are near a dead centre.
    """
    motions = loops.motions(q).motions
    wanted = [k for name in listed(prefer) for k in entries(loops.mechanism, name, 1)]
    left, at = motions.copy(), []
    grounded = np.array([loops.mechanism.joint(j).parent == GROUND for j, _, _ in axis_names(loops.mechanism, 1)])
    for _ in range(motions.shape[1]):
        shares = np.linalg.norm(left, axis=1)
        good = [k for k in wanted if k not in at and shares[k] > WEAK]
        enough = shares >= ENOUGH * shares.max()
        k = good[0] if good else int(np.argmax(enough & grounded if (enough & grounded).any() else enough))
        at.append(k)
        e = left[k] / shares[k]
        left = left - np.outer(left @ e, e)
        left[at] = 0.0
    at = sorted(at)
    G = motions @ np.linalg.inv(motions[at]) if at else motions
    G = loops.speeds[:, None] * G / loops.speeds[at]
    G[at] = np.eye(len(at))
    G[np.abs(G) < 1e-15 * np.abs(G).max(initial=1.0)] = 0.0
    return Independence(
        tuple(loops.labels[k] for k in at),
        tuple(x for k, x in enumerate(loops.labels) if k not in at),
        tuple(at),
        G,
    )
