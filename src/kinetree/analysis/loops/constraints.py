"""J of the loops at many states, split by its singular values into motions and constrained directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...algebra.scalars import Numbers
from ...errors import InputError
from ...model.mechanism import Mechanism, Named, parameter_sets, resolve_parts
from ...model.scales import loop_units, rate_sizes
from ...runtime.compiled import CompiledMechanism
from .samples import frame_pose, values_of
from .tolerances import CONSISTENT, INDEPENDENT, REST

if TYPE_CHECKING:
    from ...algebra.scalars import Scalar


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


def singular_split(
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
    """Raise an InputError unless loops are closed, stay closed under qd and, if given, under qdd.

    `tol` is relative to the mechanism's length and, for rates, to the size of the motion at each loop.
    """
    if not system.closures:
        return
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    m, units = system.mechanism, loop_units(system.mechanism)[0]
    _require(
        system,
        np.asarray(system.closure_residual(q, **more)),
        tol * units,
        "q leaves the loops open: {name} ({label}) has a gap of {value:.3g} {unit}",
        "close them first, with arm.assemble(q)",
    )
    require_speeds(system, at.J, qd, tol)
    if qdd is not None:
        _require(
            system,
            _times(at.J, qdd) + np.asarray(system.closure_bias(q, qd, **more)),
            np.maximum(tol * rate_sizes(m, qd, qdd), REST * units),
            "qdd opens the loops: {name} ({label}) would {verb} at {value:.3g} {unit}/s^2",
            "give qdd with J qdd + dJ/dt qd = 0, as arm.consistent_accelerations does",
        )


def require_speeds(system: CompiledMechanism, J: Numbers, qd: Numbers, tol: float = CONSISTENT) -> None:
    """Raise an InputError unless loops with the Jacobian J stay closed under qd."""
    m = system.mechanism
    _require(
        system,
        _times(J, qd),
        np.maximum(tol * rate_sizes(m, qd), REST * loop_units(m)[0]),
        "qd opens the loops: {name} ({label}) would {verb} at {value:.3g} {unit}/s",
        "give qd with J qd = 0, as arm.consistent_speeds and arm.closing_speed do",
    )


def size(mechanism: Mechanism, poses: Numbers, values: Mapping[str, Scalar]) -> Numbers:
    """Return a length of the mechanism [m]: the mean distance of the joints from their center, [...].

    It does not depend on the choice of cut joints.
    """
    places = [poses[..., :3, 3]]
    for loop in resolve_parts(mechanism.loops, values):
        places.append(frame_pose(mechanism, poses, loop.body_b, loop.placement_b)[..., None, :3, 3])
    points = np.concatenate(places, axis=-2)
    if not points.shape[-2]:
        return np.ones(points.shape[:-2])
    apart = points - points.mean(axis=-2, keepdims=True)
    mean = np.sqrt((apart**2).sum(axis=-1).mean(axis=-1))
    return np.where(mean > 0, mean, 1.0)


def _require(system: CompiledMechanism, found: Numbers, bound: Numbers, what: str, remedy: str) -> None:
    """Raise an InputError for the entry [..., nc] that exceeds its bound by the largest factor."""
    if not found.size or (np.abs(found) <= bound).all():
        return
    parts = np.abs(found) / bound
    *state, k = np.unravel_index(int(np.argmax(np.where(np.isnan(parts), np.inf, parts))), parts.shape)
    c = system.closures[k]
    value, verb = abs(found[(*state, k)]), "part" if c.holonomic else "slip"
    text = what.format(name=repr(c.name), label=c.label, unit=c.unit, value=value, verb=verb)
    where = f" in state {[int(s) for s in state]}" if state else ""
    raise InputError(f"{text}{where}; {remedy}")


def _times(matrix: Numbers, vector: Numbers) -> Numbers:
    return (matrix @ vector[..., None])[..., 0]


# --- What acts on a closed mechanism at many states: external wrenches, the forces of the mechanism, its parameters.


@dataclass(frozen=True)
class ActingForces:
    """A system with external wrenches [..., nb, 6] or None, the forces of the mechanism or not, and parameters."""

    system: CompiledMechanism
    wrenches: ArrayLike | None = None
    forces: bool = True
    parameters: Numbers | None = None

    @classmethod
    def of(
        cls, system: CompiledMechanism, wrenches: ArrayLike | None, forces: bool, parameters: Named | None
    ) -> ActingForces:
        """Return what acts, with its parameters read."""
        if not isinstance(forces, bool):
            raise InputError(f"forces is {repr(forces)[:60]}; give False to leave out the forces of the mechanism")
        return cls(system, wrenches, forces, parameter_sets(system.mechanism, parameters))

    def spread(self, lead: tuple[int, ...]) -> ActingForces:
        """Return the same with one set of parameters per state of a leading shape."""
        if self.parameters is None:
            return self
        return replace(self, parameters=np.broadcast_to(self.parameters, (*lead, self.parameters.shape[-1])))

    def of_samples(self, which: NDArray[np.bool_]) -> dict[str, Any]:
        """Return what acts on some of the samples of a leading shape, as options of functions of states."""
        w, own = self.wrenches, self.spread(which.shape).parameters
        return {
            "wrenches": None if w is None else np.broadcast_to(w, (*which.shape, *np.shape(w)[-2:]))[which],
            "forces": self.forces,
            "parameters": None if own is None else own[which],
        }

    def torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Numbers:
        """Return the torques of a motion with every joint driven, [..., nv]."""
        return self.system.tree.inverse_dynamics(q, qd, qdd, **self.options)

    def call(self, name: str, *arrays: ArrayLike) -> Numbers:
        """Return the result of a function under all that acts."""
        return np.asarray(self.system._with(name, **self.options)(*arrays), dtype=float)

    def poses(self, q: Numbers) -> Numbers:
        """Return the poses of all bodies, [..., nb, 4, 4]."""
        more: dict[str, Any] = {} if self.parameters is None else {"parameters": self.parameters}
        return np.asarray(self.system.poses(q, **more), dtype=float)

    def carried(self, T: Numbers, q: Numbers, qd: Numbers, qdd: Numbers, multipliers: Numbers) -> Numbers:
        """Return the wrenches at joints and loops for a motion and its multipliers, [..., nb + nl, 6], ordered as T."""
        out = (T @ multipliers[..., None, :, None])[..., 0]
        out[..., : len(self.system.bodies), :] += self.call("reactions", q, qd, qdd)
        return out

    @property
    def own_forces(self) -> bool:
        """Whether the mechanism has forces of its own, and they act."""
        return self.forces and self.system.mechanism.has_forces

    @property
    def options(self) -> dict[str, Any]:
        """The options of compiled functions, without those that have their defaults."""
        out: dict[str, Any] = {} if self.forces else {"forces": False}
        if self.wrenches is not None:
            out["wrenches"] = self.wrenches
        return out if self.parameters is None else out | {"parameters": self.parameters}
