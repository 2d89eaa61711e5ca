"""[Gupta2013]: the seven masses of the spatial pendulum, and its motions."""

from __future__ import annotations

from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...formulations import points
from ...formulations.points import body_of, body_points
from ...loading import load
from ...model.mechanism import resolve_parts
from ...results.trajectory import Trajectory
from ...simulation.simulate import simulate
from .entry import Check, Entry, Outcome, Source, free_fall, keeps_energy, same_motion, write_csv

PRINTED = (0.628, -0.543, 1.171, 0.0, 1.171, -0.543, 0.628)
"""Masses [kg] as printed: truncated to three decimals, not rounded."""


def seven_masses(folder: Path) -> Outcome:
    """Compute the seven masses and positions of the rod about its tip, and the rod from them."""
    arm = load("spatial_pendulum")
    rod = resolve_parts(arm.mechanism.bodies[0], arm.mechanism.values())
    tip = np.array([2 * rod.com[0], 0.0, 0.0])  # the origin O_2 of the paper's body frame
    points = body_points(rod, "seven", at=tip)
    masses, places = points.masses.round(15) + 0.0, points.positions - tip
    headings = ("point", "mass [kg]", "printed [kg]", "x [m]", "y [m]", "z [m]")
    rows = tuple(
        (str(k), f"{round(m, 6) + 0.0:.6f}", f"{p:.3f}", *(f"{x:+.6f}" for x in r))
        for k, (m, p, r) in enumerate(zip(masses, PRINTED, places, strict=True), 1)
    )
    cut = np.trunc(masses * 1000) / 1000
    m, com, inertia = body_of(points)
    back = max(
        abs(m - rod.mass) / rod.mass,
        float(np.abs(com - rod.com).max()),
        float(np.abs(inertia - np.diag(rod.inertia[:3])).max()),
    )
    file = write_csv(folder / "gupta2013_masses.csv", headings, rows)
    checks = (
        Check(
            "masses " + ", ".join(f"{x:g}" for x in PRINTED) + " kg",
            "truncated to three decimals: " + ", ".join(f"{x + 0.0:g}" for x in cut) + " kg",
            bool((cut == PRINTED).all()),
            Source.PRINTED,
        ),
        Check("the points have the rod's mass, center of mass and inertia (1)-(10)", f"to {back:.1e}", back <= 1e-12),
    )
    return Outcome(checks, (("Seven points about O_2", (headings, *rows)),), (file,))


# --- [Gupta2013]: the spatial pendulum by ZYZ Euler angles, figures 4 and 5 ---


FALL = 4.0
"""Duration [s]; the paper does not print it."""
UNPRINTED = "the curves are pictures without numbers, and the duration is not printed"
NAMES = ("phi", "theta", "psi")
BY = "the equations of the seven points and SciPy's DOP853"


def figure_4(folder: Path) -> Outcome:
    """Let the rod fall from (90, 90, 90) deg at rest, as a planar pendulum."""
    run = _fall((pi / 2,) * 3, (0.0, 0.0, 0.0))
    psi, rate = exact_pendulum(run)
    gap, speed = float(np.abs(run.q[:, 2] - psi).max()), float(np.abs(run.qd[:, 2] - rate).max())
    still = float(np.abs(run.q[:, :2] - pi / 2).max())
    checks = (
        Check(
            "the motion is that of a planar solid pendulum",
            f"phi and theta stay at 90 deg to {still:.1e} rad; psi agrees with elliptic functions to "
            f"{gap:.1e} rad, its rate to {speed:.1e} rad/s",
            still <= 1e-12 and gap <= 1e-9 and speed <= 1e-9,
            Source.STATED,
        ),
        _by_points(run),
        keeps_energy(run),
    )
    return Outcome(checks, (), _files(folder, 4, "planar", run), unprinted=UNPRINTED)


