"""Write a log as a robot's controller would: degrees, currents, noise, delays, a gap; run by docs/identification.md."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import kinetree as kt

GAINS = (14.0, -9.0)
"""Torques per ampere [N m/A]; the second drive counts the other way round."""


def real_robot() -> kt.System:
    """Return the arm of the laboratory: heavier than described, with friction and a payload."""
    arm = kt.with_payload(kt.load("planar_2r"), "tool", mass=0.8, com=(0.03, 0.01, 0.0))
    joints = tuple(replace(j, damping=(0.4,), friction=(0.6,)) for j in arm.joints)
    return kt.System(replace(arm.mechanism, joints=joints))


def write(path: Path, seed: int = 1) -> None:
    """Write 30 s at 250 samples per second: time, positions in degrees, and motor currents 6 ms late."""
    rng, robot = np.random.default_rng(seed), real_robot()
    t = np.arange(0.0, 30.0, 0.004)
    w, phases = np.array([0.7, 1.9, 3.7, 5.3]), rng.uniform(0.0, 6.0, (4, 2))
    angle, size = w[:, None] * t[:, None, None] + phases, np.array([[0.8], [0.4], [0.15], [0.08]])
    q = (size * np.sin(angle)).sum(axis=1)
    qd = (size * w[:, None] * np.cos(angle)).sum(axis=1)
    qdd = -(size * w[:, None] ** 2 * np.sin(angle)).sum(axis=1)
    tau = robot.inverse_dynamics(q, qd, qdd)
    late = np.stack([np.interp(t - 0.006, t, x) for x in tau.T], axis=-1)
    current = late / GAINS + rng.normal(size=q.shape) * 0.01
    degrees = np.degrees(q) + rng.normal(size=q.shape) * 0.002
    rows = np.column_stack([t, degrees, current])
    rows = np.delete(rows, slice(3000, 3100), axis=0)  # a gap of 0.4 s
    head = "time [s],q1 [deg],q2 [deg],current1 [A],current2 [A]"
    np.savetxt(path, rows, fmt="%.6f", delimiter=",", header=head, comments="")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "log.csv"))
