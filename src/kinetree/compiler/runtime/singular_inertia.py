"""Joints that nothing with inertia resists: there the inertia matrix is singular at every position."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ... import joints as joint_kinds
from ...dynamics import ALGORITHMS, Algorithm, products
from ...errors import ModelError
from ...model.mechanism import Mechanism
from ..ir.program import Array
from ..lower.build import UNROLLED, Request
from ..lower.loop_pattern import random_coordinates
from ..lower.sweeps import Tree
from ..rolled.binding import Job
from .rolled_kernel import RolledKernel


def refuse_singular(mechanism: Mechanism, request: Request) -> None:
    """Raise ModelError where an algorithm divides by inertias that are zero whatever the state."""
    if ALGORITHMS[request.name].inverts and (joints := weightless_joints(mechanism)):
        named = ", ".join(map(repr, joints))
        raise ModelError(
            f"{request.name} needs an invertible inertia matrix, but nothing that has inertia resists joint {named}",
            where=f"mechanism {mechanism.name!r}",
            remedy="give the bodies behind it mass and inertia, or the joint an armature",
        )


@lru_cache(maxsize=256)
def weightless_joints(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the joints whose pivot in I = U D U^T vanishes in a general state: I is singular at every q.

    The page `resistance` of dynamics/products.py runs on plain numbers for short mechanisms, where that is quicker than
    to compile it, and as rolled code for long ones.
    """
    if not mechanism.nv:
        return ()
    q = random_coordinates(mechanism, np.random.default_rng(1))
    page = resistance_of_short if len(mechanism.bodies) <= UNROLLED else resistance_of_long
    left = np.asarray(page(mechanism, q))
    of_joint = np.repeat(np.arange(len(mechanism.joints)), [joint_kinds.kind(j.kind).NV for j in mechanism.joints])
    return tuple(mechanism.joints[k].name for k in np.unique(of_joint[left <= products.NOTHING]))


def resistance_of_short(mechanism: Mechanism, q: list[float]) -> list[float]:
    """Return what is left of each pivot at q, a fraction of the composite body's, by the page on plain numbers."""
    return products.resistance(Tree(mechanism, {"q": q}))


def resistance_of_long(mechanism: Mechanism, q: list[float]) -> np.ndarray:
    """Return what is left of each pivot at q, a fraction of the composite body's, by rolled code."""
    free = mechanism.free_parameters
    inputs = (Array("q", (mechanism.nq,)), *([Array("parameters", (len(free),))] if free else []))
    page = Algorithm(products.resistance, ("q",), "left", ("nv",))
    kernel = RolledKernel(Job(mechanism, "resistance", page, inputs, Array("left", (mechanism.nv,))))
    with np.errstate(all="ignore"):
        return kernel.gufunc(q, *([[p.value for p in free]] if free else []))
