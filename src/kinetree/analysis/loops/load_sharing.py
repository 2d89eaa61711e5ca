"""Wrenches at the joints of a closed mechanism by the multipliers, and their sharing where motion leaves them open.

In a mechanism with redundant equations, only some combinations of multipliers act on the motion. Slightly compliant
joints share the rest as springs would: with the least sum of compliance times load squared over all joints, cut or
not. The choice of cuts has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import loops
from ...algebra.arrays import Numbers
from ...algebra.columns import Column, plain
from ...algebra.vectors import ZERO
from ...errors import InputError, unknown_name
from ...model.mechanism import Mechanism, resolved
from ...model.parts import GROUND
from ...model.topology import path
from .constraints import Split
from .placements import matrix, standing, values_of

Compliances = Mapping[str, float | Sequence[float]]
"""Compliance by the name of a joint or loop: a number, or six for [n; f] in the axes of the child (of frame b).

Moments count in newton meters by the length of the mechanism.
"""
Share = Compliances | Sequence[Compliances]
"""Compliances of which those that are not named have 1; or several in order, each for what those before leave open.

Of several, only the last has 1 for joints that are not named, the others 0.
"""
FADED = 1e-9
"""The size of a direction relative to all directions, below which the loads of a compliance do not depend on it."""


def transmission(mechanism: Mechanism, poses: Numbers, parameters: Numbers | None = None) -> Numbers:
    """Return T of W = T lambda, the wrenches [n; f] at joints that balance the loops, [..., nb + nl, 6, nc].

    The joints of the tree come first, with the wrench of the parent on the child at the joint's origin in the child's
    axes. Then come the loops, with the wrench of frame a's body on frame b's at b's origin in b's axes.
    """
    lead, nb = poses.shape[:-3], len(mechanism.bodies)
    ends = resolved(mechanism.loops, values_of(mechanism, parameters))
    T = np.zeros((*lead, nb + len(ends), 6, len(mechanism.closures)))
    index = {GROUND: -1} | {b.name: i for i, b in enumerate(mechanism.bodies)}
    at = 0
    for k, loop in enumerate(ends):
        place, wrench = _pulls(mechanism, poses, loop)
        mine = slice(at, at + wrench.shape[-1])
        for body, sign in ((loop.body_b, -1.0), (loop.body_a, 1.0)):
            for i in path(mechanism, index[body]):
                T[..., i, :, mine] += sign * _at(wrench, place, poses[..., i, :3, 3], poses[..., i, :3, :3])
        on = standing(mechanism, poses, loop.body_b, loop.placement_b)
        T[..., nb + k, :, mine] = _at(wrench, place, place, on[..., :3, :3])
        at = mine.stop
    return T


def shared(
    mechanism: Mechanism, at: Split, T: Numbers, loads: Numbers, multipliers: Numbers, share: Share | None
) -> Numbers:
    """Return the multipliers with the same effect on the motion that load joints least, [..., nc].

    `loads` [..., nb + nl, 6] are the wrenches at joints for the given multipliers. [Goncalves2023] (36)-(43) are two
    cases: equal joints, which carry half each, and a joint much stiffer than the others, which carries everything.
    """
    idle = at.idle
    *before, last = ranks_of(mechanism, share)
    for c in before:
        idle, multipliers, loads = _relieved(at, T, idle, loads, multipliers, c)
    weights, A = _weighted(at, T, idle, last)
    b = (weights * loads).reshape(*loads.shape[:-2], -1, 1)
    return multipliers - (idle @ (np.linalg.pinv(A, rcond=1e-9) @ b))[..., 0]


def relief(mechanism: Mechanism, at: Split, T: Numbers) -> Numbers:
    """Return the matrix B [..., nc, 6 (nb + nl)] of `shared` with equal compliances: multipliers - B loads."""
    weights, A = _weighted(at, T, at.idle, ranks_of(mechanism, None)[-1])
    return at.idle @ (np.linalg.pinv(A, rcond=1e-9) * weights.reshape(*weights.shape[:-2], 1, -1))


def _weighted(at: Split, T: Numbers, idle: Numbers, compliances: Numbers) -> tuple[Numbers, Numbers]:
    """Return the weights of wrenches by their compliances, and the weighted wrenches of idle multipliers."""
    weights = np.sqrt(compliances) / _lengths(at)
    # Loads of couplings alone act on no joint: these multipliers are already the smallest.
    return weights, (weights[..., None] * (T @ idle[..., None, :, :])).reshape(*T.shape[:-3], -1, T.shape[-1])


def _relieved(
    at: Split, T: Numbers, idle: Numbers, loads: Numbers, multipliers: Numbers, c: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Return idle multipliers that keep the least loads by compliances c, and multipliers and loads with these."""
    every = (T @ idle[..., None, :, :]) / _lengths(at)[..., None]
    A = (np.sqrt(c)[..., None] * every).reshape(*T.shape[:-3], -1, T.shape[-1])
    b = (np.sqrt(c) / _lengths(at) * loads).reshape(*loads.shape[:-2], -1, 1)
    U, sizes, Vt = np.linalg.svd(A, full_matrices=False)
    largest = np.sqrt(np.sum(every**2, axis=(-3, -2, -1)) * np.max(c))
    real = sizes > FADED * largest[..., None]
    along = (np.swapaxes(U, -1, -2) @ b)[..., 0]
    V = np.swapaxes(Vt, -1, -2)
    step = (idle @ (V @ np.where(real, along / np.where(real, sizes, 1.0), 0.0)[..., None]))[..., 0]
    rest = idle @ np.where(real[..., None, :], 0.0, V)
    return rest, multipliers - step, loads - (T @ step[..., None, :, None])[..., 0]


