"""Inverse dynamics of closed mechanisms by subsystems: each is solved with the results of those before it.

With its loops cut, a closed mechanism is a set of trees on the ground, the subsystems of [Saha2013] 4. Each has its own
equations (54); the unknowns are the torques of its actuators and the multipliers of the loops that end on it. A
subsystem with as many unknowns as equations is determinate and solved first; its multipliers are then known in the
others. Where none is determinate, the smallest determinate group is solved together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._support.tables import Displayed, Table
from ..errors import InputError, unknown_name
from ..model.axes import axis_labels, axis_names
from ..model.mechanism import Mechanism
from .closed_system import closed_equations
from .kinematics import Matrix

RANK = 1e-8
"""Smallest remainder of a row of J after elimination, relative to the largest: smaller rows are dependent."""
NOISE = 1e-13
"""Entries below this fraction of the largest count as zeros: they are rounding."""


@dataclass(frozen=True)
class Subsystem:
    """A joint on the ground with everything that it carries: its bodies and its degrees of freedom."""

    name: str
    bodies: tuple[str, ...]
    dofs: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """Subsystems that are solved together, with the names of the unknowns found and of those known before."""

    subsystems: tuple[str, ...]
    equations: int
    found: tuple[str, ...]
    known: tuple[str, ...]

    def __str__(self) -> str:
        """Return the step as one line of text."""
        given = f", with {', '.join(self.known)} known" if self.known else ""
        many = "1 equation" if self.equations == 1 else f"{self.equations} equations"
        return f"{' + '.join(self.subsystems)}: {many} for {', '.join(self.found)}{given}"


@dataclass(frozen=True, repr=False)
class Recursion(Displayed):
    """Torques [nv], multipliers [nc] (zero for redundant equations), and the steps that found them."""

    tau: Matrix
    multipliers: Matrix
    steps: tuple[Step, ...]

    def display(self) -> list[str | Table]:
        """Return the steps, one per row."""
        return [Table(("",), tuple((str(step),) for step in self.steps))]


def subsystems(mechanism: Mechanism) -> tuple[Subsystem, ...]:
    """Return the trees on the ground after all loops are cut, each with the name of its joint there."""
    root: list[int] = []
    for i, parent in enumerate(mechanism.parents):
        root.append(i if parent < 0 else root[parent])
    joints = [name for name, _, _ in axis_names(mechanism, 1)]
    out = []
    for r in dict.fromkeys(root):
        mine = [i for i, at in enumerate(root) if at == r]
        names = {mechanism.joints[i].name for i in mine}
        dofs = tuple(k for k, name in enumerate(joints) if name in names)
        out.append(Subsystem(mechanism.joints[r].name, tuple(mechanism.bodies[i].name for i in mine), dofs))
    return tuple(out)


def inverse_dynamics(
    mechanism: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    actuated: Iterable[str],
    wrenches: ArrayLike | None = None,
) -> Recursion:
    """Return the torques of actuated joints and the multipliers of a motion, subsystem by subsystem. [Saha2013] (54)

    The number of actuated degrees of freedom must be that of the mechanism.
    """
    e = closed_equations(mechanism, q, qd, wrenches)
    need = e.I @ np.asarray(qdd, dtype=float) + e.h
    driven, kept = _driven(mechanism, actuated), _independent(e.J)
    if len(driven) + len(kept) != len(need):
        raise InputError(
            f"{len(driven)} actuated degrees of freedom for {len(need) - len(kept)} of the mechanism; the recursion "
            "requires equal numbers; arm.actuation accepts any"
        )
    A = np.hstack([np.eye(len(need))[:, driven], e.J[kept].T])
    parts = [s for s in subsystems(mechanism) if s.dofs]
    names = [f"tau {axis_labels(mechanism, 1)[k]}" for k in driven]
    names += [f"{mechanism.closures[k].name} {mechanism.closures[k].label}" for k in kept]
    x, steps, solved = np.zeros(len(need)), [], np.zeros(len(need), dtype=bool)
    for group, own in _order(A, parts):
        rows = [k for s in group for k in parts[s].dofs]
        used = [int(u) for u in np.flatnonzero(solved) if np.abs(A[rows, u]).max() > NOISE * np.abs(A).max()]
        x[own] = _solved(A[np.ix_(rows, own)], need[rows] - A[np.ix_(rows, used)] @ x[used], [parts[s] for s in group])
        solved[own] = True
        found, known = (tuple(names[u] for u in chosen) for chosen in (own, used))
        steps.append(Step(tuple(parts[s].name for s in group), len(rows), found, known))
    tau, multipliers = np.zeros(len(need)), np.zeros(len(e.bias))
    tau[driven], multipliers[kept] = x[: len(driven)], x[len(driven) :]
    return Recursion(tau, multipliers, tuple(steps))


def _order(A: Matrix, parts: list[Subsystem]) -> list[tuple[list[int], list[int]]]:
    """Return groups of subsystems in solving order, each with the unknowns that it determines.

    Every equation is matched with its own unknown. A subsystem depends on those that determine its other unknowns.
    Subsystems that depend on each other form one group. The groups do not depend on the matching.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    pattern = np.abs(A) > NOISE * np.abs(A).max(initial=0.0)
    unknown = maximum_bipartite_matching(csr_array(pattern), perm_type="column")  # of each equation
    if (unknown < 0).any():
        bad = next(s for s in parts if (unknown[list(s.dofs)] < 0).any())
        raise _singular([bad])
    owner = np.empty(len(A), dtype=int)
    for s, part in enumerate(parts):
        owner[unknown[list(part.dofs)]] = s
    needs = np.zeros((len(parts), len(parts)), dtype=bool)
    for s, part in enumerate(parts):
        needs[s, owner[pattern[list(part.dofs)].any(axis=0)]] = True
    count, group = connected_components(csr_array(needs), directed=True, connection="strong")
    out, left = [], list(range(count))
    while left:
        done = {int(s) for members, _ in out for s in members}
        ready = next(g for g in left if set(np.flatnonzero(needs[group == g].any(axis=0))) <= done | _of(group, g))
        left.remove(ready)
        members = np.flatnonzero(group == ready)
        out.append(([int(s) for s in members], [int(u) for u in np.flatnonzero(np.isin(owner, members))]))
    return out


