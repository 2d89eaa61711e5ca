"""[Wolinski2015]: torques and controlled motion of the KUKA arm, and the cost of computing it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...formulations import spatial_operators
from ...loading import load
from ...results.trajectory import Trajectory
from ...simulation.acting.controllers import PD
from ...simulation.acting.references import Cosine
from ...simulation.simulate import simulate
from ...system import System
from ..demo import kuka_motion
from .entry import Check, Entry, Outcome, Source, follow, write_csv

T = 14.0
K = (10.0, 1000.0, 200.0, 100.0, 10.0, 10.0, 10.0)
C = (1000.0, 10000.0, 1000.0, 1000.0, 10.0, 10.0, 10.0)
"""Stiffness (33) and damping (34) of the drives [N m/rad, N m s/rad]."""
NOUNS = ("position", "velocity", "acceleration")
WORDS = {"q": "positions", "qd": "velocities", "qdd": "accelerations"}
BOUNDS = {"q": 5e-4, "qd": 5e-4, "qdd": 0.014}
UNITS = {"q": "rad", "qd": "rad/s", "qdd": r"rad/s$^2$"}
TABLE_1 = {
    "Scilab BDF": (1924, 993),
    "ADAMS GSTIFF, SI2": (4432, 1745),
    "ADAMS GSTIFF, I3": (2583, 1613),
    "ADAMS WSTIFF, SI2": (4852, 1824),
    "ADAMS WSTIFF, I3": (3388, 1489),
    "ADAMS HHT": (7431, 2190),
    "ADAMS Newmark": (7495, 2196),
    "ADAMS HASTIFF, SI1": (7010, 1821),
    "ADAMS HASTIFF, SI2": (6272, 1787),
}
"""Evaluations of the right-hand side at tolerances 1e-6 and 1e-3, as printed."""


def figure_5(folder: Path) -> Outcome:
    """Draw the torque of joint 1 along (28)."""
    from ...plots import figures

    t = np.linspace(0.0, T, 1401)
    tau = load("kuka_lwr4").inverse_dynamics(*kuka_motion(t))
    off = float((np.abs(tau - tau[::-1]).max(axis=0) / np.abs(tau).max(axis=0)).max())
    coefficients = np.abs(np.fft.rfft(tau[:-1, 0]))
    high = float(coefficients[100:].max() / coefficients.max())
    checks = (
        Check(
            "the torques are symmetric",
            f"tau(t) = tau({T:g} s - t) in every joint to {off:.1e}",
            off <= 1e-12,
            Source.STATED,
        ),
        Check(
            "the torque of joint 1 is smooth",
            f"Fourier terms above 100 periods in {T:g} s are at most {high:.1e} of the largest",
            high <= 1e-12,
            Source.STATED,
        ),
    )
    heading = "[Wolinski2015] figure 5: driving torque at joint 1"
    names = [r"$\tau_1$"]
    path = folder / "wolinski2015_figure_5"
    files = (
        figures.curves(path.with_suffix(".png"), t, tau[:, :1], names=names, label="torque  [N m]", heading=heading),
        write_csv(
            path.with_suffix(".csv"), ("t", *(f"tau_{k}" for k in range(1, 8))), np.column_stack([t, tau]).tolist()
        ),
    )
    return Outcome(checks, (), files, unprinted="the curve is a picture without numbers")


def figures_6_to_11(folder: Path) -> Outcome:
    """Move the arm by PD control (32), and compare it with an independent computation."""
    from ...plots import figures

    arm, times = load("kuka_lwr4"), np.linspace(0.0, T, 1401)
    other = independent(arm, times)
    coarse, fine = controlled_motion(arm, times, 1e-6), controlled_motion(arm, times, 1e-8)
    gaps, small = ({name: np.abs(run[name] - other[name]) for name in BOUNDS} for run in (coarse, fine))
    slopes = np.abs(np.gradient(coarse.qd - other["qd"], times, axis=0))
    checks = (
        _within("q", "positions", gaps["q"], "at a tolerance of 1e-6"),
        _within("qd", "velocities", gaps["qd"], "at a tolerance of 1e-6"),
        *(_within(name, word, small[name], "at 1e-8") for name, word in WORDS.items()),
    )
    values = np.column_stack([x for name in BOUNDS for x in (fine[name][:, 0], small[name][:, 0])])
    letters = ("q_1", r"\dot{q}_1", r"\ddot{q}_1")
    path = folder / "wolinski2015_figures_6_to_11"
    files = (
        figures.panels(
            path.with_suffix(".png"),
            times,
            values,
            titles=[text for word in NOUNS for text in (f"{word} of joint 1", "difference of the two")],
            symbols=[text for x in letters for text in (f"${x}$", rf"$\delta_{{{x}}}$")],
            units=[unit for unit in UNITS.values() for _ in range(2)],
            heading="[Wolinski2015] figures 6 to 11: joint 1 under PD control, tolerance 1e-8",
        ),
        write_csv(
            path.with_suffix(".csv"),
            ("t", "q_1", "delta_q_1", "qd_1", "delta_qd_1", "qdd_1", "delta_qdd_1"),
            np.column_stack([times, values]).tolist(),
        ),
    )
    rows = tuple(
        (f"{k + 1}", *(f"{x[:, k].max():.1e}" for x in (*gaps.values(), slopes, *small.values()))) for k in range(7)
    )
    headings = ("joint", "1e-6: q", "qd", "qdd", "slope of qd", "1e-8: q", "qd", "qdd")
    ratio = float((gaps["qdd"].max(axis=0) / gaps["qd"].max(axis=0)).min())
    notes = (
        "The paper prints no tolerance for these figures; they are drawn at 1e-8. At 1e-6, the tolerance of table 1, "
        f"the accelerations (35) do not hold: qdd(t, q, qd) differs by {gaps['qdd'].max():.2f} rad/s^2, not 0.014. The "
        f"strong dampers produce {ratio:.0f} rad/s^2 and more per rad/s of velocity error. Slopes of the velocities "
        f"over samples of 0.01 s differ by {slopes.max():.1e} rad/s^2 there: the paper's values may be of this kind.",
    )
    stand_ins = (
        "results of ADAMS: spatial operators in SciPy's BDF at 1e-8 replace it",
        "the tolerance of the figures: 1e-8",
    )
    tables = (("Largest differences [rad, rad/s, rad/s^2]", (headings, *rows)),)
    return Outcome(checks, tables, files, notes, stand_ins=stand_ins)


def controlled_motion(arm: System, times: NDArray, tolerance: float) -> Trajectory:
    """Return the motion under the controller by backward differentiation, from (30) and (31)."""
    control = PD(K, C, Cosine([pi / 2] * 7, pi / 7))
    start = np.full(7, pi / 2)
    return simulate(arm, start, times=times, control=control, method="bdf", rtol=tolerance, atol=tolerance)


def independent(arm: System, times: NDArray) -> dict[str, NDArray]:
    """Return q, qd and qdd of the same motion by spatial operators and SciPy."""

    def acceleration(t: float, q: NDArray, qd: NDArray) -> NDArray:
        return spatial_operators.equations(arm.mechanism, q, qd).acceleration(drive_torque(t, q, qd))

    start = (np.full(7, pi / 2), np.zeros(7))
    q, qd = follow(acceleration, start, times, method="BDF", rtol=1e-8, atol=1e-8)
    qdd = np.array([acceleration(t, *state) for t, *state in zip(times, q, qd, strict=True)])
    return {"q": q, "qd": qd, "qdd": qdd}


def drive_torque(t: float, q: NDArray, qd: NDArray) -> NDArray:
    """Return the torques of (32), written independently of the compiled controller."""
    wanted, rate, _ = kuka_motion(np.array(t))
    return np.asarray(K) * (wanted - q) + np.asarray(C) * (rate - qd)


def _within(name: str, word: str, gaps: NDArray, where: str) -> Check:
    gap, unit = float(gaps.max()), UNITS[name].replace("$", "")
    return Check(
        f"{word} of all joints never differ by more than {BOUNDS[name]:g} {unit}",
        f"{gap:.1e} {unit} {where}",
        gap <= BOUNDS[name],
        Source.PRINTED,
    )


# --- [Wolinski2015]: cost of the controlled motion, in right-hand sides (table 1) and in time (figures 12 and 13) ---


TIMED = T
SAMPLES = 1401
TOLERANCES = {"1e-6": 1e-6, "1e-3": 1e-3}
INTERPRETED, COMPILED = "interpreted", "compiled"
REPEATS = 3
"""Runs of the compiled program; the shortest counts, because other processes disturb such a short run."""
PART = 0.01
"""Fraction of the simulated time. A curve is steep if one piece of this length has five times its share."""


@dataclass(frozen=True)
class Course:
    """The right-hand sides of a run in the order of evaluation: their times, and seconds on the clock.

    `q` [nt, 7] is the motion at the output times.
    """

    t: NDArray
    seconds: NDArray
    q: NDArray

    def clock(self, times: NDArray) -> NDArray:
        """Return the seconds on the clock when the run first reached each of the times."""
        reached = np.maximum.accumulate(self.t)
        return self.seconds[np.minimum(np.searchsorted(reached, times), len(reached) - 1)]

    def steepest(self, part: float) -> float:
        """Return the largest share of the right-hand sides within a fraction of the simulated time."""
        t = np.sort(self.t)
        inside = np.searchsorted(t, t + part * (t[-1] - t[0]), side="right") - np.arange(len(t))
        return float(inside.max() / len(t))


def table_1(folder: Path) -> Outcome:
    """Count the right-hand sides of the controlled motion at both tolerances."""
    arm, times = load("kuka_lwr4"), np.linspace(0.0, T, SAMPLES)
    ours = tuple(controlled_motion(arm, times, tol).evaluations for tol in TOLERANCES.values())
    differences = tuple(len(course(compiled_rates(arm), times, tol).t) for tol in TOLERANCES.values())
    table = {
        **TABLE_1,
        "Kinetree, CVODES BDF": ours,
        "Kinetree's equations in ODEPACK's LSODA": differences,
    }
    rows = tuple((name, *map(str, counts)) for name, counts in table.items())
    headings = ("integrator", *TOLERANCES)
    adams = [counts for name, counts in TABLE_1.items() if name.startswith("ADAMS")]
    checks = tuple(
        Check(
            f"tolerance {tol}: the recursion requires fewer right-hand sides than every integrator of ADAMS",
            f"{differences[k]} with a Jacobian by differences, the fewest of ADAMS are {min(x[k] for x in adams)}",
            differences[k] < min(x[k] for x in adams),
            Source.STATED,
        )
        for k, tol in enumerate(TOLERANCES)
    )
    notes = (
        "Like Scilab's integrator, LSODA computes its Jacobian by differences, which count: it takes "
        f"{differences[0]} and {differences[1]} right-hand sides, more than the printed {TABLE_1['Scilab BDF'][0]} and "
        f"{TABLE_1['Scilab BDF'][1]}. CVODES has the exact Jacobian, whose evaluations are not right-hand sides: its "
        "counts are not comparable with the printed ones.",
    )
    stand_ins = ("the program of the paper and its integrator, Scilab's BDF: LSODA of ODEPACK",)
    file = write_csv(folder / "wolinski2015_table_1.csv", headings, rows)
    return Outcome(checks, (("Table 1: right-hand sides", (headings, *rows)),), (file,), notes, stand_ins)


def figures_12_and_13(folder: Path) -> Outcome:
    """Time the controlled motion with equations interpreted by Python, and with the same in native code."""
    arm, times = load("kuka_lwr4"), np.linspace(0.0, TIMED, SAMPLES)
    slow = {word: course(interpreted_rates(arm), times, tol) for word, tol in TOLERANCES.items()}
    again = {
        word: [course(compiled_rates(arm), times, tol) for _ in range(REPEATS)] for word, tol in TOLERANCES.items()
    }
    fast = {word: runs[0] for word, runs in again.items()}
    clocks = {(INTERPRETED, word): run.clock(times) for word, run in slow.items()}
    clocks |= {(COMPILED, word): np.min([x.clock(times) for x in runs], axis=0) for word, runs in again.items()}
    checks = (
        faster({word: clocks[INTERPRETED, word][1:] / clocks[COMPILED, word][1:] for word in TOLERANCES}),
        _steep(slow),
        _fewer(slow, fast),
        _alike(slow, fast),
    )
    headings = ("program", "tolerance", "right-hand sides", "seconds", "seconds per simulated second")
    runs = {INTERPRETED: slow, COMPILED: fast}
    rows = [
        (name, word, str(len(runs[name][word].t)), f"{clock[-1]:.3g}", f"{clock[-1] / TIMED:.2g}")
        for (name, word), clock in clocks.items()
    ]
    for word, tol in TOLERANCES.items():
        begin = time.perf_counter()
        count = controlled_motion(arm, times, tol).evaluations
        seconds = time.perf_counter() - begin
        rows.append(("simulate, CVODES, with its setup", word, str(count), f"{seconds:.3g}", f"{seconds / TIMED:.2g}"))
    notes = (
        "Times are of this machine, and none is compared with the paper's. Figure 12 is computed by the paper's own "
        "steps (section 3), in NumPy, by LSODA, a relative of Scilab's integrator.",
        "Figure 13 is of a program that is compiled, as ADAMS is, but not of ADAMS, which solves differential and "
        "algebraic equations by GSTIFF: Kinetree's recursion, called from Python by the same LSODA. This tests the "
        "paper's conjecture that a recursion as an executable program would be fast; it does not show whether it is "
        "faster than ADAMS.",
    )
    table = ("Figures 12 and 13: time of the controlled motion", (headings, *rows))
    stand_ins = (
        "numbers of the curves, their machine, Scilab and ADAMS: this machine, an interpreted and a compiled program",
    )
    return Outcome(checks, (table,), _files(folder, times, clocks), notes, stand_ins)


def interpreted_rates(arm: System) -> Callable[[NDArray, NDArray, NDArray], NDArray]:
    """Return q, qd, tau -> qdd by the paper's spatial operators in NumPy."""
    return lambda q, qd, tau: spatial_operators.equations(arm.mechanism, q, qd).acceleration(tau)


