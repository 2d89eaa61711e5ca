"""Loops and long chains in the demonstration: a rotating four-bar, and a chain of many links."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import pi

import numpy as np

from ...loading import chain, load
from ...results.trajectory import Trajectory
from ...simulation.acting.controllers import ComputedTorque
from ...simulation.acting.references import Cosine, sampled
from ...simulation.simulate import simulate

# --- Agreement between two computations of the same numbers ---


@dataclass(frozen=True)
class Check:
    """An agreement: the compared quantity, the largest relative difference, and its bound."""

    what: str
    residual: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the difference is a number within its bound."""
        return self.residual <= self.bound


# --- Simulations of the demonstration: a falling arm, and one that converges to a reference motion and follows it.

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


GAP = 1e-12
"""Largest gap of closed loops [m, rad]: rounding after projection."""


@dataclass(frozen=True)
class Links:
    """Forward dynamics of one long chain: its links, seconds, and the residual of inverse dynamics."""

    count: int
    seconds: float
    residual: float


def turning(duration: float = 2.0) -> Trajectory:
    """Return the four-bar of [Saha2013] 4.1 without a drive, its crank started at 1.5 pi rad/s."""
    bars = load("four_bar")
    q = bars.assemble(hold=["crank"])
    qd = bars.consistent_speeds(q, {"crank": 1.5 * np.pi})
    return simulate(bars, q, qd, duration=duration, rtol=RTOL, atol=1e-12, progress=False)


def gap_check(run: Trajectory) -> Check:
    """Compare the two ends of every loop at every sample."""
    gap = float(np.abs(run["gap"]).max()) if run.finished else np.nan
    return Check(f"{run.system.mechanism.name}: the loop stays closed [m, rad]", gap, GAP)


def loop_energy_check(run: Trajectory) -> Check:
    """Compare the energy of a closed mechanism with its initial energy."""
    error = float(run.energy_error) if run.finished else np.nan
    return Check(f"{run.system.mechanism.name}: energy is constant with the loop closed", error, BOUND)


def long_chain(count: int = 10_000) -> Links:
    """Return the timed forward dynamics of a spatial chain, and its residual by inverse dynamics."""
    links = chain(count)
    rng = np.random.default_rng(2)
    q, qd, tau = rng.normal(size=(3, count))
    function = links.function("forward_dynamics")
    qdd = function(q, qd, tau)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        function(q, qd, tau)
        seconds.append(time.perf_counter() - start)
    terms = np.abs(links.bias_torque(q, qd)).max()
    back = links.inverse_dynamics(q, qd, qdd)
    return Links(count, float(np.median(seconds)), float(np.abs(back - tau).max() / terms))


def links_check(links: Links) -> Check:
    """Compare the torques of the accelerations with the given ones; the rounding grows with the number of bodies."""
    return Check(
        f"chain of {links.count:,} links: inverse dynamics recovers tau",
        links.residual,
        links.count * float(np.finfo(float).eps),
    )
