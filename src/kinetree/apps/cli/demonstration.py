"""`kinetree demo`: the results of the demonstration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...page.writer import replay
from ..demo import START, Demo, kuka_motion, tracking_errors
from .console import NO_FIGURES, can_draw, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console


EVERY = 250
"""The table has one row per this many samples of the history, for a table that fits on a screen."""


def print_demo(console: Console, demo: Demo, files: Sequence[Path]) -> None:
    """Print torques, differences of routes beside their bounds, timings and files."""
    _print_torques(console, demo)
    _print_agreement(console, demo)
    _print_simulations(console, demo)
    _print_speed(console, demo)
    heading(console, "Figures, and pages that replay the runs in a browser")
    for file in files:
        console.print(str(file), soft_wrap=True)
    if not can_draw():
        console.print(NO_FIGURES, markup=False)
    console.print()
    console.print("All agreements hold." if demo.holds else "A CHECK FAILS: see above.", style="bold")


def _print_torques(console: Console, demo: Demo) -> None:
    heading(console, "Stanford arm along the cycloid of the papers: torques and force")
    columns = [f"joint {k} [{unit}]" for k, unit in enumerate(demo.stanford.units, 1)]
    table = make_table(console, "t [s]", *columns, numeric=("t [s]", *columns))
    for t, row in zip(demo.stanford.t[::EVERY], demo.stanford.tau[::EVERY], strict=True):
        table.add_row(f"{t:.1f}", *(f"{x + 0.0:.4g}" for x in row.round(12)))
    print_table(console, table)


def _print_agreement(console: Console, demo: Demo) -> None:
    heading(console, "Agreement of independent routes")
    columns = ("what", "largest relative difference", "bound", "")
    table = make_table(console, *columns, numeric=columns[1:3])
    for check in demo.checks:
        verdict = "holds" if check.holds else "FAILS"
        style = None if check.holds else "bold red"
        table.add_row(check.what, f"{check.residual:.1e}", f"{check.bound:.1e}", verdict, style=style)
    print_table(console, table)
    positive = "positive definite" if demo.smallest_eigenvalue > 0 else "NOT POSITIVE DEFINITE"
    console.print(
        f"The Stanford arm's inertia matrix is {positive} throughout: smallest eigenvalue "
        f"{demo.smallest_eigenvalue:.3g}, largest condition number {demo.condition:.3g}."
    )


def _print_simulations(console: Console, demo: Demo) -> None:
    heading(console, "Simulations")
    for text, run in (
        ("free fall from rest", demo.fall),
        (f"computed torque, starting {START:g} rad off the reference", demo.tracking),
        ("free motion of the closed loop", demo.bars),
    ):
        console.print(
            f"{run.system.mechanism.name}, {text}: {run.t[-1]:g} s by {run.method} in {run.evaluations:,} evaluations, "
            f"{run.status}."
        )
    kinetic, potential = (demo.fall[f"{sort}_energy"][[0, -1]] for sort in ("kinetic", "potential"))
    console.print(
        f"The fall converts {potential[0] - potential[1]:.9g} J of potential energy into "
        f"{kinetic[1] - kinetic[0]:.9g} J of kinetic energy."
    )
    errors = np.abs(tracking_errors(demo.tracking)).max(axis=1)
    console.print(f"Under control, the largest error shrinks from {errors[0]:.1e} to {errors[-1]:.1e} rad.")
    pin = np.linalg.norm(demo.bars["loop_reactions"][:, 0, 3:], axis=-1)
    console.print(f"The force in the four-bar's cut pin is up to {pin.max():.4g} N; its loop stays closed throughout.")


def _print_speed(console: Console, demo: Demo) -> None:
    heading(console, "Speed")
    timing = demo.timing
    console.print(
        f"{timing.samples:,} inverse dynamics of {timing.system} in one call, one thread: "
        f"{timing.seconds * 1e3:.1f} ms, {timing.seconds / timing.samples * 1e9:.1f} ns per sample."
    )
    for what, same in (("split into four calls", timing.same_split), ("on two threads", timing.same_threads)):
        console.print(f"The batch {what}: {'the same bits' if same else 'OTHER BITS'}.")
    links = demo.links
    console.print(
        f"Forward dynamics of a chain of {links.count:,} links: {links.seconds * 1e3:.2f} ms, "
        f"{links.seconds / links.count * 1e9:.0f} ns per link."
    )


# --- The figures and web pages of the demonstration; the figures follow the papers ---


def draw_demo(demo: Demo, folder: Path) -> tuple[Path, ...]:
    """Draw the figures, where matplotlib is installed, write pages that replay the runs, and return the files."""
    drawn = (*draw_torques(demo, folder), *draw_runs(demo, folder)) if can_draw() else ()
    return (
        *drawn,
        replay(demo.fall, folder / "stanford_fall.html", title="Stanford arm: free fall"),
        replay(demo.tracking, folder / "kuka_tracking.html", title="KUKA LWR 4+: computed torque"),
        replay(demo.bars, folder / "four_bar.html", title="Four-bar: free motion"),
    )


def draw_torques(demo: Demo, folder: Path) -> tuple[Path, ...]:
    """Draw the torques of the three arms, and return the files.

    They are figure 8 of [Saha1999] and 5 of [Saha2013]; figure 5 of [Wolinski2015], with all joints and their common
    motion; and figure 5 of [Saha1999].
    """
    from ...plots import figures

    stanford, kuka, planar = demo.stanford, demo.kuka, demo.planar
    return (
        figures.panels(
            folder / "stanford_torques.png",
            stanford.t,
            stanford.tau,
            titles=[f"Joint {i}" + (", prismatic" if u == "N" else "") for i, u in enumerate(stanford.units, 1)],
            symbols=[f"$f_{i}$" if u == "N" else rf"$\tau_{i}$" for i, u in enumerate(stanford.units, 1)],
            units=stanford.units,
            heading="Stanford arm: torques and force along the cycloid",
        ),
        figures.panels(
            folder / "kuka_torques.png",
            kuka.t,
            np.column_stack([kuka.tau, kuka_motion(kuka.t)[0][:, 0]]),
            titles=[*(f"Joint {i}" for i in range(1, 8)), "Motion of every joint"],
            symbols=[*(rf"$\tau_{i}$" for i in range(1, 8)), "$q_j$"],
            units=[*kuka.units, "rad"],
            heading="KUKA LWR 4+: torques forth and back",
        ),
        figures.curves(
            folder / "planar_3r_torques.png",
            planar.t,
            planar.tau,
            names=[rf"$\tau_{i}$" for i in range(1, 4)],
            label="torque  [N m]",
            heading="Planar 3R arm: torques, each joint rotating by 180 degrees",
        ),
    )


def draw_runs(demo: Demo, folder: Path) -> tuple[Path, ...]:
    """Draw the fall with its energies, the errors under control and the four-bar, and return the files."""
    from ...plots import figures

    fall, tracking, bars = demo.fall, demo.tracking, demo.bars
    energies = ("energy", "kinetic_energy", "potential_energy")
    return (
        figures.curves(
            folder / "stanford_fall.png",
            fall.t,
            np.column_stack([fall[name] for name in energies]),
            names=["total", "kinetic", "potential"],
            label="energy  [J]",
            heading="Stanford arm: energies in free fall",
        ),
        figures.panels(
            folder / "kuka_tracking.png",
            tracking.t,
            np.column_stack([tracking["tau"], tracking_errors(tracking)[:, 0]]),
            titles=[*(f"Joint {i}" for i in range(1, 8)), "Tracking error of every joint"],
            symbols=[*(rf"$\tau_{i}$" for i in range(1, 8)), "$q_j - q_{d,j}$"],
            units=["N m"] * 7 + ["rad"],
            heading="KUKA LWR 4+: computed torque, from an initial error of 0.3 rad",
        ),
        figures.panels(
            folder / "four_bar.png",
            bars.t,
            np.column_stack([bars.q, np.linalg.norm(bars["loop_reactions"][:, 0, 3:], axis=-1)]),
            titles=[*(j.name for j in bars.system.joints), "Force in the cut pin"],
            symbols=[*(f"$q_{i}$" for i in range(1, 4)), "$|f|$"],
            units=["rad"] * 3 + ["N"],
            heading="Four-bar: free motion with the loop closed",
        ),
    )
