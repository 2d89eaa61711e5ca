"""Redundant equations, and the reactions that are not unique because of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...algebra.arrays import Numbers
from ...compiler.lower.loop_pattern import leading_rows, random_coordinates
from ...compiler.lower.sweeps import Tree
from ...dynamics.closure import rows as equations_of
from .kinematics import LoopKinematics

IDLE = 1e-10
"""The size of a row of J, relative to the largest, below which it counts as zero; well above rounding."""
SHARE = 1e-6
"""The size of coefficients, multipliers and wrenches, relative to the largest, below which they count as zero."""


@dataclass(frozen=True)
class Dependence:
    """An equation that follows from others, with their coefficients for lengths in parts of the mechanism's length."""

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
