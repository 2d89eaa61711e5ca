"""Coordinates and their tangent space: derivatives of entries of q as directions of joint velocities, and back."""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers
from ...compiler.ir.operations import Op
from ...compiler.lower.build import Request, build
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...system import System
from ..compiled_parts import kept_of


def directions(system: System, q: Numbers) -> Numbers | None:
    """Return dq/dv [..., nq, nv] at coordinates [..., nq]; None if coordinates and directions are the same."""
    if system.nq == 0 or _is_flat(system):
        return None
    units = np.eye(system.nv)
    return np.swapaxes(system.function("coordinate_rate").gufunc(*_given(system, q[..., None, :], units)), -1, -2)


def of_entries(system: System, q: Numbers, columns: Numbers) -> Numbers:
    """Return derivatives of entries of q [..., columns, nq] as those of directions [..., nv, columns]."""
    E = directions(system, q)
    if E is None:
        return np.swapaxes(columns, -1, -2)
    turned = np.swapaxes(E, -1, -2)
    try:
        return np.linalg.solve(turned @ E, turned @ np.swapaxes(columns, -1, -2))
    except np.linalg.LinAlgError:
        raise InputError(
            f"the coordinates of {system.mechanism.name!r} are singular in this run (gimbal lock): the directions of "
            "the tangent space do not determine them; use joints with quaternions"
        ) from None


def _is_flat(system: System) -> bool:
    """Return whether all coordinates are the integrals of their velocities."""
    return kept_of(system).part("flat", lambda: system.nq == system.nv and _has_equal_rates(system.mechanism))


def _has_equal_rates(mechanism: Mechanism) -> bool:
    program = build(mechanism, Request("coordinate_rate").checked(mechanism))
    places = [a.name for a in program.inputs]
    ends = [program.ops[k] for k in program.results[0]]
    return all(op[0] is Op.INPUT and places[op[1]] == "qd" and op[2] == k for k, op in enumerate(ends))


def _given(system: System, q: Numbers, v: Numbers) -> tuple[Numbers, ...]:
    """Return the inputs of coordinate_rate, whose result does not depend on free parameters."""
    count = len(system.mechanism.free_parameters)
    return (q, v, np.zeros(count)) if count else (q, v)