def compiled_rates(arm: System) -> Callable[[NDArray, NDArray, NDArray], NDArray]:
    """Return q, qd, tau -> qdd by the recursion in native code, compiled in advance."""
    arm.forward_dynamics(*np.zeros((3, arm.nv)))
    return arm.forward_dynamics


def course(accelerate: Callable[[NDArray, NDArray, NDArray], NDArray], times: NDArray, tolerance: float) -> Course:
    """Simulate the controlled motion by LSODA and record every right-hand side, including the ones for Jacobians."""
    asked: list[tuple[float, float]] = []

    def acceleration(t: float, q: NDArray, qd: NDArray) -> NDArray:
        qdd = accelerate(q, qd, drive_torque(t, q, qd))
        asked.append((t, time.perf_counter() - begin))
        return qdd

    begin = time.perf_counter()
    start = (np.full(7, pi / 2), np.zeros(7))
    q, _ = follow(acceleration, start, times, method="LSODA", rtol=tolerance, atol=tolerance)
    t, seconds = np.array(asked).T
    return Course(t, seconds, q)


def faster(ratios: dict[str, NDArray]) -> Check:
    """Compare the clocks of both programs throughout the motion."""
    found = "; ".join(f"at {word} {x.min():.0f} to {x.max():.0f} times" for word, x in ratios.items())
    return Check(
        "a compiled program is always more than four times faster than one that is interpreted, at both tolerances",
        found,
        all(bool((x > 4.0).all()) for x in ratios.values()),
        Source.STATED,
    )


