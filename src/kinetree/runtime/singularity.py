"""Weightless joints, beyond which no inertia resists: the inertia matrix is singular at every position."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Numbers
from ..compiler.ir.program import Array
from ..compiler.lower.build import UNROLLED, Request
from ..compiler.lower.loop_pattern import random_coordinates
from ..compiler.lower.sweeps import Tree
from ..compiler.rolled.binding import Job
from ..dynamics import Algorithm, products
from ..errors import InputError, ModelError
from ..model.mechanism import Mechanism, kept_with_mechanism
from .rolled import RolledKernel


def refuse_singular(mechanism: Mechanism, request: Request) -> None:
    """Raise ModelError if the inertias by which an algorithm divides are zero in every state."""
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
    compiling it, and as rolled code for long ones without flexible bodies.
    """
    return _weightless(mechanism, ())


def _weightless(mechanism: Mechanism, driven: tuple[str | int, ...]) -> tuple[str, ...]:
    """Return the weightless joints if some degrees of freedom, given by their entries in qd, are driven."""
    if not mechanism.nv:
        return ()
    q = random_coordinates(mechanism, np.random.default_rng(1))
    if driven or mechanism.has_flexible or len(mechanism.bodies) <= UNROLLED:
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


# --- Derivatives at singular positions of loops: an error for those that do not exist, and numbers for all others.


class SingularPositionError(InputError):
    """Derivatives that do not exist at a position; `fact` is the message without its remedies."""

    fact: str = ""


def complete(function: Any, arguments: tuple, result: Any) -> None:
    """Raise InputError for the first sample at a singular position of the loops, if the function is a derivative.

    Samples in a branch of motion in which the loops have a smaller rank everywhere get their derivatives in `result`.
    """
    from ..compiler.derive.closed import is_guarded, ranks_of

    mechanism, request = function.mechanism, function.request
    if not is_guarded(mechanism, request):
        return
    arrays = [np.asarray(a, dtype=float) for a in arguments]
    lead = np.broadcast_shapes(
        *(a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, function.inputs, strict=True))
    )
    named = {i.name: np.broadcast_to(a, (*lead, *i.shape)) for a, i in zip(arrays, function.inputs, strict=True)}
    q, values, known = named["q"], named.get("parameters", np.zeros((*lead, 0))), ranks_of(mechanism, request)
    ranks = np.broadcast_to(known.at(q, values), lead)
    low = ranks < known.usual
    for index in map(tuple, np.argwhere(low)):
        _refuse(function, index, q[index], int(ranks[index]), known.nearby(q[index], values[index]))
    if low.any():
        other = function.of(replace(request, derivative=replace(request.derivative, everywhere=True)))
        found = other.gufunc(*(x[low] for x in named.values()))
        pairs = [(result, found)] if len(function.outputs) == 1 else zip(result, found, strict=True)
        for place, x in pairs:
            place[low] = x


def _refuse(function: Any, index: tuple, q: Numbers, rank: int, nearby: int) -> None:
    """Raise InputError if the rank is larger nearby."""
    if rank >= nearby:
        return
    sample = f"sample [{', '.join(map(str, index))}], " if index else ""
    numbers = ", ".join(f"{x:.6g}" for x in q[:12]) + (", ..." if len(q) > 12 else "")
    held = " in the joints that are not driven" if function.request.driven else ""
    fact = (
        f"{function.mechanism.name!r} is at a singular position of its loops ({sample}q = [{numbers}]): their "
        f"equations have rank {rank}{held} there and {nearby} nearby"
    )
    remedy = "leave this sample out, " if index else ""
    error = SingularPositionError(
        f"{function.name}: {fact}, so there are no derivatives; move it away from there, {remedy}or give check=False, "
        "which returns NaN there"
    )
    error.fact = fact
    raise error
