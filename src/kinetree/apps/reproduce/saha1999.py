"""[Saha1999]: the cost tables 1 and 2, and torques and motions of the planar arm and the Stanford arm."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...analysis.cost import Cost, cost, generic_robot
from ...dynamics.forward import forward_dynamics
from ...dynamics.inverse import inverse_dynamics
from ...errors import writing
from ...loading import load
from ...simulation.simulate import simulate
from ...system import System
from ..demo import planar_motion, planar_torques
from . import stanford
from .entry import Check, Entry, Outcome, Source, keeps_energy, same_motion, write_csv
from .rivals import Page, count_page

Formula = tuple[Fraction | int, ...]
"""Coefficients of 1, n, n^2, n^3."""

TABLE_1: dict[str, tuple[Formula, Formula]] = {
    "Hollerbach (1980)": ((-277, 412), (-201, 320)),
    "Luh et al. (1980)": ((-48, 150), (48, 131)),
    "Walker and Orin (1982)": ((-22, 137), (-11, 101)),
    "[Saha1999]": ((-44, 120), (-55, 97)),
    "Khalil et al. (1986)": ((-92, 105), (-86, 94)),
    "Angeles et al. (1989)": ((-109, 105), (-105, 90)),
    "Balafoutis et al. (1988)": ((-69, 93), (-65, 81)),
}
"""Multiplications and additions of inverse dynamics, as printed."""

TABLE_2: dict[str, tuple[Formula, Formula]] = {
    "[Saha1999]": ((-335, 201), (-361, 193)),
    "Featherstone (1983)": ((-198, 199), (-173, 174)),
    "Walker and Orin (1982)": (
        (-47, Fraction(115, 3), Fraction(23, 2), Fraction(1, 6)),
        (-46, Fraction(233, 6), 7, Fraction(1, 6)),
    ),
}
"""Multiplications and additions of forward dynamics, as printed."""

PRINTED = {
    ("Hollerbach (1980)", 6): (2195, 1719),
    ("Luh et al. (1980)", 6): (852, 834),
    ("Walker and Orin (1982)", 6, 1): (800, 595),
    ("[Saha1999]", 6, 1): (676, 527),
    ("Khalil et al. (1986)", 6): (538, 478),
    ("Angeles et al. (1989)", 6): (521, 435),
    ("Balafoutis et al. (1988)", 6): (489, 421),
    ("[Saha1999]", 6, 2): (871, 797),
    ("[Saha1999]", 12, 2): (2077, 1955),
    ("Featherstone (1983)", 6): (996, 871),
    ("Featherstone (1983)", 12): (2190, 1915),
    ("Walker and Orin (1982)", 6, 2): (633, 480),
    ("Walker and Orin (1982)", 12, 2): (2357, 1716),
}
"""The paper's own values of the formulas; a number 1 or 2 identifies the table where both have a row.

Differs from the paper's own formula: 480A of Walker and Orin at n = 6, for which the formula gives 475A.
"""
PLANAR_STAND_INS = ("masses and lengths of the planar arm: those of the library's planar_3r",)
RECURSION, LUMPED = "the recursion, counted here", "Kinetree, masses lumped"


def formula_value(formula: Formula, n: int) -> int:
    """Return a formula's value; the papers round fractions to whole numbers."""
    return int(sum(c * n**k for k, c in enumerate(formula)))


