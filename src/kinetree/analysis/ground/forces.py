"""Inverse dynamics on the ground: joint torques and contact forces that realize a motion of a floating mechanism.

The equations of motion are I qdd + h = S tau + J^T f. Those of the axes without a drive, such as the six of a floating
base, contain the contact forces alone. These are the smallest in their friction cones that satisfy them, or come
nearest. The torques of the drives follow from the other equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import positive
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...compiler.lower.contacts import candidate_names
from ...contact_geometry.cone import OPEN, SLIP, STICK, Cones, used_friction
from ...errors import InputError, unknown_name
from ...joints import kind
from ...model.axes import axis_labels, axis_names
from ...model.contacts import Contact, ContactNumbers, require_fitting_contacts
from ...model.mechanism import Mechanism, Named, parameter_arguments
from ...model.parts import GROUND
from ...runtime.compiled import CompiledMechanism
from ...runtime.contact_motion import ContactMotion
from ..loops.actuation import dofs, effort_weights, efforts
from ..loops.constraints import ActingForces, Split, require_closed, singular_split
from ..loops.tolerances import INDEPENDENT
from .least_squares import Smallest, smallest_forces

# --- Equations of motion that contain neither torques of drives nor multipliers of loops: those of the ground forces.
#
# They are the components of I qdd + h = S tau + J_l^T lambda + J^T f along the motions z that the loops allow and no
# drive moves: J_l z = 0 and S^T z = 0. In a tree these are the axes without a drive. Moments are divided by a length,
# which makes all equations forces in newtons.


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
    system: CompiledMechanism,
    states: tuple[Numbers, Numbers, Numbers],
    driven: list[int],
    scale: Numbers,
    parameters: Numbers | None,
    *,
    tol: float,
) -> Undriven:
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
            "name the joints with a drive, actuated=[...], without the base's"
        )


# --- Inverse dynamics: the smallest contact forces in their cones, and the torques of the drives

# --- The result of `ground_forces`: torques, forces, missing forces, and a verdict per instant ---

REALIZED = 1e-9
"""Missing forces relative to those required, below which they count as rounding."""
LIMIT = 1.0 - 1e-9
"""The part of friction from which a sticking contact is at the limit of its cone."""


@dataclass(frozen=True, repr=False)
class GroundForces(Displayed):
    """Joint torques and ground forces of a motion: `tau` [..., nv] and `forces` [..., nc, 3] along normal and tangents.

    `residual` [..., nv] are the generalized forces that no force in the cones supplies, and `missing` [...] their size
    relative to those required, or to 1e-4 of the weight if these are less. `modes` [..., nc] are 0 (open), 1 (stick) or
    2 (slip); `inward` [..., nc] marks contacts that the motion moves into their surface, which no rigid body can do.
    `points` [..., nc, 3] and `axes` [..., nc, 3, 3], by rows normal and tangents, are in the frame of the ground.
    `settled` [...] marks forces that are the smallest ones up to rounding. `grounded` [nc] marks contacts with
    the ground, not with other bodies. `contacts` are names; the axes have `labels` and `units`.
    """

    tau: Numbers
    forces: Numbers
    residual: Numbers
    missing: Numbers
    modes: np.ndarray
    inward: np.ndarray
    settled: np.ndarray
    points: Numbers
    axes: Numbers
    friction: Numbers
    grounded: np.ndarray
    contacts: tuple[str, ...]
    labels: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def realized(self) -> np.ndarray:
        """Whether torques and ground forces realize the motion exactly, up to rounding [...]."""
        return (self.missing <= REALIZED) & ~self.inward.any(axis=-1)

    @property
    def used(self) -> Numbers:
        """The part of friction that each force uses, |t| / (mu n) [..., nc]: 1 at the border of the cone."""
        return used_friction(self.forces, self.friction)

    @property
    def at_limit(self) -> np.ndarray:
        """The sticking contacts whose force is on the border of its cone [..., nc]."""
        return (self.modes != OPEN) & (self.modes != SLIP) & (self.used >= LIMIT)

    @property
    def unloaded(self) -> np.ndarray:
        """The touching contacts without a force: more of it would have to pull [..., nc]."""
        return (self.modes != OPEN) & (self.forces[..., 0] <= 0.0)

    @property
    def world(self) -> Numbers:
        """The forces on the bodies in axes of the ground [..., nc, 3] in N."""
        return np.einsum("...ck,...ckj->...cj", self.forces, self.axes)

    @property
    def wrench(self) -> Numbers:
        """The total wrench [n; f] of the ground on the mechanism about the origin of the ground [..., 6]."""
        f = np.where(self.grounded[:, None], self.world, 0.0)
        return np.concatenate([np.cross(self.points, f).sum(axis=-2), f.sum(axis=-2)], axis=-1)

    @property
    def status(self) -> np.ndarray:
        """One sentence per instant [...]: "realized", or what is missing and which contacts are at their limits."""
        out = np.empty(self.missing.shape, dtype=object)
        for at in np.ndindex(*out.shape):
            out[at] = self._sentence(at)
        return out

    def _sentence(self, at: tuple[int, ...]) -> str:
        def named(flags: np.ndarray) -> str:
            return ", ".join(name for name, flag in zip(self.contacts, flags[at], strict=True) if flag)

        if self.realized[at]:
            return "realized"
        parts = [f"{name} moves into its surface" for name in [named(self.inward)] if name]
        if self.missing[at] > REALIZED:
            k = int(np.argmax(np.abs(self.residual[at])))
            lack = f"{self.residual[at][k]:.4g} {self.units[k]} are missing at {self.labels[k]}"
            parts.append(f"{lack}, {self.missing[at]:.3g} of all that is required")
            parts += [f"friction is at its limit at {name}" for name in [named(self.at_limit)] if name]
            parts += [f"{name} would have to pull" for name in [named(self.unloaded)] if name]
            if not (self.modes[at] != OPEN).any():
                parts.append("nothing touches the ground")
        return "; ".join(parts)

    def display(self) -> list[str | Table]:
        """Return the summary, and the forces of one instant."""
        if self.missing.ndim:
            return [self.summary()]
        rows = tuple(
            (name, *map(float, f), float(u)) for name, f, u in zip(self.contacts, self.forces, self.used, strict=True)
        )
        return [
            self.summary(),
            Table(("contact", "normal", "tangent 1", "tangent 2", "friction used"), rows, ("", "N", "N", "N", "1")),
        ]

    def summary(self) -> str:
        """Return the number of instants that are realized, and the status of the worst one."""
        good, count = int(self.realized.sum()), self.realized.size
        if good == count:
            return f"ground forces: {f'all {count} instants are' if count > 1 else 'the motion is'} realized"
        bad = np.where(self.realized, -1.0, self.missing)
        at = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape)) if bad.shape else ()
        where = f" (worst at {', '.join(map(str, at))})" if at else ""
        part = f"{good} of {count} instants are realized" if count > 1 else "the motion is not realized"
        return f"ground forces: {part}{where}: {self._sentence(at)}"


# --- Which contacts can carry a force in a given motion: those that touch, and stay or slip ---


@dataclass(frozen=True)
class Touch:
    """The modes of all candidates [..., nc], unit vectors of their slip [..., nc, 2], and those that move inward."""

    modes: np.ndarray
    slip: Numbers
    inward: np.ndarray


def touch_of(numbers: ContactNumbers, gap: Numbers, v: Numbers, a: Numbers, tol: float) -> Touch:
    """Return the modes of a motion with velocities and accelerations [..., nc, 3] along normal and tangents.

    A candidate that leaves its surface is open. One that slides, or begins to, slips; one that does neither sticks.
    Gaps, velocities and accelerations count as zero up to `tol` of the characteristic length, of sqrt(g l) and of g.
    """
    still, steady = tol * numbers.speed, tol * numbers.gravity
    near = gap <= tol * numbers.length
    resting = np.abs(v[..., 0]) <= still
    leaves = (v[..., 0] > still) | (resting & (a[..., 0] > steady))
    enters = (v[..., 0] < -still) | (resting & (a[..., 0] < -steady)) | (gap < -tol * numbers.length)
    speed, rate = np.hypot(v[..., 1], v[..., 2]), np.hypot(a[..., 1], a[..., 2])
    slides, begins = speed > still, rate > steady
    slip = np.where(slides[..., None], v[..., 1:], a[..., 1:])
    size = np.where(slides, speed, rate)
    modes = np.where(near & ~leaves, np.where(slides | begins, SLIP, STICK), OPEN)
    unit = np.where((modes == SLIP)[..., None], slip / np.where(size > 0, size, 1.0)[..., None], 0.0)
    return Touch(modes, unit, near & enters)


def given_touch(names: tuple[str, ...], touching: object, lead: tuple[int, ...]) -> Touch:
    """Return the modes of contacts that the caller names: all of these stick, all others are open."""
    shape = (*lead, len(names))
    if isinstance(touching, str):
        touching = [touching]
    if isinstance(touching, Iterable) and not isinstance(touching, np.ndarray | Mapping):
        touching = list(touching)
    if isinstance(touching, list) and all(isinstance(x, str) for x in touching):
        flags = np.zeros(len(names), dtype=bool)
        for name in touching:
            own = [k for k, x in enumerate(names) if x == name or x.startswith(f"{name}.")]
            if not own:
                raise unknown_name("contact", name, names, where="touching")
            flags[own] = True
    else:
        flags = np.asarray(touching)
        if flags.dtype != bool or flags.shape[-1:] != (len(names),):
            raise InputError(
                f"touching has shape {flags.shape} and type {flags.dtype}; "
                f"give names of contacts, or truth values [..., {len(names)}], one per point: {', '.join(names)}"
            )
    try:
        flags = np.broadcast_to(flags, shape)
    except ValueError:
        raise InputError(f"touching has shape {flags.shape}; expected {shape}") from None
    return Touch(np.where(flags, STICK, OPEN), np.zeros((*shape, 2)), np.zeros(shape, dtype=bool))


TOL = 1e-6
"""The default tolerance of gaps, velocities and accelerations of contacts, in units of l, sqrt(g l) and g: motions that
were designed, or differentiated numerically, have about as many digits."""
FLIGHT = 1e-4
"""The least size of the required forces to which missing ones are compared, relative to the weight: in free flight,
rounding is all that is required."""


def ground_forces(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    contacts: Contact | Iterable[Contact] | None = None,
    actuated: str | Iterable[str] | None = None,
    touching: object = None,
    wrenches: ArrayLike | None = None,
    forces: bool = True,
    parameters: Named | None = None,
    tol: float = TOL,
) -> GroundForces:
    """Return joint torques and ground forces of a motion, [..., nq] and [..., nv], for many instants at once.

    `contacts` are those of the mechanism by default. `actuated` names the joints with a drive, by default all but the
    free joints on the ground. `touching` names the contacts that carry a force by sticking, or has truth values
    [..., nc]; by default they follow from the motion, with tolerances `tol`. The forces of the mechanism act unless
    `forces` is False; `parameters` are one set.
    """
    own = system.mechanism
    mechanism = own if contacts is None else replace(own, contacts=require_fitting_contacts(own, contacts))
    acting = ActingForces.of(system, wrenches, forces, parameters)
    if acting.parameters is not None and acting.parameters.ndim > 1:
        raise InputError(f"parameters have shape {acting.parameters.shape}; give one set of them")
    driven = _driven(mechanism, actuated)
    need = np.asarray(acting.torques(q, qd, qdd), dtype=float)
    lead = need.shape[:-1]
    q, qd, qdd = (np.broadcast_to(np.asarray(x, dtype=float), (*lead, np.shape(x)[-1])) for x in (q, qd, qdd))
    numbers, (gap, v, bias, J, points, axes) = contact_motion(system, mechanism, q, qd, acting.parameters)
    names = candidate_names(mechanism)
    if touching is None:
        touch = touch_of(numbers, gap, v, np.einsum("...ckv,...v->...ck", J, qdd) + bias, positive(tol, "tol"))
    else:
        touch = given_touch(names, touching, lead)
    units = ["N m" if unit == "rad" else "N" for _, _, unit in axis_names(mechanism, 1)]
    scale = np.array([1.0 / numbers.length if unit == "N m" else 1.0 for unit in units])
    free = undriven(system, (q, qd, qdd), driven, scale, acting.parameters, tol=tol)
    b = free.along(need)
    found = _smallest(b, free.along(J), touch, numbers.friction)
    required = np.maximum(np.linalg.norm(b, axis=-1), FLIGHT * numbers.weight)
    missing = np.linalg.norm(found.residual, axis=-1) / np.where(required > 0.0, required, 1.0)
    tau, residual = free.shared(need - np.einsum("...ckv,...ck->...v", J, found.forces))
    return GroundForces(
        tau, found.forces, residual, missing, touch.modes, touch.inward, found.settled, points, axes, numbers.friction,
        numbers.grounded, names, tuple(axis_labels(mechanism, 1)), tuple(units),
    )  # fmt: skip


def contact_motion(
    system: CompiledMechanism, mechanism: Mechanism, q: Numbers, qd: Numbers, parameters: Numbers | None
) -> tuple[ContactNumbers, tuple[Numbers, ...]]:
    """Return the numbers of the contacts, and gaps, velocities, biases, J, points and axes of their candidates."""
    # one function for all coefficients of friction, such as those of a sweep
    geometry = tuple((c.body, c.shape, c.size, c.placement, c.surface) for c in mechanism.contacts)
    motion = system._parts.part(("contact motion", geometry), lambda: ContactMotion(mechanism))
    if parameters is None and mechanism.free_parameters:
        parameters = np.array([p.value for p in mechanism.free_parameters], dtype=float)
    numbers = ContactNumbers.of(mechanism, None if parameters is None else parameters.tolist())
    return numbers, motion(q, qd, *parameter_arguments(parameters))


def _smallest(b: Numbers, J: Numbers, touch: Touch, mu: Numbers) -> Smallest:
    """Return the forces for b [..., m] and J [..., nc, 3, m]."""
    *lead, m = b.shape
    nc = J.shape[-3]
    cones = Cones.of(touch.modes.reshape(-1, nc), mu, touch.slip.reshape(-1, nc, 2))
    found = smallest_forces(np.moveaxis(J.reshape(-1, nc, 3, m), -1, 1), b.reshape(-1, m), cones)
    return Smallest(found.forces.reshape(*lead, nc, 3), found.residual.reshape(b.shape), found.settled.reshape(lead))


def _driven(mechanism: Mechanism, actuated: str | Iterable[str] | None) -> list[int]:
    """Return the axes with a drive."""
    if actuated is not None:
        return dofs(mechanism, actuated)
    floats = [j for j in mechanism.joints if j.parent == GROUND and kind(j.kind).NV == 6]
    return dofs(mechanism, [j.name for j in mechanism.joints if j not in floats and kind(j.kind).NV])
