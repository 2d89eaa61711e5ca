"""Friction, damping and springs of a mechanism, added to a run of inverse dynamics that left them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..joints import kind
from ..model.mechanism import resolved
from ..results.derived import acting_wrenches
from ..results.trajectory import Trajectory
from ..simulation.forces.joint_forces import SLIP_SPEED
from ..simulation.smooth import smooth_sign
from .drives import drive_efforts, driven_columns
from .elements import acting, own_elements


def with_passive_forces(run: Trajectory) -> Trajectory:
    """Return the same motion with the torques that the drives need if the mechanism's own forces act."""
    if run.control is not None:
        raise InputError("passive=True is for runs of inverse dynamics; this run has the torques of its drives already")
    system, wrenches = run.system, acting_wrenches(run)
    more: dict[str, Any] = {} if run.parameters is None else {"parameters": run.parameters}
    if system.closures:
        more["actuated"] = driven_joints(run)
    efforts = system.inverse_dynamics(run.q, run.qd, run["qdd"], wrenches=wrenches, forces=True, **more)
    own = acting(run, own_elements(run))
    pushed = own.wrenches if wrenches is None else own.wrenches + wrenches
    return replace(run, control=efforts, torque=efforts + own.torques - friction(run), wrenches=pushed)


def driven_joints(run: Trajectory) -> list[str]:
    """Return the names of the joints with a drive."""
    with_drive = set(driven_columns(drive_efforts(run)))
    pairs = zip(run.system.joints, run.system.mechanism.v_slices, strict=True)
    return [joint.name for joint, own in pairs if with_drive & set(range(own.start, own.stop))]


def friction(run: Trajectory) -> Numbers:
    """Return the torques that friction and damping of the joints take [nt, nv], in the direction of the motion."""
    rubbing = joint_numbers(run, "friction") * smooth_sign(run.qd, SLIP_SPEED)
    return joint_numbers(run, "damping") * run.qd + rubbing


def joint_numbers(run: Trajectory, name: str) -> Numbers:
    """Return a number of the joints, such as their damping, for each degree of freedom."""
    mechanism = run.system.mechanism
    values = mechanism.values(None if run.parameters is None else [float(x) for x in run.parameters])
    joints = resolved(mechanism.joints, values)
    return np.array([x for j in joints for x in (getattr(j, name) or (0.0,) * kind(j.kind).NV)], dtype=float)