def _steep(runs: dict[str, Course]) -> Check:
    shares = {word: run.steepest(PART) for word, run in runs.items()}
    found = ", ".join(f"{share:.0%} of the right-hand sides at {word}" for word, share in shares.items())
    return Check(
        "fragments of the curves are almost vertical",
        f"{PART:.0%} of the time takes {found}",
        all(share >= 5 * PART for share in shares.values()),
        Source.STATED,
    )


def _fewer(slow: dict[str, Course], fast: dict[str, Course]) -> Check:
    rival = "ADAMS GSTIFF, SI2"
    most = [max(len(slow[word].t), len(fast[word].t)) for word in TOLERANCES]
    printed = TABLE_1[rival]
    return Check(
        f"the recursion requires fewer right-hand sides than {rival}: {printed[0]} at 1e-6, {printed[1]} at 1e-3",
        f"{most[0]} and {most[1]}, the larger of both programs",
        all(found < count for found, count in zip(most, printed, strict=True)),
        Source.PRINTED,
    )


def _alike(slow: dict[str, Course], fast: dict[str, Course]) -> Check:
    gap = max(float(np.abs(slow[word].q - fast[word].q).max()) for word in TOLERANCES)
    return Check(
        f"both programs compute the same motion, to {BOUNDS['q']:g} rad in every joint",
        f"{gap:.1e} rad",
        gap <= BOUNDS["q"],
    )


