"""Runs with loads in closed form: a point mass that rotates at constant speed about an inclined axis."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree.algebra.rotations import from_euler

MASS, ARM, LIFT, SPEED = 1.7, 0.43, 0.12, 3.1
"""Mass [kg], its distance from the axis and along it [m], and the speed [rad/s]."""
GRAVITY = (2.3, -1.1, -9.4)


def spinner(angles: tuple[float, float, float] = (0.0, 0.0, 0.0), **joint) -> kt.System:
    """Return a point mass on a hinge about z; ZXZ angles rotate the frame of the body, but not its motion."""
    R = np.array(from_euler("zxz", angles), dtype=float)
    com = R.T @ [ARM, 0.0, LIFT]
    placed = kt.Placement((0.2, 0.1, -0.3), tuple(tuple(row) for row in R.tolist()))
    hinge = kt.Joint(
        "hinge", "revolute", kt.GROUND, "bob", placed, axis=tuple((R.T @ [0.0, 0.0, 1.0]).tolist()), **joint
    )
    return kt.System(
        kt.build_mechanism("spinner", [kt.Body("bob", MASS, tuple(com.tolist()))], [hinge], gravity=GRAVITY)
    )


def reaction(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return moment and force [nt, 3] of the ground on the spinner at its hinge, in the ground's axes."""
    angle = SPEED * t
    arm = np.stack([ARM * np.cos(angle), ARM * np.sin(angle), np.full(len(t), LIFT)], axis=-1)
    f = MASS * (-(SPEED**2) * arm * [1.0, 1.0, 0.0] - np.array(GRAVITY))
    return np.cross(arm, f), f


def spinning(samples: int = 401, turns: float = 1.0, **options) -> kt.Trajectory:
    """Return the spinner at constant speed, with the torque of its drive in closed form."""
    system = spinner(**options)
    t = np.linspace(0.0, turns * 2.0 * np.pi / SPEED, samples) if samples > 1 else np.zeros(1)
    torque = reaction(t)[0][:, 2:]
    qd = np.full((len(t), 1), SPEED)
    return kt.Trajectory(
        system, t, SPEED * t[:, None], qd, torque=torque, control=torque, accelerations=np.zeros((len(t), 1))
    )
