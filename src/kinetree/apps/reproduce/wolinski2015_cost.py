"""[Wolinski2015]: cost of the controlled motion, in right-hand sides (table 1) and in time (figures 12 and 13)."""

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
from ...system import System
from .entry import Check, Entry, Outcome, Source, follow, write_csv
from .wolinski2015 import BOUNDS, TABLE_1, controlled_motion, drive_torque
from .wolinski2015 import T as LONG

T = LONG
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
    arm, times = load("kuka_lwr4"), np.linspace(0.0, LONG, SAMPLES)
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
    arm, times = load("kuka_lwr4"), np.linspace(0.0, T, SAMPLES)
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
        (name, word, str(len(runs[name][word].t)), f"{clock[-1]:.3g}", f"{clock[-1] / T:.2g}")
        for (name, word), clock in clocks.items()
    ]
    for word, tol in TOLERANCES.items():
        begin = time.perf_counter()
        count = controlled_motion(arm, times, tol).evaluations
        seconds = time.perf_counter() - begin
        rows.append(("simulate, CVODES, with its setup", word, str(count), f"{seconds:.3g}", f"{seconds / T:.2g}"))
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
    """Simulate the controlled motion by LSODA and record every right-hand side, including those of Jacobians."""
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
    Entry("wolinski2015-table-1", "Wolinski2015", "right-hand sides of the controlled motion", table_1),
    Entry(
        "wolinski2015-figures-12-13", "Wolinski2015", "time of the controlled motion, two programs", figures_12_and_13
    ),
)