def table(
    number: int, function: str, page: Page, rows: dict[str, tuple[Formula, Formula]], folder: Path, best: str
) -> Outcome:
    """Return a cost table with two rows counted here: the papers' recursion as its page, and Kinetree's function.

    The paper's own row is a count by hand of the same recursion, which must not need fewer operations than the page.
    """
    robots = {n: generic_robot(n) for n in (6, 9, 12)}
    plain = {n: count_page(page, robot, function, lumped=False) for n, robot in robots.items()}
    ours = {n: cost(robot, function) for n, robot in robots.items()}
    lines = [
        (name, _text(m), _text(a), *(f"{formula_value(m, n)}M {formula_value(a, n)}A" for n in (6, 12)))
        for name, (m, a) in rows.items()
    ]
    mine = [
        (name, _line(counts, "M"), _line(counts, "A"), str(counts[6]), str(counts[12]))
        for name, counts in ((RECURSION, plain), (LUMPED, ours))
    ]
    headings = ("algorithm", "M", "A", "n = 6", "n = 12")
    m, a = rows["[Saha1999]"]
    checks = [_agreement(number, rows)]
    for n in (6, 12):
        most = formula_value(m, n), formula_value(a, n)
        checks.append(
            Check(
                f"the recursion takes no more than the printed {most[0]}M {most[1]}A at n = {n}",
                f"its page, without lumping of masses: {plain[n]}",
                plain[n].M <= most[0] and plain[n].A <= most[1],
                Source.STATED,
            )
        )
    for n in (6, 12):
        least = tuple(formula_value(formula, n) for formula in rows[best])
        checks.append(
            Check(
                f"Kinetree takes no more than {best}, n = {n}: {least[0]}M {least[1]}A",
                f"with lumped masses: {ours[n]}",
                ours[n].M <= least[0] and ours[n].A <= least[1],
            )
        )
    file = write_csv(folder / f"saha1999_table_{number}.csv", headings, [*lines, *mine])
    notes = (
        "For a generic all-revolute robot by modified DH: all numbers general, the ground's frame that of the first "
        "joint, gravity general. Divisions count as M; products with constants count, signs and sines do not.",
        f'"{LUMPED}" assigns mass to the body nearest to the ground that could carry it, which changes no joint torque '
        "and no acceleration. No paper of the table names it; without it, the counts are those of the row above.",
    )
    return Outcome(
        tuple(checks),
        ((f"Table {number}: {function}", (headings, *lines, *mine)),),
        (file,),
        notes,
        stand_ins=("the programs whose operations the table counts",),
    )


def table_1(folder: Path) -> Outcome:
    """Count the operations of inverse dynamics."""
    return table(1, "inverse_dynamics", inverse_dynamics, TABLE_1, folder, best="Balafoutis et al. (1988)")


def table_2(folder: Path) -> Outcome:
    """Count the operations of forward dynamics."""
    return table(2, "forward_dynamics", forward_dynamics, TABLE_2, folder, best="[Saha1999]")


def figure_5(folder: Path) -> Outcome:
    """Draw the torques of the planar arm along (38) and compare them with the explicit expressions."""
    from ...plots import figures

    arm, t = load("planar_3r"), np.linspace(0.0, 10.0, 1001)
    motion = planar_motion(t)
    torques, explicit = arm.inverse_dynamics(*motion), planar_torques(arm, *motion)
    difference = float((np.abs(torques - explicit).max(axis=0) / np.abs(explicit).max(axis=0)).max())
    names = [rf"$\tau_{k}$" for k in (1, 2, 3)]
    files = (
        figures.curves(
            folder / "saha1999_figure_5.png",
            t,
            torques,
            names=names,
            label="torque  [N m]",
            heading="[Saha1999] figure 5: torques of the planar arm",
        ),
        write_csv(
            folder / "saha1999_figure_5.csv",
            ("t", "tau_1", "tau_2", "tau_3", "explicit_1", "explicit_2", "explicit_3"),
            np.column_stack([t, torques, explicit]).tolist(),
        ),
    )
    rest = float(np.abs(torques[[0, -1]] - arm.gravity_torque(motion[0][[0, -1]])).max())
    checks = (
        Check(
            "the torques of the recursion are those of the explicit expressions",
            f"largest difference {difference:.1e} relative to the largest torque",
            difference <= 1e-13,
            Source.STATED,
        ),
        Check("(38) starts and ends at rest", f"torques there equal those of gravity to {rest:.1e} N m", rest <= 1e-13),
    )
    return Outcome(checks, (), files, stand_ins=PLANAR_STAND_INS)


