"""Equations of motion that contain neither torques of drives nor multipliers of loops: those of the ground forces.

They are the components of I qdd + h = S tau + J_l^T lambda + J^T f along the motions z that the loops allow and that
no drive moves: J_l z = 0 and S^T z = 0. In a tree these are the axes without a drive. Moments are divided by a length,
so that all equations are in newtons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...runtime.compiled import CompiledMechanism
from ..loops.actuation import effort_weights, efforts
from ..loops.constraints import INDEPENDENT, Split, require_closed, singular_split


class Undriven(Protocol):
    """The motions that only ground forces cause."""

    def along(self, torques: Numbers) -> Numbers:
        """Return components [..., m] of generalized forces [..., nv]."""
        ...

    def shared(self, torques: Numbers) -> tuple[Numbers, Numbers]:
        """Return the torques of the drives, and the generalized forces that they and the loops cannot supply."""
        ...


@dataclass(frozen=True)
class Axes:
    """The axes of a tree without a drive, and the scale of each."""

    passive: list[int]
    weights: Numbers

    def along(self, torques: Numbers) -> Numbers:
        """Return components [..., m] of generalized forces [..., nv]."""
        return torques[..., self.passive] * self.weights

    def shared(self, torques: Numbers) -> tuple[Numbers, Numbers]:
        """Return the torques of the drives, and the generalized forces at the other axes."""
        tau, residual = torques.copy(), np.zeros(torques.shape)
        residual[..., self.passive], tau[..., self.passive] = tau[..., self.passive], 0.0
        return tau, residual


@dataclass(frozen=True)
class Motions:
    """The motions of a closed mechanism without a drive: rows [..., m, nv], orthonormal in scaled axes, or zero."""

    at: Split
    driven: list[int]
    weights: Numbers
    rows: Numbers

    def along(self, torques: Numbers) -> Numbers:
        """Return components [..., m] of generalized forces [..., nv], with any axes between."""
        between = (1,) * (torques.ndim - self.rows.ndim + 1)
        rows = self.rows.reshape(*self.rows.shape[:-2], *between, *self.rows.shape[-2:])
        return (rows @ (self.at.columns * torques)[..., None])[..., 0]

    def shared(self, torques: Numbers) -> tuple[Numbers, Numbers]:
        """Return the torques of least effort of the drives, and what they and the loops cannot supply."""
        tau, _, _ = efforts(self.at, torques, self.driven, self.weights)
        return tau, self.at.without_loops(torques - tau)


def undriven(
    system: CompiledMechanism, states: tuple[Numbers, Numbers, Numbers], driven: list[int], scale: Numbers,
    parameters: Numbers | None, *, tol: float,
) -> Undriven:  # fmt: skip
    """Return the motions without a drive at states q, qd, qdd, with the scale [nv] of each axis.

    Motions that open the loops by more than `tol` of their size are refused, and mechanisms without such motions.
    """
    mechanism = system.mechanism
    if not mechanism.closures:
        passive = [k for k in range(mechanism.nv) if k not in driven]
        _refuse_none(mechanism, len(passive))
        return Axes(passive, scale[passive])
    q, qd, qdd = states
    if parameters is not None:
        parameters = np.broadcast_to(parameters, (*q.shape[:-1], parameters.shape[-1]))
    at = singular_split(system, q, parameters, columns=scale)
    require_closed(system, at, q, qd, qdd, tol, parameters)
    rows = _kept(at, driven)
    _refuse_none(mechanism, rows.shape[-2])
    return Motions(at, driven, effort_weights(mechanism, at, driven, None), rows)


def _kept(at: Split, driven: list[int]) -> Numbers:
    """Return the rows of motions that keep loops closed and drives still; where there are fewer, the first are zero."""
    nv, largest = at.J.shape[-1], at.sizes.max(axis=-1, initial=0.0)[..., None, None]
    loops = at.rows[..., :, None] * at.J * at.columns / np.where(largest > 0.0, largest, 1.0)
    still = np.broadcast_to(np.eye(nv)[driven], (*loops.shape[:-2], len(driven), nv))
    _, sizes, Ut = np.linalg.svd(np.concatenate([loops, still], axis=-2))
    rank = (sizes > INDEPENDENT * sizes.max(axis=-1, initial=0.0, keepdims=True)).sum(axis=-1)
    first = int(rank.min(initial=nv))
    beyond = np.arange(first, nv) >= rank[..., None]
    return np.where(beyond[..., None], Ut[..., first:, :], 0.0)


def _refuse_none(mechanism: Mechanism, count: int) -> None:
    if not count:
        raise InputError(
            f"the drives determine every motion of {mechanism.name!r}, so that a motion determines no ground forces; "
            "name the joints with a drive, actuated=[...], without those of the base"
        )
