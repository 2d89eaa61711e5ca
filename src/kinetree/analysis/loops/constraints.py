"""J of the loops at many states, split by its singular values into motions and constrained directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...compiler.lower.loop_pattern import DEPENDENT
from ...compiler.lower.newton import RANK
from ...errors import InputError
from ...model.mechanism import Mechanism, resolved
from .placements import standing, values_of

REST = 1e-18
"""Gaps and rates of loops that count as zero [lengths of the mechanism or rad, per s or s^2]: the rounding errors of a
motion that comes to rest. A real motion at this rate would take longer than the age of the Earth."""

INDEPENDENT = max(RANK, DEPENDENT**0.5)
"""The least singular value of independent rows, in parts of the largest."""


@dataclass(frozen=True)
class Split:
    """J = diag(1 / rows) V s U^T diag(1 / columns), its first `rank` singular values s not zero.

    Columns are scaled by 1 / sqrt(I_kk), which makes revolute and prismatic joints comparable. Rows in radians are
    scaled by the `length` of the mechanism [m].
    """

    J: Numbers
    length: Numbers
    rows: Numbers
    columns: Numbers
    V: Numbers
    sizes: Numbers
    U: Numbers
    rank: NDArray[np.integer]

    @property
    def moves(self) -> Numbers:
        """Components of scaled torques along the motions that the loops allow, [..., nv, nv]; other rows are 0."""
        beyond = np.arange(self.U.shape[-1]) >= self.rank[..., None]
        return np.where(beyond[..., None], np.swapaxes(self.U, -1, -2), 0.0)

    @property
    def idle(self) -> Numbers:
        """Multipliers without joint torques, J^T lambda = 0, as columns [..., nc, nc]; other columns are 0."""
        beyond = np.arange(self.V.shape[-1]) >= self.rank[..., None]
        return self.rows[..., None] * np.where(beyond[..., None, :], self.V, 0.0)

    def without_loops(self, torque: Numbers) -> Numbers:
        """Return the part of torques [..., nv] that loops cannot supply, along the motions that they allow."""
        scaled = self.moves @ (self.columns * torque)[..., None]
        return (np.swapaxes(self.moves, -1, -2) @ scaled)[..., 0] / self.columns

    def multipliers(self, torque: Numbers) -> Numbers:
        """Return the smallest lambda in scaled rows with J^T lambda = torque."""
        count = self.sizes.shape[-1]
        along = _times(np.swapaxes(self.U, -1, -2), self.columns * torque)[..., :count]
        real = np.arange(count) < self.rank[..., None]
        part = np.where(real, along / np.where(real, self.sizes, 1.0), 0.0)
        return self.rows * _times(self.V[..., :count], part)


def split(
    system: CompiledMechanism, q: Numbers, parameters: Numbers | None = None, *, columns: Numbers | None = None
) -> Split:
    """Return J at states q [..., nq] with its singular values; `columns` [nv] scale its columns in another way."""
    mechanism = system.mechanism
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    J = np.asarray(system.closure_jacobian(q, **more), dtype=float)
    if columns is None:
        inertia = np.diagonal(system.inertia_matrix(q, **more), axis1=-2, axis2=-1)
        columns = 1.0 / np.sqrt(np.where(inertia > 0, inertia, np.max(inertia, axis=-1, initial=1e-300, keepdims=True)))
    length = size(mechanism, np.asarray(system.poses(q, **more), dtype=float), values_of(mechanism, parameters))
    turning = np.array([c.unit == "rad" for c in mechanism.closures], dtype=bool)
    rows = np.where(turning, length[..., None], 1.0)
    V, sizes, Ut = np.linalg.svd(rows[..., :, None] * J * columns[..., None, :])
    # Rows that depend on others at every closed position appear independent by the order of the gap of q.
    rank = (sizes > INDEPENDENT * sizes.max(axis=-1, initial=0.0, keepdims=True)).sum(axis=-1)
    return Split(J, length, rows, columns, V, sizes, np.swapaxes(Ut, -1, -2), rank)


def require_closed(
    system: CompiledMechanism,
    at: Split,
    q: Numbers,
    qd: Numbers,
    qdd: Numbers | None,
    tol: float,
    parameters: Numbers | None = None,
) -> None:
    """Raise an InputError unless loops are closed, stay closed under qd and, if given, under qdd."""
    if not system.closures:
        return
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    scaled = at.rows[..., :, None] * at.J
    _require(
        system,
        at.rows * np.asarray(system.closure_residual(q, **more)),
        np.broadcast_to(at.length, np.shape(q)[:-1])[..., None],
        at.rows,
        tol,
        "q leaves the loops open: {name} ({label}) has a gap of {value:.3g} {unit}",
        "close them first, with arm.assemble(q)",
    )
    _require(
        system,
        _times(scaled, qd),
        _times(np.abs(scaled), np.abs(qd)),
        at.rows,
        tol,
        "qd opens the loops: {name} ({label}) would {verb} at {value:.3g} {unit}/s",
        "give qd with J qd = 0, as arm.consistent_speeds and arm.closing_speed do",
    )
    if qdd is not None:
        bias = at.rows * np.asarray(system.closure_bias(q, qd, **more))
        _require(
            system,
            _times(scaled, qdd) + bias,
            _times(np.abs(scaled), np.abs(qdd)) + np.abs(bias),
            at.rows,
            tol,
            "qdd opens the loops: {name} ({label}) would {verb} at {value:.3g} {unit}/s^2",
            "give qdd with J qdd + dJ/dt qd = 0, as arm.consistent_accelerations does",
        )


def size(mechanism: Mechanism, poses: Numbers, values: Mapping[str, Any]) -> Numbers:
    """Return a length of the mechanism [m]: the mean distance of the joints from their center, [...].

    It does not depend on the choice of cut joints.
    """
    places = [poses[..., :3, 3]]
    for loop in resolved(mechanism.loops, values):
        places.append(standing(mechanism, poses, loop.body_b, loop.placement_b)[..., None, :3, 3])
    points = np.concatenate(places, axis=-2)
    if not points.shape[-2]:
        return np.ones(points.shape[:-2])
    apart = points - points.mean(axis=-2, keepdims=True)
    mean = np.sqrt((apart**2).sum(axis=-1).mean(axis=-1))
    return np.where(mean > 0, mean, 1.0)


def _require(
    system: CompiledMechanism, found: Numbers, scale: Numbers, rows: Numbers, tol: float, what: str, remedy: str
) -> None:
    """Raise an InputError for the worst entry [..., nc] above REST and above tol of the largest scale of its state."""
    excess = np.abs(found) - np.maximum(tol * scale.max(axis=-1, keepdims=True), REST)
    if not excess.size or (excess <= 0).all():
        return
    *state, k = np.unravel_index(int(np.argmax(np.where(np.isnan(excess), np.inf, excess))), excess.shape)
    c = system.closures[k]
    value = abs(found[(*state, k)] / np.broadcast_to(rows, found.shape)[(*state, k)])
    text = what.format(
        name=repr(c.name), label=c.label, unit=c.unit, value=value, verb="part" if c.holonomic else "slip"
    )
    where = f" in state {[int(s) for s in state]}" if state else ""
    raise InputError(f"{text}{where}; {remedy}")


def _times(matrix: Numbers, vector: Numbers) -> Numbers:
    return (matrix @ vector[..., None])[..., 0]
