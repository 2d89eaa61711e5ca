"""[Saha1999]: the fall of the planar arm (figure 6), torques and fall of the Stanford arm (figures 8 and 9)."""

from __future__ import annotations

from dataclasses import replace
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...loading import load
from ...simulation.simulate import simulate
from ...system import System
from ..demo import planar_torques
from . import stanford
from .entry import Check, Entry, Outcome, Source, keeps_energy, same_motion, write_csv
from .saha1999 import PLANAR_STAND_INS

START = (0.0, pi / 2, 0.0, 0.0, 0.0, 0.0)
"""theta_2(0) = 90 deg: the arm is horizontal."""
PLANAR_FALL = 5.0
"""Duration [s]; the paper does not print it. After some 8 s the motion depends on the last digits of the arithmetic."""
STANFORD_FALL = 3.0


def figure_6(folder: Path) -> Outcome:
    """Let the planar arm fall from the x axis, and compare it with a triple pendulum by Lagrange's equations."""
    from ...plots import figures

    arm = load("planar_3r")
    run = simulate(arm, duration=PLANAR_FALL, rtol=1e-13, atol=1e-14, progress=False)
    names = [rf"$\theta_{k}$" for k in (1, 2, 3)]
    heading = "[Saha1999] figure 6: free fall of the planar arm"
    files = (
        figures.curves(
            folder / "saha1999_figure_6.png", run.t, run.q, names=names, label="joint angle  [rad]", heading=heading
        ),
        write_csv(
            folder / "saha1999_figure_6.csv",
            ("t", "theta_1", "theta_2", "theta_3"),
            np.column_stack([run.t, run.q]).tolist(),
        ),
    )
    turned = float(run.q[:, 0].min())
    first = run.qd[:, 0] < 0  # until theta_1 first reverses
    until = float(run.t[1 + int(np.argmin(first[1:]))])
    checks = (
        Check(
            "theta_1 increases initially in the negative direction",
            f"it decreases steadily for {until:.2f} s, and to {turned:.2f} rad in total",
            bool(first[1:20].all()),
            Source.STATED,
        ),
        same_motion(
            run,
            lambda t, q, qd: _lagrange(arm, q, qd),
            1e-8,
            by="Lagrange's equations of a triple pendulum",
            rtol=1e-12,
            atol=1e-13,
        ),
        keeps_energy(run),
    )
    stand_ins = (*PLANAR_STAND_INS, f"the duration: {PLANAR_FALL:g} s, over which neighboring motions stay close")
    return Outcome(checks, (), files, stand_ins=stand_ins)


def figure_8(folder: Path) -> Outcome:
    """Draw the torques of the Stanford arm from theta_2 = 90 deg."""
    t, _, tau, checks = stanford.torques(START)
    held = float(tau[0, 2])
    level = Check(
        "(a)-(f) with theta_2(0) = 90 deg, where the arm is horizontal",
        f"joint 3 requires a force of {abs(held):.1e} N there, since gravity has no component along it",
        abs(held) <= 1e-12,
        Source.STATED,
    )
    heading = "[Saha1999] figure 8: torques and force of the Stanford arm"
    files = stanford.torque_files(folder, "saha1999_figure_8", heading, t, tau)
    notes = (
        "Differs from the paper: (39) repeats (38), which ends at pi; with theta_i(T) = 60 deg and b_3(T) = 0.1 m, as "
        "in the text, the motion is [Saha2013] (34) and (35), used here.",
    )
    unprinted = "the curves, and those of Cyril (1988) which they match, are pictures without numbers"
    return Outcome((*checks, level), (), files, notes, unprinted=unprinted)


