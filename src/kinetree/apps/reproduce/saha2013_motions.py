"""[Saha2013]: torques and fall of the Stanford arm, figures 5 and 6."""

from __future__ import annotations

from math import pi
from pathlib import Path

import numpy as np

from ...loading import load
from . import stanford
from .entry import Check, Entry, Outcome, Source, write_csv

START = (0.0,) * 6
"""As printed after (35); the library's arm then points straight down."""
LEVEL = (0.0, pi / 2, 0.0, 0.0, 0.0, 0.0)
"""The start of [Saha1999]: the arm is horizontal."""
FALL = 1.5
"""Duration [s]; the paper does not print it."""


def figure_5(folder: Path) -> Outcome:
    """Draw the torques of the Stanford arm from q = 0."""
    t, _, tau, checks = stanford.torques(START)
    weight = -stanford.HELD * 9.81
    off = float(abs(tau[0, 2] - weight))
    hangs = Check(
        "gravity acts along -Z_1, all joint variables are 0 at the start",
        f"the arm hangs down there: f_3 = {tau[0, 2]:.3f} N, "
        f"equal to the weight of links 3 to 6 to {off:.1e} N, and the others are 0",
        off <= 1e-12 and float(np.abs(np.delete(tau[0], 2)).max()) <= 1e-12,
        Source.STATED,
    )
    heading = "[Saha2013] figure 5: torques and force of the Stanford arm"
    files = stanford.torque_files(folder, "saha2013_figure_5", heading, t, tau)
    notes = ("Differs from [Saha1999] in theta_2(0): 0 here, 90 deg there; see saha1999-figure-8.",)
    stand_ins = ("theta_i(T) and b_3(T): 60 deg and 0.1 m of [Saha1999]", "numbers of the curves")
    return Outcome((*checks, hangs), (), files, notes, stand_ins)


def figure_6(folder: Path) -> Outcome:
    """Let the Stanford arm fall from the printed start, and from the horizontal, where all joints move."""
    from ...plots import figures

    arm, times = load("stanford"), np.linspace(0.0, FALL, 1001)
    run, level = stanford.fall(arm, START, times), stanford.fall(arm, LEVEL, times)
    off = float((np.abs(run.q[:, 2] - 9.81 * run.t**2 / 2) / run.q[-1, 2]).max())
    moved = np.ptp(run.q, axis=0)
    hangs = Check(
        "b_3 = g t^2 / 2 where the arm hangs",
        f"to {off:.1e} of its {run.q[-1, 2]:.1f} m after {FALL:g} s",
        off <= 1e-12,
    )
    moves = Check(
        "the joint motions of a fall from the initial positions of the inverse dynamics, q = 0",
        f"from there the arm points down and only joint 3 moves, without end; the others stay within "
        f"{np.delete(moved, 2).max():.1e} rad, so that this start cannot be that of the figure",
        bool((moved > 1e-3).all()),
        Source.STATED,
    )
    names = [f"{x}_{start}" for start in ("level", "printed") for x in stanford.names("theta", "b")]
    files = (
        figures.panels(
            folder / "saha2013_figure_6.png",
            times,
            stanford.in_degrees(level.q),
            titles=[f"joint {k}" for k in range(1, 7)],
            symbols=stanford.symbols("\\theta", "b"),
            units=stanford.DRAWN_UNITS,
            heading="[Saha2013] figure 6: free fall of the Stanford arm, from two starts",
            name="from the horizontal",
            beside={"from q = 0": stanford.in_degrees(run.q)},
        ),
        write_csv(folder / "saha2013_figure_6.csv", ("t", *names), np.column_stack([times, level.q, run.q]).tolist()),
    )
    notes = (
        "All joints move from theta_2(0) = 90 deg, the start of [Saha1999], which is drawn; saha1999-figure-9 "
        "compares it with the statements of that paper.",
        f"The duration is not printed: {FALL:g} s.",
    )
    return Outcome((*stanford.fall_checks(level), hangs, moves), (), files, notes)


ENTRIES = (
    Entry("saha2013-figure-5", "Saha2013", "torques and force of the Stanford arm", figure_5),
    Entry("saha2013-figure-6", "Saha2013", "free fall of the Stanford arm", figure_6),
)
