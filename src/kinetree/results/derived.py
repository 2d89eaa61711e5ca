"""Columns computed from the states of a run, each by one call of a function of the System for all samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from ..analysis.loops.common_motion import common_loads, same_geometry
from .columns import GIVEN
from .recorded import is_zeros

if TYPE_CHECKING:
    from .trajectory import Trajectory


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
    if name == "reactions":
        return run.system.reactions(run.q, run.qd, run["qdd"], **call_options(run, wrenches=True))
    states = (run.q, run.qd) if name in ("kinetic_energy", "momentum") else (run.q,)
    return getattr(run.system, name)(*states, **call_options(run))


def _loads(run: Trajectory) -> dict[str, Numbers]:
    """Return the reactions at the joints and at the loops of a closed mechanism."""
    values = run.parameters
    if values is not None and values.ndim == 2 and not run.q.strides[0] and not run.qd.strides[0]:
        if same_geometry(run.system, values):  # designs that make one motion
            joints, loops = common_loads(
                run.system, run.q[0], run.qd[0], run["qdd"][0], tau=run["tau"], wrenches=acting_wrenches(run),
                parameters=values,
            )  # fmt: skip
            return {"reactions": joints, "loop_reactions": loops}
    values = None if values is None else values[..., None, :]
    found = run.system.loads(run.q, run.qd, tau=run["tau"], wrenches=acting_wrenches(run), parameters=values)
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
        options["parameters"] = run.parameters[..., None, :]
    if wrenches and run.wrenches is not None:
        options["wrenches"] = run.wrenches
    return options


def energy_error(run: Trajectory) -> Numbers:
    """Return the largest change of the total energy relative to the energy in motion, for each run of a batch.

    The energy in motion is the largest kinetic energy or the span of the potential energy, whichever is larger. Both
    are independent of the height at which the potential energy is zero.
    """
    energy, kinetic, potential = run["energy"], run["kinetic_energy"], run["potential_energy"]
    with np.errstate(invalid="ignore"):
        span = np.fmax.reduce(potential, axis=-1) - np.fmin.reduce(potential, axis=-1)
        scale = np.fmax(np.fmax.reduce(kinetic, axis=-1), span)
        drift = np.fmax.reduce(np.abs(energy - energy[..., :1]), axis=-1)
        return np.where(drift > 0, drift / np.where(scale > 0, scale, 1.0), drift)
