"""Runs for tests of results: smooth motions in closed form, without an integrator."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree.joints import kind
from kinetree.results import Trajectory

PENDULUM = """
[mechanism]
name = "pendulum"
[parameters]
l = { value = 0.5, free = true, unit = "m" }
[[body]]
name = "bob"
mass = 2.0
com = [0, 0, "-l"]
[[joint]]
name = "hinge"
kind = "revolute"
parent = "ground"
child = "bob"
axis = [0, 1, 0]
"""


def swinging(name: str = "stanford", t: np.ndarray | None = None, *, shift: float = 0.0, **fields) -> Trajectory:
    """Return a run of a library mechanism in which every joint swings at its own phase, with qd = dq/dt to rounding."""
    system = kt.load(name)
    t = np.linspace(0.0, 2.0, 41) if t is None else t
    q, qd = _motion(system, t, shift)
    return Trajectory(system, t, q, qd, **{"method": "closed form", "evaluations": 7, **fields})


def batch(name: str = "stanford", count: int = 3, **fields) -> Trajectory:
    """Return runs at several phases, with torques."""
    runs = [swinging(name, shift=0.3 * k) for k in range(count)]
    q, qd = (np.stack([getattr(run, a) for run in runs]) for a in ("q", "qd"))
    return Trajectory(runs[0].system, runs[0].t, q, qd, torque=np.cos(qd), **fields)


def _motion(system: kt.System, t: np.ndarray, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd: sines for flat coordinates, uniform rotation about an axis for quaternions."""
    q, qd = [], []
    for k, joint in enumerate(system.joints):
        module = kind(joint.kind)
        phase = 1.7 * t[:, None] + 0.9 * np.arange(module.NV) + 0.7 * k + shift
        if module.NQ == module.NV:
            q.append(0.4 * np.sin(phase))
            qd.append(0.68 * np.cos(phase))
            continue
        axis, rate = np.array([0.36, 0.48, 0.8]), 1.3
        half = 0.5 * rate * t[:, None] + shift
        turn = np.concatenate([axis * np.sin(half), np.cos(half)], axis=1)
        omega = np.broadcast_to(rate * axis, (len(t), 3))
        if module.NQ == 4:
            q.append(turn)
            qd.append(omega)
            continue
        place, speed = 0.3 * np.sin(phase[:, :3]), 0.51 * np.cos(phase[:, :3])
        x, y, z = axis
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        angle = 2.0 * half[:, :, None]
        back = np.eye(3) - np.sin(angle) * skew + (1.0 - np.cos(angle)) * skew @ skew
        q.append(np.concatenate([place, turn], axis=1))
        qd.append(np.concatenate([omega, np.einsum("tij,tj->ti", back, speed)], axis=1))
    return np.concatenate(q, axis=1), np.concatenate(qd, axis=1)
