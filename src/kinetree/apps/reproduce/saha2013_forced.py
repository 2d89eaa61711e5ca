"""[Saha2013] 3.5: the biped under its computed torques diverges, under control it does not, figure 15."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers, Scalar
from ...formulations import spatial_operators
from ...loading import load
from ...results.trajectory import Trajectory
from ...simulation.acting.controllers import ComputedTorque, FeedForward
from ...simulation.acting.instants import Instant
from ...simulation.acting.references import Reference, sampled
from ...simulation.acting.smooth import where
from ...simulation.simulate import simulate
from ...system import System
from .entry import Check, Entry, Outcome, Source, follow, write_csv
from .saha2013_biped import SAMPLES, STAND_INS, STEP, reference

INTERVAL = 0.02
"""Distance of the torques' samples [s]: the output step of the paper's program."""
TOLERANCES = ((1e-4, 1e-6), (1e-6, 1e-8), (1e-8, 1e-10), (1e-10, 1e-12))
"""Relative and absolute; the paper's program has the first."""
GAINS = (225.0, 40.0)
"""Of its computed-torque controller [1/s^2, 1/s]."""
TIGHT = {"rtol": 1e-12, "atol": 1e-14}
NUDGE = 1e-9
"""Size of the deviation at the start that is compared with the linearized motion; its square is below rounding."""
SEEN = np.radians(1.0)
"""A deviation that can be seen in a figure of joint angles [rad]."""
DIVERGENCE = (
    "Why it diverges: a small deviation x follows x' = A(t) x of the linearized motion. Torques that do not depend "
    "on the state do not restore it. At rest and without gravity, all eigenvalues of A are zero, hence the name "
    "zero-eigenvalue effect; gravity, which tips upright links, and the motion itself make some of them positive. "
    "Errors of the integrator and of the torques are such deviations. When they can be seen depends on their size: "
    "the paper's 0.1 s belong to its program and tolerances rather than to the biped."
)
"""The note on the divergence of forced motions."""


@dataclass(frozen=True)
class SampledTorques:
    """Torques [nt, nv] at equal distances in time [s] from t = 0, joined by straight lines."""

    tau: Numbers
    interval: float

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        slopes = np.diff(self.tau, axis=0) / self.interval
        bends = np.diff(slopes, axis=0, prepend=np.zeros((1, self.tau.shape[1])))
        out: list[Scalar] = self.tau[0].tolist()
        for k, row in enumerate(bends.tolist()):
            after = where(now.t > k * self.interval, now.t - k * self.interval, 0.0)
            out = [x + after * bend for x, bend in zip(out, row, strict=True)]
        return out


def simulate_forced(
    biped: System, motion: Reference, t: Numbers, *, control: Any = None, away: object = 0.0, **options
) -> Trajectory:
    """Return the motion from the designed start, or `away` from it [24], under the torques of the designed motion."""
    (q, qd, _), n = motion(0.0), biped.nv
    start = np.concatenate([q, qd]) + away
    control = FeedForward(motion) if control is None else control
    return simulate(biped, start[:n], start[n:], times=t, control=control, method="dopri5", progress=False, **options)


def transition(biped: System, t: Numbers, motion: Reference) -> tuple[Numbers, np.ndarray]:
    """Return how deviations [q; qd] at the start become those at the end, [24, 24], and the eigenvalues at all times.

    The product of the exponentials of the linearized motion over all intervals, by Magnus' method of the fourth order.
    """
    from scipy.linalg import expm

    h = np.diff(t)[:, None, None]
    nodes = [t[:-1] + (0.5 + side * np.sqrt(3.0) / 6.0) * np.diff(t) for side in (-1.0, 1.0)]
    a, b = (_linear(biped, motion, x) for x in nodes)
    out = np.eye(2 * biped.nv)
    for step in expm(0.5 * h * (a + b) + np.sqrt(3.0) / 12.0 * h * h * (b @ a - a @ b)):
        out = step @ out
    return out, np.linalg.eigvals(_linear(biped, motion, t))


def _linear(biped: System, motion: Reference, t: Numbers) -> Numbers:
    q, qd, qdd = sampled(motion, t)
    return biped.linearize(q, qd, biped.inverse_dynamics(q, qd, qdd)).A


def figure_15(folder: Path) -> Outcome:
    """Apply the torques to the biped, with and without control, and compare the joint angles with the designed ones."""
    biped, motion, t = load("spatial_biped"), reference(), np.linspace(0.0, STEP, SAMPLES)
    q = sampled(motion, t)[0]
    grid = np.arange(0.0, STEP + 0.5 * INTERVAL, INTERVAL)
    table = SampledTorques(biped.inverse_dynamics(*sampled(motion, grid)), INTERVAL)
    from_table = simulate_forced(biped, motion, t, control=table, rtol=1e-8, atol=1e-10)
    runs = {f"rtol {r:g}": simulate_forced(biped, motion, t, rtol=r, atol=a) for r, a in TOLERANCES}
    first = TOLERANCES[0]
    held = simulate_forced(biped, motion, t, control=ComputedTorque(*GAINS, motion), rtol=first[0], atol=first[1])
    off = {"torques of samples every 0.02 s": from_table, **{f"exact torques, {k}": r for k, r in runs.items()}}
    off["computed torque, rtol 0.0001"] = held
    rows = [(name, *(f"{x:.2e}" for x in _deviation(run, q)), _seen(run, q)) for name, run in off.items()]
    headings = ("forced by", "largest to 0.1 s [rad]", "to 0.3 s", "to 0.5 s", "above 1 deg at [s]")
    checks = (
        _diverges(from_table, q),
        _linear_growth(biped, motion, t),
        _other_route(biped, motion, t),
        _grow_alike([_deviation(run, q)[-1] for run in runs.values()]),
        Check(
            "a control scheme keeps the biped on its motion",
            f"with computed torque and the same tolerances the deviation stays below {_deviation(held, q)[-1]:.1e} rad",
            _deviation(held, q)[-1] <= 1e-3,
            Source.STATED,
        ),
    )
    files = _files(folder, t, from_table.q, held.q, q)
    tables = (("Figure 15: deviations from the designed angles", (headings, *rows)),)
    return Outcome(checks, tables, files, (DIVERGENCE,), STAND_INS)


