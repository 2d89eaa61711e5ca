"""The Stanford arm of [Saha1999] 6.2 and [Saha2013] 2.8: computations common to both papers."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...formulations import spatial_operators
from ...loading import load
from ...results.trajectory import Trajectory
from ...simulation.acting.references import Cycloid, sampled
from ...simulation.simulate import simulate
from ...system import System
from .entry import Check, free_fall, keeps_energy, same_motion, write_csv

UNITS = ("rad", "rad", "m", "rad", "rad", "rad")
DRAWN_UNITS = ("deg", "deg", "m", "deg", "deg", "deg")
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
    other = free_fall(run.system.mechanism, spatial_operators.equations)
    by = "spatial operators and SciPy's DOP853"
    return keeps_energy(run), same_motion(run, other, bound, by=by)


def torque_files(folder: Path, name: str, heading: str, t: Numbers, tau: Numbers) -> tuple[Path, ...]:
    """Draw torques and the force of joint 3 in panels (a) to (f), and write them as a table."""
    units = ["N" if unit == "m" else "N m" for unit in UNITS]
    return _files(folder, name, heading, t, tau, symbols("\\tau", "f"), units, names("tau", "f"), tau)


def fall_files(folder: Path, name: str, heading: str, run: Trajectory) -> tuple[Path, ...]:
    """Draw the joint angles in degrees and the displacement of joint 3 in panels, and write them in SI units."""
    return _files(
        folder,
        name,
        heading,
        run.t,
        in_degrees(run.q),
        symbols("\\theta", "b"),
        DRAWN_UNITS,
        names("theta", "b"),
        run.q,
    )


def in_degrees(q: Numbers) -> Numbers:
    """Return coordinates as they are drawn: angles in degrees."""
    return np.where(np.array(UNITS) == "rad", np.degrees(q), q)


def symbols(turning: str, sliding: str) -> list[str]:
    """Return a symbol per joint, such as theta_1 and b_3."""
    return [f"${sliding if unit == 'm' else turning}_{k}$" for k, unit in enumerate(UNITS, 1)]


def names(turning: str, sliding: str) -> list[str]:
    """Return a name per joint, such as theta_1 and b_3."""
    return [f"{sliding if unit == 'm' else turning}_{k}" for k, unit in enumerate(UNITS, 1)]


def _files(folder, name, heading, t, drawn, signs, units, heads, values) -> tuple[Path, ...]:
    from ...plots import figures

    titles = [f"joint {k}" for k in range(1, 7)]
    return (
        figures.panels(folder / f"{name}.png", t, drawn, titles=titles, symbols=signs, units=units, heading=heading),
        write_csv(folder / f"{name}.csv", ("t", *heads), np.column_stack([t, values]).tolist()),
    )


def _by_matrices(arm: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
    """Return I qdd + C qd + g by N = N_l N_d, about centers of mass."""
    d = arm.denoc(q, qd, about="centre")
    return d.I @ qdd + d.C @ qd + d.g
