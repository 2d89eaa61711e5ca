"""The motion with which [Goncalves2023] 6 validates its model of CHARMIE, and all joints of the robot during it."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
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
    given = np.stack([x for x, _, _ in motion.values()], axis=-1)
    q = np.broadcast_to(system.assemble(parameters=parameters), (*given.shape[:-1], system.nq)).copy()
    q[..., held] = given
    q = system.assemble(q, list(motion), parameters=parameters)
    qd = system.consistent_speeds(q, {name: x for name, (_, x, _) in motion.items()}, parameters=parameters)
    rates = {name: x for name, (_, _, x) in motion.items()}
    return Closed(q, qd, system.consistent_accelerations(q, qd, rates, parameters=parameters))


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
