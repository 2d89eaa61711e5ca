"""Pairs of geoms that MuJoCo tests for contact, with their combined friction.

Two geoms may touch if contype of one and conaffinity of the other have a common bit. They may not if their bodies are
welded together, if one body carries the other (unless it is the world), or if <exclude> names them. <pair> adds two
geoms with coefficients of its own. Friction and condim are those of the geom of higher priority, else the larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .mjcf_parts import Import


@dataclass(frozen=True)
class GeomPair:
    """Two geoms by index, with condim and the friction along two tangents, the larger one first."""

    geoms: tuple[int, int]
    dimension: int
    friction: tuple[float, float]

    @property
    def coefficient(self) -> float:
        """The coefficient of friction here: the smaller one, and zero for condim 1."""
        return 0.0 if self.dimension == 1 else self.friction[1]


def touching_pairs(given: Import) -> Iterator[GeomPair]:
    """Return the pairs of a model: first those of <pair>, then those that follow from the masks of bits."""
    m = given.model
    named = set[tuple[int, int]]()
    for k in range(m.npair):
        a, b = sorted((int(m.pair_geom1[k]), int(m.pair_geom2[k])))
        named.add((a, b))
        one, two = map(float, m.pair_friction[k][:2])
        yield GeomPair((a, b), int(m.pair_dim[k]), (max(one, two), min(one, two)))
    for a, b in np.argwhere(np.triu(_masks(m) & _bodies(given, m), 1)).tolist():
        if (a, b) not in named:
            yield _combined(m, a, b)


def _masks(m: Any) -> np.ndarray:
    """Return whether bits of two geoms match [ngeom, ngeom]."""
    types, others = np.asarray(m.geom_contype), np.asarray(m.geom_conaffinity)
    one = (types[:, None] & others[None, :]) != 0
    return one | one.T


def _bodies(given: Import, m: Any) -> np.ndarray:
    """Return whether the bodies of two geoms may touch [ngeom, ngeom]."""
    count = m.nbody
    weld = np.asarray(m.body_weldid)
    carrier = weld[np.asarray(m.body_parentid)[weld]]  # of the welded group
    apart = weld[:, None] != weld[None, :]
    if not m.opt.disableflags & given.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT:
        moves = (weld[:, None] != 0) & (weld[None, :] != 0)
        carried = weld[:, None] == carrier[None, :]
        apart &= ~(moves & (carried | carried.T))
    for signature in np.asarray(m.exclude_signature).tolist():
        a, b = signature >> 16, signature & 0xFFFF
        if a < count and b < count:
            apart[a, b] = apart[b, a] = False
    own = np.asarray(m.geom_bodyid)
    return apart[own[:, None], own[None, :]]


def _combined(m: Any, a: int, b: int) -> GeomPair:
    first, second = int(m.geom_priority[a]), int(m.geom_priority[b])
    if first != second:
        chosen = a if first > second else b
        mu = float(m.geom_friction[chosen][0])
        return GeomPair((a, b), int(m.geom_condim[chosen]), (mu, mu))
    mu = max(float(m.geom_friction[a][0]), float(m.geom_friction[b][0]))
    return GeomPair((a, b), max(int(m.geom_condim[a]), int(m.geom_condim[b])), (mu, mu))
