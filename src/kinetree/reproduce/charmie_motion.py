"""The motion with which [Goncalves2023] 6 validates its model of CHARMIE, and all joints of the robot during it."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
from ..errors import AssemblyError
from ..formulations.charmie import ACTUATORS
from ..formulations.linear_actuators import Motion
from ..model.axes import axis_labels
from ..model.mechanism import resolved
from ..model.parameter_values import Named
from ..system import System

DURATION, SWITCH = 5.0, 2.5
"""The length of the motion, and the time at which all accelerations change their sign [s]."""
TURNING, DRIVING, EXTENDING = pi / 9, 0.03, 0.003
"""Accelerations of revolute joints [rad/s^2], of the base and of the linear actuators of the torso [m/s^2]."""
START = 0.4
"""The length of the linear actuators at the beginning [m]; all other joints begin at 0."""
CLOSED, STEPS = 1e-13, 6
"""Largest gap of a closed position [m, rad], and the number of Newton steps: one more than the motion requires."""


class Closed(NamedTuple):
    """Coordinates [nt, nq], velocities and accelerations [nt, nv] of all joints."""

    q: Numbers
    qd: Numbers
    qdd: Numbers


def validation_motion(times: ArrayLike) -> dict[str, Motion]:
    """Return position, velocity and acceleration of each actuator: first backward, from 2.5 s on slowing down."""
    t = np.asarray(times, dtype=float)
    late = t >= SWITCH
    since = t - SWITCH
    speed = np.where(late, since - SWITCH, -t)
    path = np.where(late, since**2 / 2 - SWITCH * since - SWITCH**2 / 2, -(t**2) / 2)
    sign = np.where(late, 1.0, -1.0)
    out = {}
    for name in ACTUATORS:
        rate = {"joint_1": DRIVING, "joint_2": DRIVING, "actuator_4": EXTENDING, "actuator_5": EXTENDING}.get(
            name, TURNING
        )
        start = START if name.startswith("actuator") else 0.0
        out[name] = (start + rate * path, rate * speed, rate * sign)
    return out


def closed_motion(system: System, motion: dict[str, Motion], *, parameters: Named | None = None) -> Closed:
    """Return all joints of `charmie_complete` from its actuators, by Newton's method on the equations of its loops."""
    labels = axis_labels(system.mechanism, 0)
    held = [labels.index(name) for name in motion]
    free = [k for k in range(system.nv) if k not in held]
    given, rates, seconds = (np.stack([x[k] for x in motion.values()], axis=-1) for k in range(3))
    q = np.broadcast_to(system.assemble(parameters=parameters), (*given.shape[:-1], system.nq)).copy()
    q[..., held] = given
    for _ in range(STEPS):
        gap = system.closure_residual(q, parameters=parameters)
        q[..., free] -= _solved(system.closure_jacobian(q, parameters=parameters)[..., free], gap)
    open_by = float(np.abs(system.closure_residual(q, parameters=parameters)).max())
    if not open_by <= CLOSED:
        raise AssemblyError(f"the loops of {system.mechanism.name} stay open by {open_by:.3g} m; change the motion")
    J = system.closure_jacobian(q, parameters=parameters)
    qd, qdd = np.zeros(q.shape), np.zeros(q.shape)
    qd[..., held], qdd[..., held] = rates, seconds
    qd[..., free] = -_solved(J[..., free], (J[..., held] @ rates[..., None])[..., 0])
    bias = (J[..., held] @ seconds[..., None])[..., 0] + system.closure_bias(q, qd, parameters=parameters)
    qdd[..., free] = -_solved(J[..., free], bias)
    return Closed(q, qd, qdd)


def spring_law(system: System) -> Callable[[Numbers], Numbers]:
    """Return the forces of CHARMIE's springs in their prismatic joints as a function of q: [..., nv], by (35)."""
    values, labels = system.mechanism.values(), axis_labels(system.mechanism, 1)
    at = [labels.index(force.name) for force in system.mechanism.forces]
    given = [dict(resolved(force.coefficients, values)) for force in system.mechanism.forces]
    rate, free, preload = (np.array([c[key] for c in given]) for key in ("stiffness", "free_length", "preload"))

    def forces(q: Numbers) -> Numbers:
        out = np.zeros(q.shape)
        out[..., at] = rate * (free - q[..., at]) + preload
        return out

    return forces


def _solved(J: Numbers, right: Numbers) -> Numbers:
    return (np.linalg.pinv(J, rcond=1e-9) @ right[..., None])[..., 0]
