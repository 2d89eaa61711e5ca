"""[Saha2013]: torques and fall of the Stanford arm, figures 5 and 6."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..loading import load
from . import stanford
from .entry import Check, Entry, Outcome

START = (0.0,) * 6
"""As printed after (35); the library's arm then points straight down."""
FALL = 10.0


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
    )
    heading = "[Saha2013] figure 5: torques and force of the Stanford arm"
    files = stanford.torque_files(folder, "saha2013_figure_5", heading, t, tau)
    notes = (
        "The paper does not print theta_i(T) and b_3(T): those of [Saha1999] are used, 60 deg and 0.1 m.",
        "Differs from [Saha1999] in theta_2(0): 0 here, 90 deg there; see saha1999-figure-8.",
    )
    return Outcome((*checks, hangs), (), files, notes)


def figure_6(folder: Path) -> Outcome:
    """Let the Stanford arm fall from q = 0."""
    run = stanford.fall(load("stanford"), START, np.linspace(0.0, FALL, 1001))
    off = float((np.abs(run.q[:, 2] - 9.81 * run.t**2 / 2) / run.q[-1, 2]).max())
    still = float(np.abs(np.delete(run.q, 2, axis=1)).max())
    falls = Check(
        "the arm falls freely from the start of the inverse dynamics, q = 0",
        f"only joint 3 moves: b_3 = g t^2 / 2 to {off:.1e} of its {run.q[-1, 2]:.1f} m, the others by {still:.1e} rad",
        off <= 1e-12 and still <= 1e-12,
    )
    heading = "[Saha2013] figure 6: free fall of the Stanford arm"
    files = stanford.fall_files(folder, "saha2013_figure_6", heading, run)
    notes = (
        "From the printed start the arm points down and no other joint is driven. A fall in which all joints move, as "
        "described for the paper's figure, requires theta_2(0) = 90 deg of [Saha1999]: see saha1999-figure-9.",
    )
    return Outcome((*stanford.fall_checks(run), falls), (), files, notes)


ENTRIES = (
    Entry("saha2013-figure-5", "Saha2013", "torques and force of the Stanford arm", figure_5),
    Entry("saha2013-figure-6", "Saha2013", "free fall of the Stanford arm", figure_6),
)