def figure_5(folder: Path) -> Outcome:
    """Let the rod fall from (90, 45, 45) deg with rates of 1 rad/s."""
    run = _fall((pi / 2, pi / 4, pi / 4), (1.0, 1.0, 1.0))
    L = run.system.momentum(run.q, run.qd)[:, 2]
    spans = np.degrees(np.ptp(run.q, axis=0))
    drift = float(np.ptp(L) / np.abs(L).max())
    checks = (
        Check(
            "clearly spatial behavior",
            "the angles range over " + ", ".join(f"{x:.0f}" for x in spans) + " deg",
            bool((spans > 10.0).all()),
            Source.STATED,
        ),
        _by_points(run),
        keeps_energy(run),
        Check(
            "gravity has no moment about the vertical",
            f"the momentum about it is constant to {drift:.1e}",
            drift <= 1e-9,
        ),
    )
    notes = (
        "Differs from the paper: it states that the rates are zero, and prints them as 1 m/s; 1 rad/s is used.",
        f"The angles are singular where theta is 0; sin theta stays above {np.sin(run.q[:, 1]).min():.2f}.",
    )
    return Outcome(checks, (), _files(folder, 5, "spatial", run), notes, unprinted=UNPRINTED)


def exact_pendulum(run: Trajectory) -> tuple[NDArray, NDArray]:
    """Return angle and rate of the rod as a planar pendulum released from the horizontal, by Jacobi's functions."""
    from scipy.special import ellipj, ellipk

    mechanism = run.system.mechanism
    rod = resolve_parts(mechanism.bodies[0], mechanism.values())
    m, arm = float(rod.mass), float(rod.com[0])
    inertia = float(rod.inertia[1]) + m * arm**2
    w = np.sqrt(m * 9.81 * arm / inertia)
    k = np.sin(pi / 4)  # of half the amplitude, 90 deg
    sn, cn, _, _ = ellipj(w * run.t + ellipk(k**2), k**2)
    return 2 * np.arcsin(k * sn), 2 * k * w * cn


def _fall(q: tuple[float, ...], qd: tuple[float, ...]) -> Trajectory:
    pendulum = load("spatial_pendulum")
    return simulate(pendulum, q, qd, duration=FALL, rtol=1e-12, atol=1e-13, progress=False)


def _by_points(run: Trajectory) -> Check:
    other = free_fall(run.system.mechanism, points.equations)
    return same_motion(run, other, 1e-8, by=BY, rtol=1e-10, atol=1e-11)


def _files(folder: Path, number: int, word: str, run: Trajectory) -> tuple[Path, ...]:
    """Draw (a) the angles and (b) their rates, and write both as a table."""
    from ...plots import figures

    heading = f"[Gupta2013] figure {number}: the {word} pendulum, "
    symbols = (r"$\phi$", r"$\theta$", r"$\psi$")
    rates = tuple(rf"$\dot{{{s[1:-1]}}}$" for s in symbols)
    path = f"gupta2013_figure_{number}"
    return (
        figures.curves(
            folder / f"{path}a.png", run.t, np.degrees(run.q), names=symbols, label="joint angle  [deg]",
            heading=f"{heading}(a) angles",
        ),
        figures.curves(
            folder / f"{path}b.png", run.t, run.qd, names=rates, label="joint rate  [rad/s]",
            heading=f"{heading}(b) rates",
        ),
        write_csv(
            folder / f"{path}.csv", ("t", *NAMES, *(f"{n}_rate" for n in NAMES)),
            np.column_stack([run.t, run.q, run.qd]).tolist(),
        ),
    )  # fmt: skip


ENTRIES = (
    Entry("gupta2013-masses", "Gupta2013", "the seven masses of the spatial pendulum", seven_masses),
    Entry("gupta2013-figure-4", "Gupta2013", "the pendulum in a plane", figure_4),
    Entry("gupta2013-figure-5", "Gupta2013", "the pendulum in space", figure_5),
)
