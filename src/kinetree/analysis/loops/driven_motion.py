"""Motions of closed mechanisms from those of their driving joints, for many designs at once, with actuator torques."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import InputError, unknown_name
from ...model.axes import axis_names
from ...model.parameter_values import Named
from ...model.scales import characteristic_length
from ..joint_entries import held as held_masks
from ..joint_entries import listed, numbers
from .actuation import dofs
from .assembly import STRIDE, assemble
from .batch_assembly import ON_FAILURE, batch_at, refuse_failed, samples_of
from .batch_closing import Batch
from .kinematics import LoopKinematics, Mask
from .leaders import leading
from .native_loops import NativeLoops, mobility, with_parameters
from .samples import Piece, Samples

Flags = NDArray[np.bool_]

TOLERANCE = 1e-12
"""The largest gap of a position, in radians and in parts of the mechanism's length."""
CLOSED_ENOUGH = 1e-13
"""The gap above which a position is corrected again, in the same units."""
KEPT = ("q", "qd", "qdd", "tau")
"""The arrays of a motion."""
AGAIN = 4
"""The most evaluations of an instant: each corrects the extrapolated position once, and one or two suffice."""
WEIGHTS = ((1.0,), (2.0, -1.0), (3.0, -3.0, 1.0), (4.0, -6.0, 4.0, -1.0))
"""Weights of the last positions, newest first, that extrapolate a motion by a polynomial through them."""


@dataclass(frozen=True)
class DrivenMotion:
    """Positions [..., nt, nq], velocities, accelerations and actuator torques [..., nt, nv] of a mechanism.

    Torques are those of the actuated joints, and zero elsewhere. Where `closed` [..., nt] is false, the loops do not
    close, or the driving joints do not determine the motion, and all numbers are NaN. Arrays that were not to
    be kept are None.
    """

    q: Any
    qd: Any
    qdd: Any
    tau: Any
    closed: Flags


def driven_motion(
    system: CompiledMechanism,
    positions: Mapping[str, Any],
    speeds: Mapping[str, Any] | None = None,
    accelerations: Mapping[str, Any] | None = None,
    *,
    actuated: str | Iterable[str] | None = None,
    forces: bool = False,
    parameters: Named | None = None,
    q_guess: ArrayLike | None = None,
    keep: Iterable[str] = ("q", "qd", "qdd", "tau"),
    on_failure: str = "raise",
) -> DrivenMotion:
    """Return the motion of all joints from positions [..., nt] of the driving joints, and the torques that make it.

    `speeds` and `accelerations` by joint default to zeros: a sequence of positions at rest. The driving joints must
    determine the motion. `actuated` are the joints with torques, by default the driving ones. With `forces`, the forces
    of the mechanism act. Parameters [..., 1, np] have the leading shape of the designs. Each position continues the one
    before. One that does not close raises an AssemblyError, or is NaN with on_failure="nan". `keep` names the arrays to
    return, which saves memory.
    """
    kept = _kept(keep)
    if on_failure not in ON_FAILURE:
        raise InputError(f"on_failure is {on_failure!r}; expected 'raise' or 'nan'")
    m = system.mechanism
    masks = held_masks(m, positions)
    names = list(positions) if actuated is None else listed(actuated)
    rates = {"speeds": speeds or {}, "accelerations": accelerations or {}}
    rates = {what: _matching(m, what, given, positions) for what, given in rates.items()}
    samples = samples_of(system, q_guess, positions, parameters, motion=True, **rates)
    native = NativeLoops.of(system, masks[1])
    _refuse_others(system, native, positions)
    driven = frozenset(dofs(m, names))
    if len(driven) != len(native.held):
        raise InputError(
            f"{len(driven)} degrees of freedom are actuated and {len(native.held)} drive the motion; name as many, or "
            "use inverse_dynamics(..., actuated=) for the motion that driven_motion returns"
        )
    whole = _Runner(system, samples, masks, native, driven, forces).run(kept)
    if on_failure == "raise" and not whole.closed.all():
        _refuse(system, samples, masks, whole.closed)
    return whole


