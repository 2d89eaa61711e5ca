"""Independent degrees of freedom at a closed position, and the rates of the others with respect to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import PlainLoops
from ...errors import AssemblyError, InputError
from ...model.axes import axis_labels, axis_names, entries
from ...model.flexible import modal_entries
from ...model.mechanism import Mechanism
from ...model.parts import GROUND
from ..joint_entries import as_list
from .kinematics import LoopKinematics
from .tolerances import INDEPENDENT

WEAK = 0.02
"""The least share in the remaining motions with which a preferred degree of freedom is chosen."""
ENOUGH = 0.4
"""The part of the largest share with which the first degree of freedom is chosen: threshold pivoting."""


@dataclass(frozen=True, repr=False)
class Independence(Displayed):
    """Independent and dependent degrees of freedom at a position: qd = G qd_independent.

    `names` are the independent ones, `dependent` the others, as joint or joint.axis. `at` are the entries of the
    independent ones in qd. G [nv, mobility] has the rates of all with respect to these, in SI units.
    """

    names: tuple[str, ...]
    dependent: tuple[str, ...]
    at: tuple[int, ...]
    G: Numbers

    @property
    def mobility(self) -> int:
        """The number of degrees of freedom that the loops allow."""
        return len(self.names)

    def display(self) -> list[str | Table]:
        """Return the independent degrees of freedom and the rates of the others."""
        if not self.names:
            return ["mobility 0: nothing can move"]
        leaders, rows, rest = set(self.at), [], iter(self.dependent)
        for k, row in enumerate(self.G):
            if k not in leaders:
                terms = [f"{x:+.4g} {n}'" for x, n in zip(row, self.names, strict=True) if abs(x) > 1e-12]
                rows.append((f"  {next(rest)}'", f"= {' '.join(terms) or '0'}"))
        lead = f"mobility {self.mobility}; {', '.join(self.names)} lead{'s' if self.mobility == 1 else ''}"
        return [lead, *([Table(("", ""), tuple(rows))] if rows else [])]


def choose_leaders(
    loops: LoopKinematics, q: Numbers, prefer: str | Iterable[str] = (), *, positions: bool = False
) -> Independence:
    """Return degrees of freedom that determine all velocities at a closed position.

    The null space of J is factored with pivoting, with lengths in units of the mechanism's length. Each pivot is the
    first degree of freedom with a large enough share of the remaining motions, joints on the ground before others.
    Preferred ones come before all others, unless they are near a dead center. With `positions`, equations that restrict
    velocities alone are left out: the degrees of freedom determine all small displacements.
    """
    motions = (loops.displacements(q) if positions else loops.motions(q)).motions
    wanted = [k for name in as_list(prefer) for k in entries(loops.mechanism, name, 1)]
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


@lru_cache(maxsize=256)
def leaders_among(mechanism: Mechanism, actuated: tuple[int, ...], who: str) -> tuple[int, ...]:
    """Return the actuated degrees of freedom that determine the motion; InputError if there are too few.

    Two closed positions are examined, since the guess may be a dead center or a position with more motions than others.
    Modes of flexible bodies are held: no joint determines them.
    """
    rigid = np.setdiff1d(np.arange(mechanism.nv), modal_entries(mechanism, 1))
    own = [int(k) for k in np.searchsorted(rigid, actuated)]
    jacobians = (
        [J for _, J in PlainLoops(mechanism).positions()] if mechanism.closures else [np.zeros((1, mechanism.nv))]
    )
    if not jacobians:
        raise AssemblyError(f"{who}: the loops of {mechanism.name!r} do not close near its guess; correct the guess")
    found = []
    for J in jacobians:
        _, sizes, directions = np.linalg.svd(J[:, rigid])
        left = directions[int((sizes > INDEPENDENT * sizes.max(initial=0.0)).sum()) :].T
        at: list[int] = []
        mobility, least = left.shape[1], 1.0
        while len(at) < mobility:
            shares = np.linalg.norm(left[own], axis=1)
            k = own[int(np.argmax(shares))]
            if not shares.max() > INDEPENDENT:
                break
            least = min(least, float(shares.max()))
            e = left[k] / np.linalg.norm(left[k])
            left = left - np.outer(left @ e, e)
            at.append(k)
        found.append(
            (mobility, mobility - len(at), -least, tuple(sorted(at)), int(np.linalg.norm(left, axis=1).argmax()))
        )
    mobility, lost, _, leaders, moves = min(found)
    leaders, moves = tuple(int(rigid[k]) for k in leaders), int(rigid[moves])
    if lost:
        labels = axis_labels(mechanism, 1)
        raise InputError(
            f"{who}: the actuated joints ({', '.join(labels[k] for k in actuated)}) determine {len(leaders)} of the "
            f"{mobility} degrees of freedom of {mechanism.name!r}: with them held, {labels[moves]!r} still moves; "
            "actuate more joints, or others",
            path=("actuated",),
        )
    return leaders
