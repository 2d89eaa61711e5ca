"""Wrenches at the joints of a closed mechanism by the multipliers, and their sharing where motion leaves them open.

In a mechanism with redundant equations, only some combinations of multipliers act on the motion. Slightly compliant
joints share the rest as springs would: with the least sum of compliance times load squared over all joints, cut or
not. The choice of cuts has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import loops
from ...algebra.columns import Column, plain
from ...algebra.scalars import Numbers
from ...algebra.vectors import ZERO
from ...compiler.ir.program import Program
from ...compiler.ir.trace import Op
from ...errors import InputError, unknown_name
from ...model.mechanism import Mechanism, resolve_parts
from ...model.parameters import names_in
from ...model.parts import GROUND
from ...model.topology import path
from ...runtime.compiled import CompiledMechanism
from .constraints import Split, singular_split
from .samples import frame_pose, matrix, values_of

if TYPE_CHECKING:
    from ...model.parts import Loop

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
    ends = resolve_parts(mechanism.loops, values_of(mechanism, parameters))
    T = np.zeros((*lead, nb + len(ends), 6, len(mechanism.closures)))
    index = {GROUND: -1} | {b.name: i for i, b in enumerate(mechanism.bodies)}
    at = 0
    for k, loop in enumerate(ends):
        place, wrench = _pulls(mechanism, poses, loop)
        mine = slice(at, at + wrench.shape[-1])
        for body, sign in ((loop.body_b, -1.0), (loop.body_a, 1.0)):
            for i in path(mechanism, index[body]):
                T[..., i, :, mine] += sign * _at(wrench, place, poses[..., i, :3, 3], poses[..., i, :3, :3])
        on = frame_pose(mechanism, poses, loop.body_b, loop.placement_b)
        T[..., nb + k, :, mine] = _at(wrench, place, place, on[..., :3, :3])
        at = mine.stop
    return T


def share_loads(
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
    """Return the matrix B [..., nc, 6 (nb + nl)] of `share_loads` with equal compliances: multipliers - B loads."""
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
        if not (isinstance(value, float) and 0.0 <= value < inf):
            c = np.asarray(value, dtype=float)
            if c.shape not in ((), (6,)) or not (np.isfinite(c).all() and (c >= 0).all()):
                what = f"share of {name!r} is {value!r}"
                raise InputError(f"{what}; expected a compliance of 0 or more, or six of [n; f]")
        out[places[name]] = value
    return out


def _pulls(mechanism: Mechanism, poses: Numbers, loop: Loop) -> tuple[Numbers, Numbers]:
    """Return b's origin [..., 3] and the wrenches there of unit multipliers, in the ground's axes, [..., 6, k]."""
    turn = matrix(loops.frame(loop), poses.shape[:-3])
    a = frame_pose(mechanism, poses, loop.body_a, loop.placement_a)
    b = frame_pose(mechanism, poses, loop.body_b, loop.placement_b)
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


# --- Loads of many designs of a closed mechanism along one motion, where all designs have the same geometry ---
#
# The loads are then linear in the forces of each design, with matrices that depend on the position alone. They are
# computed once for all designs: W = M1 W0 + M2 (needed torque - acting torque), where W0 are the reactions of the tree
# for the motion.


def geometry(system: CompiledMechanism) -> frozenset[int] | None:
    """Return the free parameters, by entry, on which poses of bodies or frames of loops depend; None if unknown."""
    free = system.mechanism.free_parameters
    program = system.function("poses").program
    if not isinstance(program, Program):  # rolled code is not examined
        return None
    group = [array.name for array in program.inputs].index("parameters") if free else -1
    used = {op[2] for op in program.ops if op[0] is Op.INPUT and op[1] == group}
    named = names_in((system.mechanism.loops, system.mechanism.couplings))
    return frozenset(used | {k for k, p in enumerate(free) if p.name in named})


def same_geometry(system: CompiledMechanism, parameters: Numbers) -> bool:
    """Return whether the parameters [n, np] that differ affect neither poses of bodies nor frames of loops."""
    differing = np.flatnonzero((parameters != parameters[:1]).any(axis=0)).tolist()
    own = geometry(system)
    return own is not None and not own & set(differing)


def common_loads(
    system: CompiledMechanism,
    q: Numbers,
    qd: Numbers,
    qdd: Numbers,
    *,
    tau: Numbers,
    wrenches: Numbers | None,
    parameters: Numbers,
) -> tuple[Numbers, Numbers]:
    """Return the wrenches at joints [n, nt, nb, 6] and at loops [n, nt, nl, 6] for one motion, [nt, .] each.

    `tau` [n, nt, nv], `wrenches` [n, nt, nb, 6] and `parameters` [n, np] are those of each design.
    """
    options: dict[str, Any] = {"parameters": parameters[:, None, :], "forces": False} | (
        {} if wrenches is None else {"wrenches": wrenches}
    )
    rest = system.tree.inverse_dynamics(q, qd, qdd, **options) - tau
    own = system.reactions(q, qd, qdd, **options)
    of_reactions, of_torques = _matrices(system, q, parameters[0])
    found = of_reactions @ own.reshape(*own.shape[:-2], -1, 1) + of_torques @ rest[..., None]
    found = found.reshape(*own.shape[:-2], -1, 6)
    nb = len(system.bodies)
    return found[..., :nb, :], found[..., nb:, :]


def _matrices(system: CompiledMechanism, q: Numbers, parameters: Numbers) -> tuple[Numbers, Numbers]:
    """Return M1 [nt, 6 (nb + nl), 6 nb] and M2 [nt, 6 (nb + nl), nv]."""
    free, own = system.mechanism.free_parameters, geometry(system) or frozenset()
    # The other parameters act through rounding alone. They get fixed values, so that bits do not depend on the batch.
    plain = np.array([parameters[k] if k in own else p.value for k, p in enumerate(free)])
    values = np.broadcast_to(plain, (len(q), len(free)))
    at = singular_split(system, q, values)
    T = transmission(system.mechanism, np.asarray(system.poses(q, parameters=values)), values)
    flat = T.reshape(len(q), -1, T.shape[-1])
    nb = 6 * len(system.bodies)
    of_torques = flat @ _multipliers(at)
    of_reactions = np.broadcast_to(np.eye(flat.shape[-2])[:, :nb], (len(q), flat.shape[-2], nb))
    if (at.rank < at.J.shape[-2]).any():
        kept = np.eye(flat.shape[-2]) - flat @ relief(system.mechanism, at, T)
        of_reactions, of_torques = kept[..., :nb], kept @ of_torques
    return np.ascontiguousarray(of_reactions), np.ascontiguousarray(of_torques)


def _multipliers(at: Split) -> Numbers:
    """Return the matrix of the smallest multipliers that balance torques, [nt, nc, nv]."""
    return np.stack([at.multipliers(one) for one in np.eye(at.U.shape[-1])], axis=-1)
