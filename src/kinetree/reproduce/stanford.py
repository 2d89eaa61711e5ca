"""The Stanford arm of [Saha1999] 6.2 and [Saha2013] 2.8: computations common to both papers."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from pathlib import Path

import numpy as np

from ..algebra.arrays import Numbers
from ..formulations import spatial_operators
from ..loading import load
from ..results.trajectory import Trajectory
from ..simulation.references import Cycloid, sampled
from ..simulator import simulate
from ..system import System
from .entry import Check, write_csv
from .second_route import falling, keeps_energy, same_motion

UNITS = ("rad", "rad", "m", "rad", "rad", "rad")
T = 10.0
END = (pi / 3, pi / 3, 0.1, pi / 3, pi / 3, pi / 3)
"""Final coordinates, theta_i(T) = 60 deg and b_3(T) = 0.1 m, [Saha1999] after (39)."""
HELD = 4.0 + 1.0 + 0.6 + 0.5
"""Mass of links 3 to 6, which joint 3 carries [kg]."""


def torques(start: Sequence[float]) -> tuple[Numbers, tuple[Numbers, ...], Numbers, tuple[Check, ...]]:
    """Return times, the cycloid to END, its torques by the recursion, and their agreement with other formulations."""
    arm, t = load("stanford"), np.linspace(0.0, T, 1001)
    motion = tuple(np.asarray(x) for x in sampled(Cycloid(start, END, T), t))
    tau = arm.inverse_dynamics(*motion)
    some = range(0, len(t), 20)
    dense = np.array([_by_matrices(arm, *(x[k] for x in motion)) for k in some])
    difference = float(np.abs(tau[some] - dense).max())
    rest = float(np.abs(tau[[0, -1]] - arm.gravity_torque(motion[0][[0, -1]])).max())
    checks = (
        Check(
            "the recursion gives I qdd + C qd + g of the explicit DeNOC matrices",
            f"largest difference {difference:.1e} N m or N at {len(some)} times",
            difference <= 1e-12,
        ),
        Check(
            "the motion starts and ends at rest",
            f"torques there equal gravity's to {rest:.1e} N m",
            rest <= 1e-12,
        ),
    )
    return t, motion, tau, checks


def fall(system: System, start: Sequence[float], times: Numbers) -> Trajectory:
    """Return the fall from rest, with tight tolerances."""
    return simulate(system, start, times=times, rtol=1e-12, atol=1e-13, progress=False)


def fall_checks(run: Trajectory, bound: float = 1e-9) -> tuple[Check, ...]:
    """Compare a fall with the equations of spatial operators in another integrator, and check its energy."""
    other = falling(run.system.mechanism, spatial_operators.equations)
    by = "spatial operators and SciPy's DOP853"
    return keeps_energy(run), same_motion(run, other, bound, by=by)


def torque_files(folder: Path, name: str, heading: str, t: Numbers, tau: Numbers) -> tuple[Path, ...]:
    """Draw torques and the force of joint 3 in panels (a) to (f), and write them as a table."""
    from ..view import plots

    units = ["N" if k == 3 else "N m" for k in range(1, 7)]
    symbols = ["$f_3$" if k == 3 else rf"$\tau_{k}$" for k in range(1, 7)]
    titles = [f"joint {k}" for k in range(1, 7)]
    return (
        plots.panels(folder / f"{name}.png", t, tau, titles=titles, symbols=symbols, units=units, heading=heading),
        write_csv(folder / f"{name}.csv", ("t", *_names("tau", "f")), np.column_stack([t, tau]).tolist()),
    )


def fall_files(folder: Path, name: str, heading: str, run: Trajectory) -> tuple[Path, ...]:
    """Draw the joint angles in degrees and the displacement of joint 3 in panels, and write them in SI units."""
    from ..view import plots

    symbols = ["$b_3$" if k == 3 else rf"$\theta_{k}$" for k in range(1, 7)]
    titles = [f"joint {k}" for k in range(1, 7)]
    shown = np.where(np.array(UNITS) == "rad", np.degrees(run.q), run.q)
    units = ["m" if unit == "m" else "deg" for unit in UNITS]
    return (
        plots.panels(
            folder / f"{name}.png", run.t, shown, titles=titles, symbols=symbols, units=units, heading=heading
        ),
        write_csv(folder / f"{name}.csv", ("t", *_names("theta", "b")), np.column_stack([run.t, run.q]).tolist()),
    )


def _names(turning: str, sliding: str) -> list[str]:
    return [f"{sliding if k == 3 else turning}_{k}" for k in range(1, 7)]


def _by_matrices(arm: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
    """Return I qdd + C qd + g by N = N_l N_d, about centers of mass."""
    d = arm.denoc(q, qd, about="centre")
    return d.I @ qdd + d.C @ qd + d.g