def _files(folder: Path, times: NDArray, clocks: dict[tuple[str, str], NDArray]) -> tuple[Path, ...]:
    """Draw one figure per program, and write all curves as a table."""
    from ...plots import figures as plots

    figures = tuple(
        plots.curves(
            folder / f"wolinski2015_figure_{number}.png",
            times,
            np.column_stack([clocks[name, word] for word in TOLERANCES]),
            names=[f"tolerance {word}" for word in TOLERANCES],
            label="wall-clock time  [s]",
            heading=f"[Wolinski2015] figure {number}: the {name} program",
        )
        for number, name in ((12, INTERPRETED), (13, COMPILED))
    )
    names = ("t", *(f"{name} {word}" for name, word in clocks))
    return *figures, write_csv(
        folder / "wolinski2015_figures_12_13.csv", names, np.column_stack([times, *clocks.values()]).tolist()
    )


ENTRIES = (
    Entry("wolinski2015-figure-5", "Wolinski2015", "torque of joint 1 of the KUKA arm", figure_5),
    Entry("wolinski2015-figures-6-11", "Wolinski2015", "the KUKA arm under PD control, twice", figures_6_to_11),
    Entry("wolinski2015-table-1", "Wolinski2015", "right-hand sides of the controlled motion", table_1),
    Entry(
        "wolinski2015-figures-12-13", "Wolinski2015", "time of the controlled motion, two programs", figures_12_and_13
    ),
)