def _of(group: Matrix, g: int) -> set[int]:
    return {int(s) for s in np.flatnonzero(group == g)}


def _solved(A: Matrix, b: Matrix, parts: list[Subsystem]) -> Matrix:
    scale = np.abs(A).max(axis=0)  # 1 for torques, a lever arm for multipliers
    if not scale.all() or np.linalg.cond(A / scale) > 1 / (1e3 * np.finfo(float).eps):
        raise _singular(parts)
    return np.linalg.solve(A / scale, b) / scale


def _singular(parts: list[Subsystem]) -> InputError:
    names = ", ".join(repr(s.name) for s in parts)
    return InputError(
        f"the actuators do not hold the mechanism in this position: the equations of {names} are singular; actuate "
        "other joints, or see arm.actuation"
    )


def _driven(mechanism: Mechanism, actuated: Iterable[str]) -> list[int]:
    joints = [name for name, _, _ in axis_names(mechanism, 1)]
    wanted = list(actuated)
    for name in wanted:
        if name not in joints:
            raise unknown_name("joint", name, dict.fromkeys(joints), where="actuated")
    return [k for k, name in enumerate(joints) if name in wanted]


def _independent(J: Matrix) -> list[int]:
    """Return a largest set of independent rows of J, by elimination with pivoting."""
    from scipy.linalg import qr

    if not J.size:
        return []
    _, R, order = qr(J.T, mode="economic", pivoting=True)  # type: ignore[misc] - three with pivoting
    sizes = np.abs(np.diag(R))
    return sorted(int(k) for k in order[: int((sizes > RANK * sizes.max(initial=0.0)).sum())])
