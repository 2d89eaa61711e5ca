"""Simulations of the demonstration: a falling arm, and one that converges to a reference motion and follows it."""

from __future__ import annotations

from math import pi

import numpy as np

from ..loading import load
from ..results.trajectory import Trajectory
from ..simulation.control.controllers import ComputedTorque
from ..simulation.references import Cosine, sampled
from ..simulator import simulate
from .agreement import Check

RTOL = 1e-10
BOUND = 100 * RTOL
"""Largest relative energy error: some hundred steps, each within the tolerance."""

START = 0.3
"""Initial distance of each joint of the KUKA arm from the reference motion [rad]."""
RATE = 4.0
"""Rate w [1/s] of the errors, which decay as (1 + w t) exp(-w t)."""
REFERENCE = Cosine([pi / 2] * 7, pi / 7)
"""The motion of [Wolinski2015] (28), (29)."""


def fall(duration: float = 1.0) -> Trajectory:
    """Return the Stanford arm released at rest, with its boom level."""
    return simulate(load("stanford"), [0.0, pi / 2, 0.0, 0.0, 0.0, 0.0], duration=duration, rtol=RTOL, progress=False)


def tracking(duration: float = 7.0) -> Trajectory:
    """Return the KUKA arm under computed torque, started off its reference motion."""
    start, _, _ = sampled(REFERENCE, 0.0)
    control = ComputedTorque(RATE**2, 2 * RATE, REFERENCE)
    return simulate(load("kuka_lwr4"), start + START, duration=duration, control=control, rtol=RTOL, progress=False)


def tracking_errors(run: Trajectory) -> np.ndarray:
    """Return the differences of a run of the KUKA arm from its reference motion, [nt, 7]."""
    return run.q - sampled(REFERENCE, run.t)[0]


def expected_error(t: np.ndarray) -> np.ndarray:
    """Return the solution of e'' + 2 w e' + w^2 e = 0 from START with zero velocity, [nt]."""
    return START * (1.0 + RATE * t) * np.exp(-RATE * t)


def energy_check(run: Trajectory) -> Check:
    """Compare the energy of a falling arm with its initial energy."""
    error = float(run.energy_error) if run.finished else np.nan
    return Check(f"{run.system.mechanism.name}: energy is constant in free fall", error, BOUND)


def tracking_check(run: Trajectory) -> Check:
    """Compare the errors of all joints with the solution for computed torque."""
    off = np.abs(tracking_errors(run) - expected_error(run.t)[:, None]).max() / START
    name = run.system.mechanism.name
    return Check(f"{name}: error = (1 + w t) exp(-w t) by control", float(off) if run.finished else np.nan, BOUND)
