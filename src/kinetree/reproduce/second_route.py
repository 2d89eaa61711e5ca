"""Independent computation of a motion: another form of the equations, solved densely, and SciPy's integrators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..algebra.arrays import Numbers
from ..model.mechanism import Mechanism
from ..results.trajectory import Trajectory
from .entry import Check

Acceleration = Callable[[float, Numbers, Numbers], Numbers]
"""(t, q, qd) -> qdd."""


def falling(mechanism: Mechanism, equations: Callable) -> Acceleration:
    """Return the acceleration without joint torques by the `equations` of one of the formulations."""
    zero = np.zeros(mechanism.nv)
    return lambda t, q, qd: equations(mechanism, q, qd).acceleration(zero)


def follow(
    acceleration: Acceleration,
    start: tuple[Numbers, Numbers],
    times: Numbers,
    *,
    method: str = "DOP853",
    rtol: float = 1e-11,
    atol: float = 1e-12,
) -> tuple[Numbers, Numbers]:
    """Return q and qd, each [nt, n], for joints whose velocities are the rates of their coordinates."""
    from scipy.integrate import solve_ivp

    n = len(start[0])

    def rate(t: float, y: Numbers) -> Numbers:
        return np.concatenate([y[n:], acceleration(t, y[:n], y[n:])])

    made = solve_ivp(
        rate, (times[0], times[-1]), np.concatenate(start), t_eval=times, method=method, rtol=rtol, atol=atol
    )
    if not made.success:
        raise RuntimeError(f"SciPy's {method} stopped at t = {made.t[-1]:g} s: {made.message}")
    return made.y[:n].T, made.y[n:].T


def same_motion(run: Trajectory, acceleration: Acceleration, bound: float, *, by: str, **options) -> Check:
    """Compare coordinates and velocities of a run with those of `acceleration`, from the run's first state."""
    q, qd = follow(acceleration, (run.q[0], run.qd[0]), run.t, **options)
    gap, speed = float(np.abs(run.q - q).max()), float(np.abs(run.qd - qd).max())
    found = f"{gap:.1e} rad or m, {speed:.1e} rad/s or m/s difference over {run.t[-1]:g} s"
    return Check(f"the same motion by {by}", found, gap <= bound and speed <= 100 * bound)


def keeps_energy(run: Trajectory, bound: float = 1e-10) -> Check:
    """Compare the energies of a motion without joint torques, relative to the largest kinetic energy."""
    energy = run["energy"]
    drift = float(np.ptp(energy) / run["kinetic_energy"].max())
    return Check("free fall conserves the energy", f"to {drift:.1e} of the largest kinetic energy", drift <= bound)
