"""Measures of a walking run: distance, work of the drives, cost of transport, and how well it repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..model.mechanism import Mechanism, resolved
from ..numbers import positive, whole
from ..results.trajectory import Trajectory


@dataclass(frozen=True)
class Transport:
    """What a run took: distance of the center of mass [m], weight [N], and works of the drives [J].

    `work` is the net work, `spent` the integral of the absolute power of every joint: drives do not store the energy
    that they absorb. `dissipated` [J] is the net work less the change of the energy of the robot: the loss in impacts,
    slip and passive forces.
    """

    distance: float
    weight: float
    work: float
    spent: float
    dissipated: float

    @property
    def cost(self) -> float:
        """The cost of transport: energy spent per weight and distance."""
        return self.spent / (self.weight * abs(self.distance)) if self.distance else float("inf")


def transport(run: Trajectory, axis: int, *, start: float = 0.0) -> Transport:
    """Return the measures of a single run along an axis of the ground (0, 1, 2), from a time `start` [s] on.

    Integrals are those of straight lines between the samples. Give as many of these as the motion needs, some hundred
    in a step.
    """
    whole(axis, "axis", least=0, most=2)
    if run.shape or run.control is None:
        raise InputError("transport measures a single run under control; choose one of a batch by run.runs()")
    rows = np.flatnonzero(run.t >= start - 1e-12)
    if len(rows) < 2:
        raise InputError(f"the run ends at t = {run.t[-1]:g} s; start the measures before, not at {start:g} s")
    t = run.t[rows]
    power = np.asarray(run.control)[rows] * run.qd[rows]
    center = _center(run, rows[[0, -1]])[:, axis]
    work = float(np.trapezoid(power.sum(axis=-1), t))
    return Transport(
        distance=float(center[1] - center[0]),
        weight=weight(run.system.mechanism, run.parameters),
        work=work,
        spent=float(np.trapezoid(np.abs(power).sum(axis=-1), t)),
        dissipated=work - float(run["energy"][rows[-1]] - run["energy"][rows[0]]),
    )


def weight(mechanism: Mechanism, parameters: Numbers | None = None) -> float:
    """Return the weight of a mechanism [N], at its own values of free parameters or at others."""
    values = mechanism.values(None if parameters is None else np.asarray(parameters).tolist())
    mass = sum(float(resolved(body.mass, values)) for body in mechanism.bodies)
    return mass * float(np.linalg.norm(np.asarray(resolved(tuple(mechanism.gravity), values), dtype=float)))


def advances(run: Trajectory, axis: int, period: float) -> Numbers:
    """Return the distances that the center of mass moves along an axis of the ground in all whole periods [m]."""
    rows = _rows(run, axis, period)
    return np.diff(_center(run, rows)[:, axis])


def unrepeated(run: Trajectory, axis: int, period: float) -> Numbers:
    """Return the largest differences between the states of successive periods, without the distance along the axis.

    One value per pair of periods, over all samples in them; coordinates in rad and m, velocities in rad/s and m/s.
    """
    rows = _rows(run, axis, period)
    count = rows[1] - rows[0]
    states = np.concatenate([run.q, run.qd], axis=-1)[: rows[-1]].reshape(len(rows) - 1, count, -1).copy()
    states[..., axis] -= states[:, :1, axis]
    return np.abs(np.diff(states, axis=0)).max(axis=(1, 2))


def _center(run: Trajectory, rows: np.ndarray) -> Numbers:
    """Return the positions of the center of mass [n, 3] at samples."""
    more: dict[str, Any] = {} if run.parameters is None else {"parameters": run.parameters}
    return run.system.center_of_mass(run.q[rows], **more)


def _rows(run: Trajectory, axis: int, period: float) -> np.ndarray:
    """Return the samples at the ends of all whole periods, for an axis of the ground."""
    whole(axis, "axis", least=0, most=2)
    count = int(np.floor((run.t[-1] - run.t[0]) / positive(period, "period") + 1e-9))
    ends = run.t[0] + period * np.arange(count + 1)
    rows = np.clip(np.searchsorted(run.t, ends - 1e-9 * period), 0, len(run.t) - 1)
    if count < 1 or np.abs(run.t[rows] - ends).max() > 1e-6 * period or len(set(np.diff(rows))) > 1:
        raise InputError(
            f"the run has no samples at whole periods of {period:g} s; choose output times that include them"
        )
    return rows
