"""Weightless joints, beyond which no inertia resists: the inertia matrix is singular at every position."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ... import joints as joint_kinds
from ...dynamics import ALGORITHMS, Algorithm, products
from ...errors import ModelError
from ...model.mechanism import Mechanism, kept_with_mechanism
from ..ir.program import Array
from ..lower.build import UNROLLED, Request
from ..lower.loop_pattern import random_coordinates
from ..lower.sweeps import Tree
from ..rolled.binding import Job
from .rolled_kernel import RolledKernel


def refuse_singular(mechanism: Mechanism, request: Request) -> None:
    """Raise ModelError if an algorithm divides by inertias that are zero in every state."""
    if not ALGORITHMS[request.name].inverts:
        return
    if joints := _weightless(mechanism, request.driven) if request.driven else weightless_joints(mechanism):
        named = ", ".join(map(repr, joints))
        raise ModelError(
            f"{request.name} requires an invertible inertia matrix, but no inertia resists the motion of joint {named}",
            where=f"mechanism {mechanism.name!r}",
            remedy="give the bodies beyond it mass and inertia, or the joint an armature",
        )


@kept_with_mechanism
@lru_cache(maxsize=256)
def weightless_joints(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the joints whose pivot in I = U D U^T vanishes at a random position; I is then singular at every q.

    `resistance` of dynamics/products.py runs on plain numbers for short mechanisms, because that is quicker than
    compiling it, and as rolled code for long ones.
    """
    return _weightless(mechanism, ())


def _weightless(mechanism: Mechanism, driven: tuple[str | int, ...]) -> tuple[str, ...]:
    """Return the weightless joints if some degrees of freedom, given by their entries in qd, are driven."""
    if not mechanism.nv:
        return ()
    q = random_coordinates(mechanism, np.random.default_rng(1))
    if driven or len(mechanism.bodies) <= UNROLLED:
        left = np.asarray(resistance_of_short(mechanism, q, frozenset(driven)))
    else:
        left = resistance_of_long(mechanism, q)
    of_joint = np.repeat(np.arange(len(mechanism.joints)), [joint_kinds.kind(j.kind).NV for j in mechanism.joints])
    return tuple(mechanism.joints[k].name for k in np.unique(of_joint[left <= products.NOTHING]))


def resistance_of_short(
    mechanism: Mechanism, q: list[float], driven: frozenset[str | int] = frozenset()
) -> list[float]:
    """Return each pivot at q as a fraction of the composite body's inertia, computed on plain numbers."""
    return products.resistance(Tree(mechanism, {"q": q}), driven)


def resistance_of_long(mechanism: Mechanism, q: list[float]) -> np.ndarray:
    """Return each pivot at q as a fraction of the composite body's inertia, computed by rolled code."""
    free = mechanism.free_parameters
    inputs = (Array("q", (mechanism.nq,)), *([Array("parameters", (len(free),))] if free else []))
    page = Algorithm(products.resistance, ("q",), "left", ("nv",))
    kernel = RolledKernel(Job(mechanism, "resistance", page, inputs, Array("left", (mechanism.nv,))))
    with np.errstate(all="ignore"):
        return kernel.gufunc(q, *([[p.value for p in free]] if free else []))
