"""Inverse dynamics of closed mechanisms: the torques of the actuators and the multipliers of the loops.

S tau_a + J^T lambda = I qdd + h: passive joints have no torque, only the loops move them. [Saha2013] (54)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import RANK, closing_pattern
from ...dynamics.loop_loads import Ranks
from ...errors import InputError
from ...model.axes import axis_labels, axis_names, entries_of
from ...model.mechanism import Mechanism, Named, inputs_of, kept_with_mechanism
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list
from .constraints import ActingForces, Split, require_closed, singular_split
from .driven_programs import NativeLoops, idle_equations, loads_of, with_parameters
from .kinematics import Mask
from .load_sharing import Share, ranks_of, share_loads, transmission
from .samples import Samples
from .tolerances import CONSISTENT

# --- Torques and loads of many states in native code, where the actuators are as many as degrees of freedom

CLEAR = 0.1
"""The part of the tolerance below which motions count as closed here; others are measured by other lengths."""
MISSING = 1e-11
"""The largest missing torque relative to the largest torque of a motion: rounding errors, at well-posed positions."""


@dataclass(frozen=True)
class NativeTorques:
    """Torques and multipliers of states of a leading shape, and which are `good`: others take the general route."""

    samples: Samples
    tau: Numbers
    multipliers: Numbers
    residual: Numbers
    good: Mask


def native_torques(
    acting: ActingForces, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, driven: list[int], tol: float
) -> NativeTorques | None:
    """Return the torques of driven degrees of freedom; None if all states require the general route, or its error."""
    system = acting.system
    native = NativeLoops.of(system, driven)
    if not native.determined or (system.mechanism.free_parameters and closing_pattern(system.mechanism).redundant):
        return None
    samples = samples_of_states(acting, q=q, qd=qd, qdd=qdd)
    if samples is None:
        return None
    shapes = (system.nv, len(system.closures), system.nv)
    tau, multipliers, residual = (np.empty((prod(samples.lead), n)) for n in shapes)
    good = np.zeros(len(tau), dtype=bool)
    for piece in samples.pieces():
        arrays = [piece.array(name) for name in ("q", "qd", "qdd")]
        more = _wrenches(piece.array("wrenches"), len(system.bodies))
        out = (tau[piece.rows], multipliers[piece.rows], residual[piece.rows])
        *_, need, opens, rank = native.torques(
            *with_parameters((*arrays, *more), piece.array("parameters")),
            forces=acting.own_forces,
            wrenches=bool(more),
            out=out,
        )
        missing = np.abs(out[2]).max(axis=-1, initial=0.0)
        closed = (rank[:, 0] == native.passive) & (opens <= CLEAR * tol).all(axis=-1)
        good[piece.rows] = closed & (missing <= MISSING * need[:, 0])
    if good.size and not good.any():
        return None
    tau, multipliers, residual = (x.reshape(*samples.lead, x.shape[-1]) for x in (tau, multipliers, residual))
    return NativeTorques(samples, tau, multipliers, residual, good.reshape(samples.lead))


def native_loads(
    acting: ActingForces, made: NativeTorques, share: Share | None = None
) -> tuple[Numbers, Numbers, Mask] | None:
    """Return wrenches at joints and loops, all multipliers, and which entries the motion determines.

    `share` has compliances by joint or loop, for reactions that the motion does not determine. None if equations depend
    on others, so that loads are shared in a way that differs from state to state.
    """
    system, samples = acting.system, made.samples
    ranks = () if share is None else unit_ranks(system, share)
    if closing_pattern(system.mechanism).redundant:
        return None
    multipliers = made.multipliers.reshape(-1, len(system.closures))
    count, places = prod(samples.lead), len(system.bodies) + len(system.mechanism.loops)
    wrenches, shares = np.empty((count, 6 * places)), np.empty((count, len(system.closures)))
    unique = np.ones((count, 6 * places), dtype=bool)
    for piece in samples.pieces():
        arrays = [*(piece.array(name) for name in ("q", "qd", "qdd")), multipliers[piece.rows]]
        more = _wrenches(piece.array("wrenches"), len(system.bodies))
        entries, moved = loads_of(
            system,
            *with_parameters((*arrays, *more), piece.array("parameters")),
            forces=acting.own_forces,
            wrenches=bool(more),
            ranks=ranks,
            out=(wrenches[piece.rows], shares[piece.rows]),
        )
        if moved is not None:
            unique[piece.rows, entries] = moved <= UNMOVED
    lead = samples.lead
    shape = (*lead, places, 6)
    return wrenches.reshape(shape), shares.reshape(*lead, -1), unique.reshape(shape)


UNMOVED = 1e-12
"""The largest change of a reaction by loads that the motion leaves open, as a square relative to these loads."""


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


def samples_of_states(acting: ActingForces, **states: object) -> Samples | None:
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


# --- Torques of any actuators, by singular values where native code does not apply

Flags = NDArray[np.bool_]
Weights = Mapping[str, float | Sequence[float]]

ACTING = {"wrenches": None, "forces": True, "parameters": None}
"""The options of what acts, with their defaults."""
ROUNDING = 1e-9
"""Missing torques relative to those required, below which they count as rounding."""
NOISE = 1e-14
"""Missing torques relative to those that forces at the joints could cause, below which they count as rounding."""
PART = 1e-6
"""The largest share in undetermined directions of a torque or multiplier that counts as unique."""


@dataclass(frozen=True, repr=False)
class Actuation(Displayed):
    """The torques of actuators for a motion, and whether they are unique.

    `tau` [..., nv] is zero at passive joints, `multipliers` [..., nc] belong to the loops' equations, and `residual`
    [..., nv] are the missing torques I qdd + h - tau - J^T lambda. If they are zero, the motion is `achieved` [...].
    The mechanism has `freedoms` [...], of which the `actuators` drive `driven` [...]. Torques that are not
    `unique_tau` [..., nv] are those of least effort. Multipliers that are not `unique_multipliers` [..., nc] for these
    torques are shared by the joints' compliance.
    """

    tau: Numbers
    multipliers: Numbers
    residual: Numbers
    freedoms: NDArray[np.integer]
    driven: NDArray[np.integer]
    actuators: int
    unique_tau: Flags
    unique_multipliers: Flags
    achieved: Flags
    axes: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def exact(self) -> Flags:
        """Whether there are as many actuators as degrees of freedom, and all are driven, [...]."""
        return (self.driven == self.freedoms) & (self.driven == self.actuators)

    @property
    def under(self) -> Flags:
        """Whether no actuator drives some motion, [...]."""
        return self.driven < self.freedoms

    @property
    def over(self) -> Flags:
        """Whether actuators can work against each other, [...]."""
        return self.driven < self.actuators

    @property
    def worst(self) -> tuple[str, float, str]:
        """The axis with the largest missing torque of all states, the torque, and its unit."""
        if not self.residual.size:
            return ("", 0.0, "")
        k = int(np.argmax(np.abs(self.residual))) % len(self.axes)
        return self.axes[k], float(np.abs(self.residual[..., k]).max()), self.units[k]

    def display(self) -> list[str | Table]:
        """Return the summary, and the torques of one state."""
        if self.tau.ndim > 1:
            return [self.summary()]
        rows = zip(self.axes, self.units, self.tau, self.unique_tau, self.residual, strict=True)
        cells = tuple((a, unit, float(t), "" if u else "not unique", float(r)) for a, unit, t, u, r in rows if t or r)
        return [self.summary(), Table(("joint", "unit", "torque", "", "missing"), cells)]

    def summary(self) -> str:
        """Return degrees of freedom, actuators and missing torques as a sentence."""
        words = {"exactly actuated": self.exact, "under-actuated": self.under, "over-actuated": self.over}
        found = " and ".join(word for word, flags in words.items() if np.any(flags)) or "without states"
        low, high = (int(f(self.freedoms)) if self.freedoms.size else 0 for f in (np.min, np.max))
        axis, missing, unit = self.worst
        lack = "" if self.achieved.all() else f"; up to {missing:.3g} {unit} are missing at {axis}"
        count = low if low == high else f"{low} to {high}"
        return f"degrees of freedom: {count}, actuated: {self.actuators}, {found}{lack}"


def actuation(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    actuated: str | Iterable[str],
    *,
    weights: Weights | None = None,
    share: Share | None = None,
    wrenches: ArrayLike | None = None,
    forces: bool = True,
    parameters: Named | None = None,
    tol: float = CONSISTENT,
) -> Actuation:
    """Return the torques of actuated joints that come closest to a motion, with least effort.

    `actuated` names joints, with all their degrees of freedom, or single axes of joints. `weights` by joint, one number
    or one per degree of freedom, weight the squares of torques that are not unique, such as 1 / limit^2. The default
    weighting multiplies forces by the mechanism's length, so that they compare with torques. `share` has compliances by
    joint or loop, for multipliers that are not unique. The forces of the mechanism act unless `forces` is False. States
    and `parameters` [..., np] may have leading shapes that fit together. Motions that open the loops by more than `tol`
    of their size are refused.
    """
    mechanism = system.mechanism
    acting = ActingForces.of(system, wrenches, forces, parameters)
    driven = driven_dofs(system, actuated)
    made = None if weights is not None else native_torques(acting, q, qd, qdd, driven, tol)
    if made is not None and made.good.all() and (quick := _quick(acting, made, driven, share)) is not None:
        return quick
    need = np.asarray(acting.torques(q, qd, qdd), dtype=float)
    lead = need.shape[:-1]
    q, qd, qdd = (np.broadcast_to(np.asarray(x, dtype=float), (*lead, np.shape(x)[-1])) for x in (q, qd, qdd))
    acting = acting.spread(lead)
    at = singular_split(system, q, acting.parameters)
    require_closed(system, at, q, qd, qdd, tol, acting.parameters)
    tau, rank, free = efforts(at, need, driven, effort_weights(mechanism, at, driven, weights))
    rest = need - tau
    residual = at.without_loops(rest)
    missing, whole = np.linalg.norm(at.columns * residual, axis=-1), np.linalg.norm(at.columns * need, axis=-1)
    multipliers = at.multipliers(rest)
    if (at.rank < at.J.shape[-2]).any():
        T = transmission(mechanism, acting.poses(q), acting.parameters)
        multipliers = share_loads(mechanism, at, T, acting.carried(T, q, qd, qdd, multipliers), multipliers, share)
    found = Actuation(
        tau,
        multipliers,
        residual,
        mechanism.nv - at.rank,
        rank,
        len(driven),
        free <= PART,
        np.linalg.norm(at.idle / at.rows[..., None], axis=-1) <= PART,
        missing <= ROUNDING * whole + NOISE * _passed_on(acting, at, q, qd, qdd),
        *_names(mechanism),
    )
    if made is None or made.good.all():
        return found
    good, own = made.good, acting.of_samples(made.good)
    return replace_samples(
        found, good, actuation(system, q[good], qd[good], qdd[good], actuated, share=share, tol=tol, **own)
    )


def actuated_torques(
    system: CompiledMechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, actuated: str | Iterable[str], **options
) -> Numbers:
    """Return the torques [..., nv] of actuated joints for a motion, or raise an InputError if they cannot cause it."""
    if not set(options) - set(ACTING):
        acting = ActingForces.of(system, *(options.get(name, default) for name, default in ACTING.items()))
        quick = native_torques(acting, q, qd, qdd, driven_dofs(system, actuated), CONSISTENT)
        if quick is not None and quick.good.all():
            return quick.tau
    found = actuation(system, q, qd, qdd, actuated, **options)
    if not found.achieved.all():
        bad = np.argwhere(~found.achieved)
        where = f" in {len(bad)} of {found.achieved.size} states, first {bad[0].tolist()}" if bad.size else ""
        axis, missing, unit = found.worst
        raise InputError(
            f"the actuators drive {int(found.driven.min())} of {int(found.freedoms.max())} degrees of freedom and "
            f"cannot make this motion{where}: up to {missing:.3g} {unit} are missing at {axis!r}; actuate more joints, "
            "or see arm.actuation for the nearest torques"
        )
    return found.tau


def _quick(acting: ActingForces, found: NativeTorques, driven: list[int], share: Share | None) -> Actuation | None:
    """Return the torques of as many actuators as degrees of freedom; None if their multipliers are not unique."""
    system, m = acting.system, acting.system.mechanism
    lead, multipliers, idle = found.tau.shape[:-1], found.multipliers, idle_equations(system)
    if idle or closing_pattern(m).redundant:
        loads = native_loads(acting, found, share)
        if loads is None:
            return None
        multipliers = loads[1]
    count = np.full(lead, len(driven))
    return Actuation(
        found.tau,
        multipliers,
        found.residual,
        count,
        count,
        len(driven),
        np.ones(found.tau.shape, dtype=bool),
        np.broadcast_to(~np.isin(np.arange(multipliers.shape[-1]), idle), multipliers.shape),
        np.ones(lead, dtype=bool),
        *_names(m),
    )


R = TypeVar("R")


def replace_samples(found: R, good: Mask, native: R) -> R:
    """Return a result in which some samples have the numbers, hence the bits, of native code.

    A sample has so the same bits in every batch, whichever route the others take.
    """
    arrays = {}
    for f in fields(found):  # pyright: ignore[reportArgumentType]
        if isinstance(x := getattr(found, f.name), np.ndarray):
            arrays[f.name] = np.array(x)
            arrays[f.name][good] = getattr(native, f.name)
    return replace(found, **arrays)  # pyright: ignore[reportArgumentType]


def _passed_on(acting: ActingForces, at: Split, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
    """Return the size of the torques that the largest force or moment at the joints of the tree could cause, [...].

    It is scaled as the residual. Torques may vanish where such forces do not, as at a dead center.
    """
    wrenches = acting.call("reactions", q, qd, qdd)
    turning = np.arange(6) < 3
    forces = np.abs(np.where(turning, wrenches / at.length[..., None, None], wrenches)).max(axis=(-2, -1), initial=0.0)
    sliding = np.array([unit == "m" for unit in _units(acting.system.mechanism)], dtype=bool)
    levers = np.where(sliding, 1.0, at.length[..., None])
    return forces * np.linalg.norm(at.columns * levers, axis=-1)


def driven_dofs(system: CompiledMechanism, names: str | Iterable[str]) -> list[int]:
    """Return `dofs` of the mechanism of a system, which keeps them."""
    known = tuple(map(str, as_list(names)))
    return system._parts.part(("driven", known), lambda: dofs(system.mechanism, known))


def dofs(mechanism: Mechanism, names: str | Iterable[str]) -> list[int]:
    """Return the degrees of freedom of joints, or of axes of joints, by name, in order."""
    return sorted({k for at in entries_of(mechanism, as_list(names), 1) for k in at})


def efforts(at: Split, need: Numbers, driven: list[int], weights: Numbers) -> tuple[Numbers, NDArray, Numbers]:
    """Return tau, the number of freedoms it drives, and the share of each torque in directions that drive none.

    Along the motions that the loops allow, the multipliers do no work: the remaining equations contain tau alone.
    """
    effort = 1.0 / np.sqrt(weights)
    A = (at.moves * at.columns[..., None, :])[..., driven] * effort[..., None, :]
    V, sizes, Ut = np.linalg.svd(A)
    count = sizes.shape[-1]
    whole = np.linalg.norm(at.columns[..., driven] * effort, axis=-1)  # A without loops
    rank = (sizes > RANK * whole[..., None]).sum(axis=-1)
    real = np.arange(count) < rank[..., None]
    b = at.moves @ (at.columns * need)[..., None]
    along = (np.swapaxes(V, -1, -2) @ b)[..., :count, 0]
    part = np.where(real, along / np.where(real, sizes, 1.0), 0.0)
    tau, free = np.zeros(need.shape), np.zeros(need.shape)
    tau[..., driven] = effort * (np.swapaxes(Ut, -1, -2)[..., :count] @ part[..., None])[..., 0]
    beyond = np.arange(len(driven)) >= rank[..., None]
    free[..., driven] = np.linalg.norm(np.where(beyond[..., None], Ut, 0.0), axis=-2)
    return tau, rank, free


def effort_weights(mechanism: Mechanism, at: Split, driven: list[int], given: Weights | None) -> Numbers:
    """Return the weight of each actuated degree of freedom, [..., na]."""
    sliding = np.array([unit == "m" for unit in _units(mechanism)], dtype=bool)
    out = np.where(sliding, at.length[..., None] ** 2, 1.0)
    for name, value in (given or {}).items():
        mine, numbers = dofs(mechanism, name), np.asarray(value, dtype=float)
        if numbers.shape not in ((), (len(mine),)) or not (np.isfinite(numbers).all() and (numbers > 0).all()):
            raise InputError(f"weight of {name!r} is {value!r}; expected a number above 0, or {len(mine)} of them")
        if not set(mine) <= set(driven):
            raise InputError(f"weight of {name!r}, which is not actuated; leave it out, or name it in actuated")
        out[..., mine] = numbers
    return out[..., driven]


def _units(mechanism: Mechanism) -> list[str]:
    return [unit for _, _, unit in axis_names(mechanism, 1)]


@kept_with_mechanism
def _names(mechanism: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all axes, and the units of their torques."""
    return tuple(axis_labels(mechanism, 1)), tuple("N m" if unit == "rad" else "N" for unit in _units(mechanism))
