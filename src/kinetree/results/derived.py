"""Columns computed from the states of a run, each by one call of a function of the System for all samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
from ..analysis.loops.load_sharing import common_loads, same_geometry
from ..errors import InputError
from .columns import GIVEN

if TYPE_CHECKING:
    from .trajectory import Trajectory


# --- Arrays of a run that are given, or computed from its states at their first use ---

Source = Callable[[str, Any], Numbers]
"""A function (name of the field, run) -> array, for a run or any part of it."""


class Recorded:
    """A field of a Trajectory that holds an array, None, or the Source of an array.

    Batches of runs are large: an array with a Source takes no memory until it is used.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, run: None, owner: type) -> None: ...
    @overload
    def __get__(self, run: object, owner: type) -> Numbers | None: ...
    def __get__(self, run, owner):
        """Return the array, computed at its first use; for the class None, the default of the field."""
        if run is None:
            return None
        value = vars(run)[self._name]
        if callable(value):
            value = vars(run)[self._name] = array(self._name, value(self._name, run))
        return value

    def __set__(self, run: object, value: ArrayLike | Source | None) -> None:
        """Keep an array or a Source."""
        vars(run)[self._name] = value


def array(name: str, values: object, shape: tuple[int, ...] | None = None) -> Numbers:
    """Return real numbers as a read-only view, or raise an InputError."""
    try:
        found = np.asarray(values, dtype=np.float64).view()
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of real numbers") from None
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} has shape {found.shape}; expected {shape}")
    found.flags.writeable = False
    return found


def is_zeros(values: Numbers) -> bool:
    """Return whether an array is a single zero repeated by broadcasting, without reading all entries."""
    return values.size > 0 and not any(values.strides) and not values.flat[0]


def derive(run: Trajectory, name: str) -> dict[str, Numbers]:
    """Return a column of a run by its full name, and those that are computed with it; samples that are NaN stay NaN."""
    if run.system.closures and name in ("reactions", "loop_reactions"):
        return _loads(run)
    return {name: _single(run, name)}


def _single(run: Trajectory, name: str) -> Numbers:
    if name in ("t", "q", "qd", *GIVEN):
        return getattr(run, name)
    if name == "tracking_error":
        return run["reference"] - run.q
    if name == "tau":
        return np.zeros(run.qd.shape) if run.torque is None else run.torque
    if name == "energy":
        return run["kinetic_energy"] + run["potential_energy"]
    if name == "qdd":
        if run.accelerations is not None:
            return run.accelerations
        return run.system.forward_dynamics(run.q, run.qd, run["tau"], **call_options(run, wrenches=True))
    if name == "gap":
        return run.system.closure_residual(run.q, **call_options(run))
    if name == "multipliers":
        return run.system.multipliers(run.q, run.qd, run["tau"], **call_options(run, wrenches=True))
    if name == "reactions":
        return run.system.reactions(run.q, run.qd, run["qdd"], **call_options(run, wrenches=True))
    states = (run.q, run.qd) if name in ("kinetic_energy", "momentum") else (run.q,)
    return getattr(run.system, name)(*states, **call_options(run))


def _loads(run: Trajectory) -> dict[str, Numbers]:
    """Return the reactions at the joints and at the loops of a closed mechanism."""
    values = run.parameters
    if values is not None and run.shape and values.ndim == 2 and not run.q.strides[0] and not run.qd.strides[0]:
        if same_geometry(run.system, values):  # designs that make one motion
            joints, loops = common_loads(
                run.system,
                run.q[0],
                run.qd[0],
                run["qdd"][0],
                tau=run["tau"],
                wrenches=acting_wrenches(run),
                parameters=values,
            )
            return {"reactions": joints, "loop_reactions": loops}
    found = run.system.loads(
        run.q,
        run.qd,
        tau=run["tau"],
        wrenches=acting_wrenches(run),
        forces=False,
        parameters=run.parameters_at_samples,
    )
    return {"reactions": found.joints, "loop_reactions": found.cuts}


def acting_wrenches(run: Trajectory) -> Numbers | None:
    """Return the wrenches on the bodies, or None if all are zero: functions of long mechanisms accept none."""
    wrenches = run.wrenches
    if wrenches is None or is_zeros(wrenches) or not np.nan_to_num(wrenches).any():
        return None
    return wrenches


def call_options(run: Trajectory, *, wrenches: bool = False) -> dict[str, Any]:
    """Return the options that a run passes to functions of its System: parameters, and wrenches that acted."""
    options: dict[str, Any] = {"check": False}
    if run.parameters is not None:
        options["parameters"] = run.parameters_at_samples
    if wrenches:
        options["forces"] = False  # torque and wrenches of the run contain them
        if run.wrenches is not None:
            options["wrenches"] = run.wrenches
    return options


def energy_error(run: Trajectory) -> Numbers:
    """Return the largest change of the total energy relative to the energy in motion, for each run of a batch.

    The energy in motion is the largest kinetic energy or the span of the potential energy, whichever is larger. Both
    are independent of the height at which the potential energy is zero.
    """
    _ = run.constant_parameters  # refuses runs in which masses come and go with their energy
    energy, kinetic, potential = run["energy"], run["kinetic_energy"], run["potential_energy"]
    with np.errstate(invalid="ignore"):
        span = np.fmax.reduce(potential, axis=-1) - np.fmin.reduce(potential, axis=-1)
        scale = np.fmax(np.fmax.reduce(kinetic, axis=-1), span)
        drift = np.fmax.reduce(np.abs(energy - energy[..., :1]), axis=-1)
        return np.where(drift > 0, drift / np.where(scale > 0, scale, 1.0), drift)
