"""Loops and long chains in the demonstration: a rotating four-bar, and a chain of many links."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..loading import chain, load
from ..results.trajectory import Trajectory
from ..simulator import simulate
from .agreement import Check
from .moving import BOUND, RTOL

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
