"""Closed cycles of mechanisms with one degree of freedom, driven at constant speed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._support.checks import number, whole
from .._support.tables import count_text
from ..errors import Advice, InputError
from ..joints import kind
from ..model.mechanism import Mechanism, Named, parameter_sets
from ..results.trajectory import Trajectory
from ..system import System
from .acting.driven import Driven
from .acting.references import Hold
from .outcomes import Outcome
from .simulate import simulate

SAMPLES = 361
"""The default number of samples: one per degree, with both ends."""

RETURNED = 1e-9
"""The largest difference between the poses of both ends of a cycle [rad, or parts of the mechanism's length]."""

ROCKER = "a rocker turns back: drive the crank, or move the rocker within its range by kt.Driven"
"""What to do where the loops open before a revolution ends."""


def cycle(
    system: System,
    drive: str,
    *,
    speed: float,
    start: float | None = None,
    samples: int = SAMPLES,
    revolutions: int = 1,
    parameters: Named | None = None,
    **options,
) -> Trajectory:
    """Return one closed cycle of a mechanism with one degree of freedom, driven at a constant `speed` [rad/s].

    The run has positions, velocities, accelerations, the torque of the drive ("control"), and the reactions at joints
    and loops ("reactions", "loop_reactions"). It begins at the angle `start` of the drive, by default that of the
    assembled mechanism, and takes one revolution, or several. Forces are those of `simulate`: passive=False leaves out
    damping, friction and springs of the mechanism, `forces` adds others. `parameters` may be a batch.
    """
    speed = number(speed, "speed")
    if speed == 0.0:
        raise InputError("the speed of a cycle is 0; give the speed of the drive [rad/s], which may be negative")
    _require_revolute(system.mechanism, drive)
    values = parameter_sets(system.mechanism, parameters)
    first = None if values is None else values.reshape(-1, values.shape[-1])[0]
    angle = _start(system, drive, start, first)
    turns = whole(revolutions, "revolutions")
    times = np.linspace(0.0, 2.0 * math.pi * turns / abs(speed), whole(samples, "samples", least=2))
    run = simulate(
        system, times=times, control=Driven(drive, Hold(angle, speed=speed)), parameters=parameters, **options
    )
    if not run.finished:
        turned = f"{drive!r} does not make {count_text(turns, 'revolution')}: {run.status}"
        rocks = run.outcome in (Outcome.OPEN, Outcome.TOO_SHORT)
        raise InputError(f"{turned}; {ROCKER}" if rocks else turned)
    _require_return(run, drive, turns)
    return replace(run, method="cycle")


def _require_revolute(mechanism: Mechanism, drive: str) -> None:
    """Refuse drives that do not return to their start after a revolution."""
    joint = mechanism.joint(drive)
    sort = kind(joint.kind)
    if sort.UNITS != ("rad",) or not sort.PERIODIC:
        raise InputError(f"a cycle takes revolutions of its drive; {drive!r} is {joint.kind}: name a revolute joint")


def _start(system: System, drive: str, start: float | None, parameters: np.ndarray | None) -> float:
    """Return the angle at which the drive starts, after a check that it determines the motion."""
    hold = {} if start is None else {drive: number(start, "start")}
    q = system.assemble(hold=hold, parameters=parameters)
    found = system.independent(q, prefer=drive, parameters=parameters)
    if found.mobility != 1:
        name, mobility = system.mechanism.name, found.mobility
        fact = f"{name!r} has {mobility} degrees of freedom; a cycle is that of a mechanism with one"
        raise InputError(
            Advice(
                f"{fact}: simulate with Driven({{joint: reference, ...}}) for several",
                f'{fact}: run an experiment with [control] kind = "driven" for several',
            )
        )
    own = system.mechanism.q_slices[[j.name for j in system.joints].index(drive)]
    return float(q[own.start]) if start is None else float(start)


def _require_return(run: Trajectory, drive: str, turns: int) -> None:
    """Refuse a motion that does not end where it began."""
    poses = run["poses"]
    off = np.abs(poses[..., -1, :, :, :] - poses[..., 0, :, :, :])
    size = max(1.0, float(np.abs(poses[..., :3, 3]).max()))
    if off.max(initial=0.0) > RETURNED * size:
        body = run.system.bodies[int(np.argmax(off.max(axis=(-2, -1)).reshape(-1, off.shape[-3]).max(axis=0)))].name
        raise InputError(
            f"after {count_text(turns, 'revolution')} of {drive!r} the body {body!r} is not where it was: off by "
            f"{off.max():.3g} (rotation matrix, m); give more revolutions, or drive the joint in a simulation (Driven)"
        )
