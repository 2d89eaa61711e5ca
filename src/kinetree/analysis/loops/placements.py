"""Frames of bodies at many states, whose placements may depend on free parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...algebra.columns import Column, plain
from ...compiled import CompiledMechanism
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...model.parameter_values import Named, in_order
from ...model.parts import GROUND, Placement
from ...numbers import real_array


def parameters_of(system: CompiledMechanism, given: Named | None) -> Numbers | None:
    """Return values of the free parameters, [..., np]; None for those of the mechanism."""
    if given is None:
        return None
    mechanism = system.mechanism
    count = len(mechanism.free_parameters)
    values = real_array(in_order(mechanism, given), "parameters")
    if not count:
        raise InputError(f"{mechanism.name!r} has no free parameters; declare them with free = true in the mechanism")
    if values.shape[-1:] != (count,):
        names = ", ".join(p.name for p in mechanism.free_parameters)
        raise InputError(f"parameters have shape {values.shape}; expected [..., {count}], for {names}")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        *at, k = bad[0].tolist()
        where = f" of set {at}" if at else ""
        raise InputError(
            f"parameter {mechanism.free_parameters[k].name!r}{where} is {values[tuple(bad[0])]}; give finite numbers"
        )
    return values


def inputs_of(system: CompiledMechanism, given: Named | None) -> Numbers | None:
    """Return values of the free parameters for programs, [..., np]: those of the mechanism by default, None without."""
    free = system.mechanism.free_parameters
    values = parameters_of(system, given)
    return np.array([p.value for p in free]) if values is None and free else values


def values_of(mechanism: Mechanism, parameters: Numbers | None) -> Mapping[str, Any]:
    """Return the values of all parameters by name; those of sets of parameters [..., np] as columns."""
    if parameters is None:
        return mechanism.values()
    return mechanism.values([Column(parameters[..., k]) for k in range(parameters.shape[-1])])


def standing(mechanism: Mechanism, poses: Numbers, body: str, placement: Placement) -> Numbers:
    """Return the pose [..., 4, 4] of a frame on a body."""
    lead = poses.shape[:-3]
    own = np.zeros((4, 4))
    own[3, 3] = 1.0
    turn, place = matrix(placement.rotation, lead), matrix([placement.translation], lead)
    if turn.ndim > 2 or place.ndim > 2:
        own = np.broadcast_to(own, (*lead, 4, 4)).copy()
    own[..., :3, :3], own[..., :3, 3] = turn, place[..., 0, :]
    if body == GROUND:
        return np.broadcast_to(own, (*lead, 4, 4))
    return poses[..., mechanism.body_indices[body], :, :] @ own


def matrix(rows: Any, lead: tuple[int, ...]) -> Numbers:
    """Return rows of numbers and columns as an array: [n, m], or [..., n, m] if there are columns."""
    entries = [[plain(x) for x in row] for row in rows]
    if all(np.ndim(x) == 0 for row in entries for x in row):
        return np.array(entries, dtype=float)
    return np.stack([np.stack([np.broadcast_to(x, lead) for x in row], axis=-1) for row in entries], axis=-2)