def closed_forms(folder: Path) -> Outcome:
    """Print the torques of the planar arm in symbols, and compare them with the explicit expressions."""
    arm = load("planar_3r")
    made = arm.equations("inverse_dynamics", symbols="all")
    scope: dict = {}
    exec(compile(made.python(), "planar_3r", "exec"), scope)  # text generated above
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 50, 3))
    symbolic = np.array([scope["inverse_dynamics"](*state) for state in zip(q, qd, qdd, strict=True)])
    explicit = planar_torques(arm, q, qd, qdd)
    difference = float(np.abs(symbolic - explicit).max() / np.abs(explicit).max())
    file = folder / "saha1999_planar_torques.tex"
    with writing(file):
        file.write_text(made.latex() + "\n", encoding="ascii")
    unprinted = "the expressions are not printed; those of Angeles (1997) are rederived by Lagrange's equations"
    rows = tuple((f"tau_{k}", str(entry)) for k, entry in enumerate(made.entries, 1))
    check = Check(
        "the expressions match those of Angeles (1997)",
        f"difference from Lagrange's by hand at 50 states: {difference:.1e} relative to the largest torque",
        difference <= 1e-14,
        Source.STATED,
    )
    return Outcome((check,), (("Torques in symbols", (("", "expression"), *rows)),), (file,), unprinted=unprinted)


def _agreement(number: int, rows: dict[str, tuple[Formula, Formula]]) -> Check:
    """Compare the paper's formulas with its own numbers, which counts as a statement: no number of ours is compared."""
    wrong = []
    count = 0
    for key, printed in PRINTED.items():
        name, n, *tables = key
        if name in rows and tables in ([], [number]):
            count += 1
            found = tuple(formula_value(formula, n) for formula in rows[name])
            if found != printed:
                wrong.append(f"{name}, n = {n}: printed {printed}, by the formula {found}")
    text = "; ".join(wrong) or "they do"
    return Check(f"the table's formulas give its {count} printed numbers", text, not wrong, Source.STATED)


def _text(formula: Formula) -> str:
    """Return a formula in the form printed by the paper, highest power first."""
    out = ""
    for k in reversed(range(len(formula))):
        c = formula[k]
        if c:
            sign = "-" if c < 0 else "+"
            power = "" if k == 0 else "n" if k == 1 else f"n^{k}"
            size = str(abs(c)) if Fraction(c).denominator == 1 else f"({abs(c)})"
            out += f" {sign} {size}{power}" if out else f"{'-' if c < 0 else ''}{size}{power}"
    return out


def _line(counts: dict[int, Cost], letter: str) -> str:
    """Return the formula of counts that increase by the same number from n = 6 to 9 and from 9 to 12."""
    a, b, c = (getattr(counts[n], letter) for n in (6, 9, 12))
    if b - a != c - b or (b - a) % 3:
        return "not linear"
    slope = (b - a) // 3
    return _text((a - 6 * slope, slope))


# --- [Saha1999]: the fall of the planar arm (figure 6), torques and fall of the Stanford arm (figures 8 and 9) ---


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
    checks = (*stanford.fall_checks(run), _slides(run), _check_mirror_image(run, other))
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


def _check_mirror_image(run, upward) -> Check:
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
    Entry("saha1999-table-1", "Saha1999", "cost of inverse dynamics, algorithms side by side", table_1),
    Entry("saha1999-table-2", "Saha1999", "cost of forward dynamics, algorithms side by side", table_2),
    Entry("saha1999-section-6.1", "Saha1999", "explicit torques of the planar arm", closed_forms),
    Entry("saha1999-figure-5", "Saha1999", "torques of the planar arm along (38)", figure_5),
    Entry("saha1999-figure-6", "Saha1999", "free fall of the planar arm", figure_6),
    Entry("saha1999-figure-8", "Saha1999", "torques and force of the Stanford arm", figure_8),
    Entry("saha1999-figure-9", "Saha1999", "free fall of the Stanford arm", figure_9),
)
