"""Works and impulses of walking runs with time steps, step by step, from states and contact forces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinetree.apps.walking.gaits import Gait
from kinetree.apps.walking.legged import LeggedRobot
from kinetree.results.trajectory import Trajectory
from kinetree.simulation.acting.references import sampled


def point_velocities(robot: LeggedRobot, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return the velocities [nt, nc, 3] of the contact points in the axes of the ground."""
    out = []
    for contact in robot.contacts:
        twist = (robot.system.jacobian(q, contact.body) @ qd[..., None])[..., 0]
        turn = robot.system.pose(q, contact.body)[..., :3, :3]
        arm = turn @ np.array(contact.placement.translation)
        out.append(twist[..., 3:] + np.cross(twist[..., :3], arm))
    return np.stack(out, axis=-2)


def world_forces(robot: LeggedRobot, run: Trajectory) -> np.ndarray:
    """Return the contact forces [nt, nc, 3] in the axes of the ground; they are given along normal and tangents."""
    x, y, z = np.array(robot.contacts[0].surface.placement.rotation, dtype=float).T
    f = run["contact_forces"]
    return f[..., :1] * z + f[..., 1:2] * x + f[..., 2:] * y


@dataclass(frozen=True)
class Balance:
    """Works of the drives, net and absolute, and of the contacts, and the change of energy, in J.

    `impulse` is that of the ground less that of the weight, `momentum` the change of momentum upward, in N s.
    """

    drives: float
    spent: float
    contacts: float
    energy: float
    impulse: float
    momentum: float

    @property
    def missing(self) -> float:
        """The energy that the balance lacks [J]."""
        return self.drives + self.contacts - self.energy


def balance(robot: LeggedRobot, gait: Gait, run: Trajectory) -> Balance:
    """Return the balance of a run with a sample at every step, forces and torques in the middle of the steps."""
    t, q, qd, dt = run.t, run.q, run.qd, run.t[1] - run.t[0]
    middle, mean = robot.system.integrate(q[:-1], 0.5 * dt * qd[:-1]), 0.5 * (qd[1:] + qd[:-1])
    mechanism = robot.system.mechanism
    nq, nv = mechanism.q_slices[0].stop, mechanism.v_slices[0].stop
    planned, carried = robot.planned(gait)
    angles, rates, _ = sampled(planned, t[:-1] + 0.5 * dt)
    tau = robot.k * (angles - middle[:, nq:]) + robot.c * (rates - qd[:-1, nv:])
    tau += sampled(carried, t[:-1] + 0.5 * dt)[0]
    forces = world_forces(robot, run)[1:]
    momentum, energy = run["momentum"], run["energy"]
    return Balance(
        drives=float((tau * mean[:, nv:]).sum() * dt),
        spent=float(np.abs(tau * mean[:, nv:]).sum() * dt),
        contacts=float((forces * point_velocities(robot, middle, mean)).sum() * dt),
        energy=float(energy[-1] - energy[0]),
        impulse=float(forces[..., robot.up].sum() * dt - robot.weight * (t[-1] - t[0])),
        momentum=float(momentum[-1, 3 + robot.up] - momentum[0, 3 + robot.up]),
    )
