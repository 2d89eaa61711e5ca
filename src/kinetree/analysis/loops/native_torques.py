"""Actuator torques and loads of many states in native code, where the actuators are as many as degrees of freedom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiler.lower.loop_pattern import closing
from ...dynamics.loop_loads import Ranks
from ...errors import InputError
from ...model.mechanism import inputs_of
from ...runtime.compiled import CompiledMechanism
from .constraints import Acting
from .driven_programs import NativeLoops, loads_of, with_parameters
from .kinematics import Mask
from .load_sharing import Share, ranks_of
from .samples import Samples

CLEAR = 0.1
"""The part of the tolerance below which motions count as closed here; others are measured by other lengths."""
MISSING = 1e-11
"""The largest missing torque in parts of the largest torque of a motion: rounding errors, at well-posed positions."""


@dataclass(frozen=True)
class NativeTorques:
    """Torques and multipliers of all samples of states of a leading shape."""

    samples: Samples
    tau: Numbers
    multipliers: Numbers
    residual: Numbers


def native_torques(
    acting: Acting, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, driven: list[int], tol: float
) -> NativeTorques | None:
    """Return the torques of driven degrees of freedom; None if a state requires the general route, or its error."""
    system = acting.system
    native = NativeLoops.of(system, driven)
    if not native.determined or (system.mechanism.free_parameters and closing(system.mechanism).redundant):
        return None
    samples = _samples(acting, q=q, qd=qd, qdd=qdd)
    if samples is None:
        return None
    shapes = (system.nv, len(system.closures), system.nv)
    tau, multipliers, residual = (np.empty((prod(samples.lead), n)) for n in shapes)
    for piece in samples.pieces():
        arrays = [piece.array(name) for name in ("q", "qd", "qdd")]
        more = _wrenches(piece.array("wrenches"), len(system.bodies))
        out = (tau[piece.rows], multipliers[piece.rows], residual[piece.rows])
        *_, need, opens, rank = native.torques(
            *with_parameters((*arrays, *more), piece.array("parameters")),
            forces=acting.own_forces, wrenches=bool(more), out=out,
        )  # fmt: skip
        missing = np.abs(out[2]).max(axis=-1, initial=0.0)
        good = (rank[:, 0] == native.passive) & (opens <= CLEAR * tol).all(axis=-1) & (missing <= MISSING * need[:, 0])
        if not good.all():
            return None
    return NativeTorques(samples, *(x.reshape(*samples.lead, x.shape[-1]) for x in (tau, multipliers, residual)))


def native_loads(
    acting: Acting, made: NativeTorques, share: Share | None = None
) -> tuple[Numbers, Numbers, Mask] | None:
    """Return wrenches at joints and loops, all multipliers, and which entries the motion determines.

    `share` has compliances by joint or loop, for reactions that the motion does not determine. None if equations depend
    on others, so that loads are shared in a way that differs from state to state.
    """
    system, samples = acting.system, made.samples
    ranks = () if share is None else unit_ranks(system, share)
    if closing(system.mechanism).redundant:
        return None
    multipliers = made.multipliers.reshape(-1, len(system.closures))
    count, places = prod(samples.lead), len(system.bodies) + len(system.mechanism.loops)
    wrenches, shares = np.empty((count, 6 * places)), np.empty((count, len(system.closures)))
    unique = np.ones((count, 6 * places), dtype=bool)
    for piece in samples.pieces():
        arrays = [*(piece.array(name) for name in ("q", "qd", "qdd")), multipliers[piece.rows]]
        more = _wrenches(piece.array("wrenches"), len(system.bodies))
        entries, moved = loads_of(
            system, *with_parameters((*arrays, *more), piece.array("parameters")), forces=acting.own_forces,
            wrenches=bool(more), ranks=ranks, out=(wrenches[piece.rows], shares[piece.rows]),
        )  # fmt: skip
        if moved is not None:
            unique[piece.rows, entries] = moved <= UNMOVED
    lead = samples.lead
    shape = (*lead, places, 6)
    return wrenches.reshape(shape), shares.reshape(*lead, -1), unique.reshape(shape)


UNMOVED = 1e-12
"""The largest change of a reaction by loads that the motion leaves open, as a square in parts of these loads."""


def unit_ranks(system: CompiledMechanism, share: Share) -> Ranks:
    """Return the compliances of each rank as numbers of 1 at most, which are a key of compiled programs."""

    def make() -> Ranks:
        ranks = ranks_of(system.mechanism, share)
        return tuple(tuple((c / max(c.max(initial=0.0), 1e-300)).ravel().tolist()) for c in ranks)

    given = [share] if isinstance(share, Mapping) else share
    try:
        key = "share", *(tuple(c.items()) for c in given)
        hash(key)
    except (AttributeError, TypeError):  # lists of numbers, or no compliances at all
        return make()
    return system._parts.part(key, make)


def _samples(acting: Acting, **states: Any) -> Samples | None:
    """Return the samples of finite states that fit together; None for others, whose error the general route raises."""
    system = acting.system
    sizes = {"q": system.nq, "qd": system.nv, "qdd": system.nv}
    arrays: dict[str, Any] = {
        "parameters": acting.parameters if acting.parameters is not None else inputs_of(system.mechanism, None)
    }
    try:
        for name, x in states.items():
            arrays[name] = np.asarray(x, dtype=float)
            if arrays[name].shape[-1:] != (sizes[name],) or not np.isfinite(arrays[name]).all():
                return None
        if acting.wrenches is not None:
            w = np.asarray(acting.wrenches, dtype=float)
            if w.shape[-2:] != (len(system.bodies), 6) or not np.isfinite(w).all():
                return None
            arrays["wrenches"] = w.reshape(*w.shape[:-2], -1)
        return Samples.of(arrays, {})
    except (ValueError, TypeError, InputError):
        return None


def _wrenches(flat: Numbers | None, bodies: int) -> tuple[Numbers, ...]:
    return () if flat is None else (flat.reshape(len(flat), bodies, 6),)
