"""Motions of closed mechanisms from the motions of their driving joints, for many designs, with actuator torques."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...algebra.scalars import Numbers
from ...errors import InputError, unknown_name
from ...model.axes import entries_of
from ...model.mechanism import Named, inputs_of, parameter_arguments
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import NUMBERS, as_list, numbers, require_names
from .actuation import dofs
from .batch_assembly import ON_FAILURE, assemble, failure, guess_of, masks_by_name, refuse_failed, samples_of
from .driven_programs import NativeLoops, mobility
from .kinematics import LoopKinematics, Mask
from .leaders import choose_leaders
from .motion_runs import KEPT, DrivenMotion, Flags, Runner
from .samples import Samples
from .tolerances import ASSEMBLED


def driven_motion(
    system: CompiledMechanism,
    positions: Mapping[str, ArrayLike],
    speeds: Mapping[str, ArrayLike] | None = None,
    accelerations: Mapping[str, ArrayLike] | None = None,
    *,
    actuated: str | Iterable[str] | None = None,
    forces: bool = True,
    parameters: Named | None = None,
    q_guess: ArrayLike | None = None,
    keep: Iterable[str] = ("q", "qd", "qdd", "tau"),
    on_failure: str = "raise",
) -> DrivenMotion:
    """Return the motion of all joints from positions [..., nt] of the driving joints, and the torques that make it.

    Numbers instead of arrays are one instant, whose results have no axis of time. `speeds` and `accelerations` by joint
    default to zeros: a sequence of positions at rest. The driving joints must determine the motion. `actuated` are the
    joints with torques, by default the driving ones. The forces of the mechanism act unless `forces` is False.
    Parameters [..., 1, np] have the leading shape of the designs. Each position continues the one before. One that does
    not close raises an AssemblyError, or is NaN with on_failure="nan". `keep` names the arrays to return, which saves
    memory.
    """
    kept = _kept(keep)
    if on_failure not in ON_FAILURE:
        raise InputError(f"on_failure is {on_failure!r}; expected 'raise' or 'nan'")
    given = positions, {} if speeds is None else speeds, {} if accelerations is None else accelerations
    for mapping in given:
        require_names(system.mechanism, mapping)
    drive = Drive.of(system, given, actuated, forces)
    one = _one_instant(drive, given, guess_of(system, q_guess), inputs_of(system.mechanism, parameters), kept)
    if one is not None:
        return one
    m = system.mechanism
    rates = {name: numbers(m, x, 1) for name, x in zip(("speeds", "accelerations"), given[1:], strict=True)}
    samples = samples_of(system, q_guess, positions, parameters, motion=True, **rates)
    kernel = drive.kernel if samples.steps == 1 and drive.plain else None
    whole = Runner(system, samples, drive.masks, drive.native, drive.driven, drive.forces, kernel=kernel).run(kept)
    if on_failure == "raise" and not whole.closed.all():
        _refuse(system, samples, drive.masks, whole.closed)
    return whole


Given = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]
"""Positions, speeds and accelerations by joint."""


@dataclass(frozen=True)
class Drive:
    """The driving joints and actuators of a motion: checked, with the programs that they need."""

    masks: tuple[Mask, Mask]
    native: NativeLoops
    driven: frozenset[int]
    forces: bool
    places: NDArray[np.intp] | None
    """The entries of given numbers in [q, qd, qdd]; None if a joint has several."""

    @classmethod
    def of(cls, system: CompiledMechanism, given: Given, actuated: str | Iterable[str] | None, forces: bool) -> Drive:
        """Return the drive that the system keeps for names of joints."""
        names = tuple(given[0]) if actuated is None else tuple(as_list(actuated))
        key = ("drive", *map(tuple, given), names, forces)
        return system._parts.part(key, lambda: cls._made(system, given, names, forces))

    @classmethod
    def _made(cls, system: CompiledMechanism, given: Given, names: tuple[str, ...], forces: bool) -> Drive:
        m, (positions, *rates) = system.mechanism, given
        masks = masks_by_name(system, positions)
        for what, some in zip(("speeds", "accelerations"), rates, strict=True):
            for name in some:
                if name not in positions:
                    raise InputError(f"{what} of {name!r}, whose positions are not given; give them, or leave it out")
        native = NativeLoops.of(system, masks[1])
        _refuse_others(system, native, positions)
        driven = frozenset(dofs(m, names))
        if len(driven) != len(native.held):
            raise InputError(
                f"{len(driven)} degrees of freedom are actuated and {len(native.held)} drive the motion; name as many, "
                "or use inverse_dynamics(..., actuated=) for the motion that driven_motion returns"
            )
        found = zip(given, (0, m.nq, m.nq + m.nv), (0, 1, 1), strict=True)
        entries = [(first, at) for x, first, which in found for at in entries_of(m, x, which)]
        single = all(len(at) == 1 for _, at in entries)
        places = np.array([first + k for first, at in entries for k in at], dtype=int) if single else None
        return cls(masks, native, driven, forces and m.has_forces, places)

    @cached_property
    def plain(self) -> bool:
        """Whether each driving coordinate is a degree of freedom: no driving joint has a quaternion."""
        return int(self.masks[0].sum()) == len(self.native.held)

    @cached_property
    def kernel(self) -> np.ufunc:
        """The compiled kernel of one instant."""
        return self.native.instant(self.driven, forces=self.forces)


def _one_instant(
    drive: Drive, given: Given, guess: Numbers, parameters: Numbers | None, keep: tuple[str, ...]
) -> DrivenMotion | None:
    """Return the motion of one instant, by one native call; None for arrays, or if the loops do not close near q."""
    values, rest = [x for mapping in given for x in mapping.values()], parameter_arguments(parameters)
    if drive.places is None or not NUMBERS.issuperset(map(type, values)) or not isfinite(sum(values)):
        return None
    if guess.ndim > 1 or any(x.ndim > 1 for x in rest):
        return None
    nq, nv = len(guess), drive.native.system.nv
    arrays = np.zeros(nq + 2 * nv)
    arrays[:nq] = guess
    arrays[drive.places] = values
    with np.errstate(all="ignore"):
        *found, gap, rank = drive.kernel(guess, arrays[:nq], arrays[nq : nq + nv], arrays[nq + nv :], *rest)
    if not (gap[0] <= ASSEMBLED and rank[0] == drive.native.passive):
        return None
    return DrivenMotion(*(x if n in keep else None for n, x in zip(KEPT, found, strict=True)), closed=np.array(True))


def _refuse_others(system: CompiledMechanism, native: NativeLoops, positions: Mapping[str, ArrayLike]) -> None:
    """Refuse driving joints that do not determine the motion, and mechanisms without programs."""
    m = system.mechanism
    if m.rolls:
        raise InputError(
            f"driven_motion of {m.name!r}: it rolls or slides by equations of velocities alone, so that positions of "
            "driving joints do not determine the others; simulate it with kt.Driven, which integrates the velocities"
        )
    if not native.possible:
        raise InputError(
            f"driven_motion needs a mechanism with loops, joints that they move and inertia at all joints; {m.name!r} "
            "is not one: use inverse_dynamics, or assemble, consistent_speeds and consistent_accelerations"
        )
    if not native.determined:
        count = mobility(system)
        lead = ", ".join(choose_leaders(LoopKinematics(system), assemble(system)).names)
        raise InputError(
            f"positions of {', '.join(positions) or 'no joint'} ({len(native.held)} degrees of freedom) do not "
            f"determine the motion of {m.name!r}, which has {count}; give as many, such as {lead}"
        )


def _refuse(system: CompiledMechanism, samples: Samples, masks: tuple[Mask, Mask], closed: Flags) -> None:
    """Raise the error of the first instant without numbers."""
    shape = prod(samples.runs), samples.steps
    found = np.where(closed.reshape(*shape, 1), 0.0, np.full(system.nq, np.nan))
    refuse_failed(system, samples, masks, found, ASSEMBLED)
    what = "the loops do not close near the guess, or the driving joints do not determine the motion there"
    raise failure(system, samples, ~closed, what, "give a nearer guess (q_guess)")


def _kept(keep: Iterable[str]) -> tuple[str, ...]:
    names = tuple(as_list(keep))
    for name in names:
        if name not in KEPT:
            raise unknown_name("array of a motion", str(name), KEPT)
    return names


# --- Motions of closed mechanisms that are nearest to given ones, whose loops are slightly open ---

STEPS = 3
"""The number of Newton steps that close gaps of up to 1e-4 m or rad to rounding: each step squares the gap."""
SINGULAR = 1e-9
"""Singular values of loop equations below this part of the largest one count as zero: well above rounding."""


def nearest_motion(
    system: CompiledMechanism, q: Numbers, qd: Numbers, qdd: Numbers, *, parameters: Numbers | None = None
) -> tuple[Numbers, Numbers, Numbers]:
    """Return q, qd and qdd that keep the loops closed, nearest to given ones; wider gaps than slight ones remain.

    Splines and rounded tables open loops slightly. Positions and velocities are nearest in the kinetic-energy norm.
    Accelerations are nearest by their numbers: those of splines are wrong by about as much at light and heavy bodies,
    and the other norm would leave the corrections to the light ones.
    """
    for _ in range(STEPS):
        q = system.integrate(q, system.closing_step(q, parameters=parameters))
    qd = system.closing_speed(q, qd, parameters=parameters)
    J = system.closure_jacobian(q, parameters=parameters)
    parting = (J @ qdd[..., None])[..., 0] + system.closure_bias(q, qd, parameters=parameters)
    return q, qd, qdd - (np.linalg.pinv(J, rcond=SINGULAR) @ parting[..., None])[..., 0]
