"""The figures and web pages of the demonstration; the figures follow those of the papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..demo import Demo, kuka_motion
from ..demo.moving import tracking_errors
from . import plots
from .replay import replay


def draw_demo(demo: Demo, folder: Path) -> tuple[Path, ...]:
    """Draw the torques of the three arms and the three runs, write pages that replay the runs, and return the files.

    They are figure 8 of [Saha1999] and 5 of [Saha2013]; figure 5 of [Wolinski2015], with all joints and their common
    motion; and figure 5 of [Saha1999].
    """
    stanford, kuka, planar = demo.stanford, demo.kuka, demo.planar
    return (
        plots.panels(
            folder / "stanford_torques.png",
            stanford.t,
            stanford.tau,
            titles=[f"Joint {i}" + (", prismatic" if u == "N" else "") for i, u in enumerate(stanford.units, 1)],
            symbols=[f"$f_{i}$" if u == "N" else rf"$\tau_{i}$" for i, u in enumerate(stanford.units, 1)],
            units=stanford.units,
            heading="Stanford arm: torques and force along the cycloid",
        ),
        plots.panels(
            folder / "kuka_torques.png",
            kuka.t,
            np.column_stack([kuka.tau, kuka_motion(kuka.t)[0][:, 0]]),
            titles=[*(f"Joint {i}" for i in range(1, 8)), "Motion of every joint"],
            symbols=[*(rf"$\tau_{i}$" for i in range(1, 8)), "$q_j$"],
            units=[*kuka.units, "rad"],
            heading="KUKA LWR 4+: torques forth and back",
        ),
        plots.curves(
            folder / "planar_3r_torques.png",
            planar.t,
            planar.tau,
            names=[rf"$\tau_{i}$" for i in range(1, 4)],
            label="torque  [N m]",
            heading="Planar 3R arm: torques, each joint rotating by 180 degrees",
        ),
        *draw_runs(demo, folder),
    )


def draw_runs(demo: Demo, folder: Path) -> tuple[Path, ...]:
    """Draw the fall with its energies, the errors under control and the four-bar, and write a page for each run."""
    fall, tracking, bars = demo.fall, demo.tracking, demo.bars
    energies = ("energy", "kinetic_energy", "potential_energy")
    return (
        plots.curves(
            folder / "stanford_fall.png",
            fall.t,
            np.column_stack([fall[name] for name in energies]),
            names=["total", "kinetic", "potential"],
            label="energy  [J]",
            heading="Stanford arm: energies in free fall",
        ),
        plots.panels(
            folder / "kuka_tracking.png",
            tracking.t,
            np.column_stack([tracking["tau"], tracking_errors(tracking)[:, 0]]),
            titles=[*(f"Joint {i}" for i in range(1, 8)), "Tracking error of every joint"],
            symbols=[*(rf"$\tau_{i}$" for i in range(1, 8)), "$q_j - q_{d,j}$"],
            units=["N m"] * 7 + ["rad"],
            heading="KUKA LWR 4+: computed torque, from an initial error of 0.3 rad",
        ),
        plots.panels(
            folder / "four_bar.png",
            bars.t,
            np.column_stack([bars.q, np.linalg.norm(bars["loop_reactions"][:, 0, 3:], axis=-1)]),
            titles=[*(j.name for j in bars.system.joints), "Force in the cut pin"],
            symbols=[*(f"$q_{i}$" for i in range(1, 4)), "$|f|$"],
            units=["rad"] * 3 + ["N"],
            heading="Four-bar: free motion with the loop closed",
        ),
        replay(fall, folder / "stanford_fall.html", title="Stanford arm: free fall"),
        replay(tracking, folder / "kuka_tracking.html", title="KUKA LWR 4+: computed torque"),
        replay(bars, folder / "four_bar.html", title="Four-bar: free motion"),
    )