@dataclass(frozen=True)
class _Runner:
    """The computation of a motion, piece by piece of its runs and instant by instant."""

    system: CompiledMechanism
    samples: Samples
    masks: tuple[Mask, Mask]
    native: NativeLoops
    driven: frozenset[int]
    forces: bool

    def run(self, keep: tuple[str, ...]) -> DrivenMotion:
        """Return the motion; arrays are written instant by instant, and returned transposed."""
        samples, nv = self.samples, self.system.nv
        count, sizes = prod(samples.runs), {"q": self.system.nq, "qd": nv, "qdd": nv, "tau": nv}
        whole: dict[str, Any] = {name: np.empty((samples.steps, count, sizes[name])) for name in keep}
        closed = np.zeros((samples.steps, count), dtype=bool)
        far = samples.strides("hold", coordinate_units(self.system)) > STRIDE
        for piece in samples.pieces():
            past: list[Numbers] = []
            for k in range(samples.steps):
                batch = batch_at(self.system, piece, self.masks, k)
                guess = _guess(batch, past, far=bool(far[k]))
                out = tuple(whole[name][k, piece.rows] if name in keep else None for name in KEPT)
                q, closed[k, piece.rows] = self._instant(piece, batch, guess, k, out)
                past = [q, *past[: len(WEIGHTS) - 1]]
        moved: list[Any] = [None] * len(KEPT)
        for k, name in enumerate(KEPT):
            if name in keep:
                moved[k] = np.moveaxis(whole[name], 0, 1).reshape(*samples.lead, sizes[name])
        return DrivenMotion(*moved, closed=np.moveaxis(closed, 0, 1).reshape(samples.lead))

    def _instant(self, piece: Piece, batch: Batch, q: Numbers, step: int, out: tuple) -> tuple[Numbers, Flags]:
        """Write q, qd, qdd and tau of one instant, NaN where the loops do not close; return q, and where they do."""
        zeros, values = np.broadcast_to(0.0, (len(q), batch.system.nv)), batch.parameters
        qd, qdd = (piece.placed(name, zeros, step) for name in ("speeds", "accelerations"))
        found = self._motion(q, qd, qdd, values, (*out, None, None))
        gap, rank = found[-2:]
        for _ in range(AGAIN - 1):
            again = np.flatnonzero(gap[:, 0] > CLOSED_ENOUGH)
            if not len(again):
                break
            own = None if values is None else values[again]
            for whole, x in zip(found, self._motion(found[0][again], qd[again], qdd[again], own), strict=True):
                whole[again] = x
        good = (gap[:, 0] <= TOLERANCE) & (rank[:, 0] == self.native.passive)
        found[0][:, batch.at] = batch.wanted[:, batch.at]
        if not good.all():
            for x in found[:4]:
                x[~good] = np.nan
        return found[0], good

    def _motion(
        self, q: Numbers, qd: Numbers, qdd: Numbers, values: Numbers | None, out: tuple | None = None
    ) -> tuple[Numbers, ...]:
        arrays = with_parameters((q, qd, qdd), values)
        return self.native.motion(*arrays, driven=self.driven, forces=self.forces, out=out)


def _guess(batch: Batch, past: list[Numbers], *, far: bool) -> Numbers:
    """Return positions from which one correction suffices, with the held coordinates as wanted."""
    if not past:
        return batch.first(TOLERANCE)
    if far:
        return batch.next(past[min(1, len(past) - 1)], past[0], TOLERANCE)
    weights = WEIGHTS[len(past) - 1] if batch.flat else WEIGHTS[0]
    ahead = weights[0] * past[0]
    for x, before in zip(weights[1:], past[1:], strict=False):
        ahead += x * before
    ahead[:, batch.at] = batch.wanted[:, batch.at]
    return ahead


def coordinate_units(system: CompiledMechanism) -> Numbers:
    """Return the unit of each coordinate: a radian, or the mechanism's length [m]."""
    length = characteristic_length(system.mechanism)
    return np.array([length if unit == "m" else 1.0 for _, _, unit in axis_names(system.mechanism, 0)])


def _matching(mechanism: Any, what: str, given: Mapping[str, Any], positions: Mapping[str, Any]) -> dict[int, Numbers]:
    for name in given:
        if name not in positions:
            raise InputError(f"{what} of {name!r}, whose positions are not given; give them, or leave it out")
    return numbers(mechanism, given, 1)


def _refuse_others(system: CompiledMechanism, native: NativeLoops, positions: Mapping[str, Any]) -> None:
    """Refuse driving joints that do not determine the motion, and mechanisms without programs."""
    m = system.mechanism
    if not native.possible:
        raise InputError(
            f"driven_motion needs a mechanism with loops, joints that they move and inertia at all joints; {m.name!r} "
            "is not one: use inverse_dynamics, or assemble, consistent_speeds and consistent_accelerations"
        )
    if not native.determined:
        count = mobility(system)
        lead = ", ".join(leading(LoopKinematics(system), assemble(system)).names)
        raise InputError(
            f"positions of {', '.join(positions) or 'no joint'} ({len(native.held)} degrees of freedom) do not "
            f"determine the motion of {m.name!r}, which has {count}; give as many, such as {lead}"
        )


def _refuse(system: CompiledMechanism, samples: Samples, masks: Any, closed: Flags) -> None:
    """Raise the error of the first instant without numbers."""
    shape = prod(samples.runs), samples.steps
    found = np.where(closed.reshape(*shape, 1), 0.0, np.full(system.nq, np.nan))
    refuse_failed(system, samples, masks, found, TOLERANCE)


def _kept(keep: Iterable[str]) -> tuple[str, ...]:
    names = tuple(listed(keep))
    for name in names:
        if name not in KEPT:
            raise unknown_name("array of a motion", str(name), KEPT)
    return names