def _grow_alike(ends: Sequence[float]) -> Check:
    """Check that smaller errors of the integrator lead to smaller deviations at the end [rad]."""
    return Check(
        "errors of the integrator grow alike",
        f"deviations after {STEP} s: " + ", ".join(f"{x:.1e} rad" for x in ends),
        all(a > 10 * b for a, b in pairwise(ends)),
    )


def _files(folder: Path, t: Numbers, forced: Numbers, controlled: Numbers, designed: Numbers) -> tuple[Path, Path]:
    """Write the figure and the table of joint angles [rad]."""
    from ...plots import figures

    joints = range(1, 13)
    figure = figures.panels(
        folder / "saha2013_figure_15.png",
        t,
        np.degrees(forced),
        titles=[f"joint {k}, {'standing' if k <= 6 else 'swinging'} leg" for k in joints],
        symbols=[rf"$\theta_{{{k}}}$" for k in joints],
        units=["deg"] * 12,
        heading="[Saha2013] figure 15: joint angles under the computed torques alone, and under control",
        columns=3,
        name="computed torques",
        beside={"designed": np.degrees(designed), "under control": np.degrees(controlled)},
    )
    table = write_csv(
        folder / "saha2013_figure_15.csv",
        ("t", *(f"{what}_{k}" for what in ("forced", "controlled", "designed") for k in joints)),
        np.column_stack([t, forced, controlled, designed]).tolist(),
    )
    return figure, table


def _deviation(run: Trajectory, q: Numbers) -> tuple[float, float, float]:
    """Return the largest deviations up to 0.1, 0.3 and 0.5 s."""
    away = np.abs(run.q - q).max(axis=-1)
    early, middle, late = (float(away[run.t <= end + 1e-12].max()) for end in (0.1, 0.3, 0.5))
    return early, middle, late


def _seen(run: Trajectory, q: Numbers) -> str:
    above = np.flatnonzero(np.abs(run.q - q).max(axis=-1) > SEEN)
    return f"{run.t[above[0]]:.2f}" if len(above) else "never"


def _diverges(run: Trajectory, q: Numbers) -> Check:
    early, _, late = _deviation(run, q)
    return Check(
        "the simulated angles match the designed ones up to 0.1 s, and then diverge",
        f"under torques read from a table every {INTERVAL} s they deviate by at most {np.degrees(early):.2f} deg up to "
        f"0.1 s, by {np.degrees(late):.0f} deg at {STEP} s",
        early < SEEN < 10 * SEEN < late,
        Source.STATED,
    )


def _linear_growth(biped: System, motion: Reference, t: Numbers) -> Check:
    """Compare how the worst small deviation grows with what the linearized motion predicts."""
    along, values = transition(biped, t, motion)
    _, grows, directions = np.linalg.svd(along)
    expected = along @ (NUDGE * directions[0])
    ends = [simulate_forced(biped, motion, t, away=s * NUDGE * directions[0], **TIGHT) for s in (1.0, -1.0)]
    found = 0.5 * (_end(ends[0]) - _end(ends[1]))
    apart = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    real = np.real(values).max(axis=-1)
    return Check(
        "the deviation is that of the equations of motion: the zero-eigenvalue effect",
        f"the linearized motion has eigenvalues up to {real.min():.0f} to {real.max():.0f} 1/s and multiplies "
        f"deviations by up to {grows[0]:.2e} in {STEP} s; a start {NUDGE:g} away deviates so, to {apart:.1e}",
        apart <= 1e-3 and bool(real.min() > 0),
        Source.STATED,
    )


def _end(run: Trajectory) -> Numbers:
    return np.concatenate([run.q[-1], run.qd[-1]])


def _other_route(biped: System, motion: Reference, t: Numbers) -> Check:
    """Compare a diverging run with another form of the equations and SciPy's integrator."""
    mechanism, away = biped.mechanism, np.full(2 * biped.nv, 1e-6)
    run = simulate_forced(biped, motion, t, away=away, **TIGHT)

    def acceleration(time: float, q: Numbers, qd: Numbers) -> Numbers:
        given = sampled(motion, np.array(time))
        tau = spatial_operators.equations(mechanism, given[0], given[1])
        return spatial_operators.equations(mechanism, q, qd).acceleration(tau.torque(given[2]))

    q, _ = follow(acceleration, (run.q[0], run.qd[0]), t[[0, -1]], rtol=1e-10, atol=1e-12)
    apart, moved = float(np.abs(q[-1] - run.q[-1]).max()), float(np.abs(run.q[-1] - motion(STEP)[0]).max())
    return Check(
        "the divergence is no artifact of a program",
        f"a start 1e-6 away ends {moved:.1e} rad away; by spatial operators and SciPy's DOP853 too, to {apart:.1e} rad",
        apart <= 1e-3 * moved,
    )


ENTRIES = (Entry("saha2013-figure-15", "Saha2013", "a biped under computed torques, and under control", figure_15),)