def _lengths(at: Split) -> Numbers:
    """Return the unit of each component of a wrench [n; f]: moments by the length of the mechanism, [..., 1, 6]."""
    return np.where(np.arange(6) < 3, at.length[..., None], 1.0)[..., None, :]


def ranks_of(mechanism: Mechanism, share: Share | None) -> list[Numbers]:
    """Return the compliances of each rank, [nb + nl, 6] each: joints first, then loops."""
    ranks = [share or {}] if share is None or isinstance(share, Mapping) else list(share) or [{}]
    return [_compliances(mechanism, c, float(k == len(ranks) - 1)) for k, c in enumerate(ranks)]


def _compliances(mechanism: Mechanism, given: Compliances, other: float) -> Numbers:
    """Return the compliance of each joint, then of each loop, [nb + nl, 6]: the given ones, or another."""
    if not isinstance(given, Mapping):
        raise InputError(f"share has {given!r}; expected compliances by joint or loop, or a list of such mappings")
    places: dict[str, list[int]] = {}
    for k, part in enumerate((*mechanism.joints, *mechanism.loops)):
        places.setdefault(part.name, []).append(k)
    out = np.full((len(mechanism.joints) + len(mechanism.loops), 6), other)
    for name, value in given.items():
        if name not in places:
            raise unknown_name("joint or loop", name, list(places), where="share")
        c = np.asarray(value, dtype=float)
        if c.shape not in ((), (6,)) or not (np.isfinite(c).all() and (c >= 0).all()):
            raise InputError(f"share of {name!r} is {value!r}; expected a compliance of 0 or more, or six of [n; f]")
        out[places[name]] = c
    return out


def _pulls(mechanism: Mechanism, poses: Numbers, loop: Any) -> tuple[Numbers, Numbers]:
    """Return b's origin [..., 3] and the wrenches there of unit multipliers, in the ground's axes, [..., 6, k]."""
    turn = matrix(loops.frame(loop), poses.shape[:-3])
    a = standing(mechanism, poses, loop.body_a, loop.placement_a)
    b = standing(mechanism, poses, loop.body_b, loop.placement_b)
    axes = a[..., :3, :3] @ turn
    back = np.swapaxes(axes, -1, -2)
    r = (back @ (b - a)[..., :3, 3:])[..., 0]
    R = back @ b[..., :3, :3] @ turn
    place: Any = tuple(Column(r[..., k]) for k in range(3))
    rotation: Any = tuple(tuple(Column(R[..., i, j]) for j in range(3)) for i in range(3))
    found = loops.equations(loop, place, rotation, ZERO, ZERO)
    wrench = np.empty((*poses.shape[:-3], 6, len(found)))
    for k, e in enumerate(found):
        for half, entries in enumerate((e.n, e.f)):
            columns = [np.broadcast_to(np.asarray(plain(x), dtype=float), r.shape[:-1]) for x in entries]
            local = np.stack(columns, axis=-1)
            wrench[..., 3 * half : 3 * half + 3, k] = (axes @ local[..., None])[..., 0]
    return b[..., :3, 3], wrench


def _at(wrench: Numbers, place: Numbers, point: Numbers, axes: Numbers) -> Numbers:
    """Return wrenches [..., 6, k] about another point, in other axes."""
    n, f = wrench[..., :3, :], wrench[..., 3:, :]
    arm = np.broadcast_to((place - point)[..., None, :], np.swapaxes(f, -1, -2).shape)
    moved = n + np.swapaxes(np.cross(arm, np.swapaxes(f, -1, -2)), -1, -2)
    back = np.swapaxes(axes, -1, -2)
    return np.concatenate([back @ moved, back @ f], axis=-2)