def figure_9(folder: Path) -> Outcome:
    """Let the Stanford arm fall from the horizontal, and follow joint 3 as joint 2 rotates."""
    arm, times = load("stanford"), np.linspace(0.0, STANFORD_FALL, 1001)
    run = stanford.fall(arm, START, times)
    upward = System(replace(arm.mechanism, gravity=tuple(-x for x in arm.mechanism.gravity)))
    other = stanford.fall(upward, START, times)
    checks = (*stanford.fall_checks(run), _slides(run), _mirrored(run, other))
    heading = "[Saha1999] figure 9: free fall of the Stanford arm"
    files = stanford.fall_files(folder, "saha1999_figure_9", heading, run)
    notes = (
        "Gravity is along -Z_1, as in [Saha2013]; this paper does not state it. theta_2 then falls from 90 deg to "
        "about 0, where the arm hangs. With gravity along +Z_1 it rises above 90 deg, as the paper's wording implies.",
        "Read as a rotation by 90 deg, the statement would not hold: joint 3 gains its velocity before that angle, "
        "and from then on accelerates with g alone.",
    )
    unprinted = f"the curves are pictures without numbers, and the duration is not printed: {STANFORD_FALL:g} s here"
    tables = (("Joint 3 by the rotation of joint 2", _turns(run)),)
    return Outcome(checks, tables, files, notes, unprinted=unprinted)


def _slides(run) -> Check:
    """Check that joint 3 rests while the arm is level and then extends with increasing velocity."""
    rate, g = run["qdd"][:, 2], 9.81
    reached = int(np.argmax(rate >= g))
    turn = abs(np.degrees(run.q[reached, 1]) - 90.0)
    return Check(
        "joint 3 sharply increases once joint 2 turns past 90 deg",
        f"b_3'' is {abs(rate[0]):.1e} m/s^2 at 90 deg, and above g = {g} m/s^2 from {turn:.0f} deg past it, "
        f"{run.t[reached]:.2f} s later; b_3 increases throughout",
        bool(abs(rate[0]) <= 1e-12 and rate[reached] >= g and (run.qd[1:, 2] > 0).all() and reached < len(run.t) / 2),
        Source.STATED,
    )


def _mirrored(run, upward) -> Check:
    """Check that under gravity along +Z_1 theta_2 rises above 90 deg and joint 3 moves the same."""
    gap = float(np.abs(run.q[:, 2] - upward.q[:, 2]).max())
    risen = float(np.degrees(upward.q[1:, 1].min()))
    return Check(
        "joint 2 turns more than 90 deg",
        f"with gravity along +Z_1: theta_2 >= {risen:.4f} deg after the start, b_3 the same to {gap:.1e} m",
        bool(risen > 90.0 and gap <= 1e-9),
        Source.STATED,
    )


def _turns(run) -> tuple[tuple[str, ...], ...]:
    """Return the motion of joint 3 at some rotations of joint 2 away from 90 deg."""
    turn = np.abs(np.degrees(run.q[:, 1]) - 90.0)
    rows = []
    for degrees in (0, 15, 30, 45, 60, 75, 85, 90):
        if turn.max() < degrees:
            break
        k = int(np.argmax(turn >= degrees))
        rate = run["qdd"][k, 2]
        rows.append((f"{degrees}", f"{run.t[k]:.2f}", f"{run.q[k, 2]:.3f}", f"{run.qd[k, 2]:.3f}", f"{rate:.3f}"))
    return (("rotation [deg]", "t [s]", "b_3 [m]", "b_3' [m/s]", "b_3'' [m/s^2]"), *rows)


def _lagrange(arm: System, q: NDArray, qd: NDArray) -> NDArray:
    """Return the accelerations in free fall from the explicit expressions of the torques, which are linear in them."""
    speeds, rates = np.zeros((5, 3)), np.zeros((5, 3))
    speeds[0], rates[1:4] = qd, np.eye(3)
    bias, *columns, gravity = planar_torques(arm, np.broadcast_to(q, (5, 3)), speeds, rates)
    return np.linalg.solve(np.array(columns).T - gravity[:, None], -bias)


ENTRIES = (
    Entry("saha1999-figure-6", "Saha1999", "free fall of the planar arm", figure_6),
    Entry("saha1999-figure-8", "Saha1999", "torques and force of the Stanford arm", figure_8),
    Entry("saha1999-figure-9", "Saha1999", "free fall of the Stanford arm", figure_9),
)
