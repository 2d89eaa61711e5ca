"""[Saha2013]: operations of several algorithms by the degrees of freedom of the joints, figures 19 and 20."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pi
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...analysis.cost import Cost, cost, generic_robot
from ...dynamics.forward import forward_dynamics
from ...dynamics.inverse import inverse_dynamics
from ...loading import load
from ...model.mechanism import Mechanism
from ...system import System
from . import stanford
from .entry import Check, Entry, Outcome, Source, write_csv
from .rivals import composite_bodies, count_page, ground_axes
from .saha1999 import TABLE_1, TABLE_2, formula_value

# --- [Saha2013]: torques and fall of the Stanford arm, figures 5 and 6 ---

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


MOTIONS = (
    Entry("saha2013-figure-5", "Saha2013", "torques and force of the Stanford arm", figure_5),
    Entry("saha2013-figure-6", "Saha2013", "free fall of the Stanford arm", figure_6),
)


# --- [Saha2013] section 1: rigid-flexible systems, whose results were "numerically stable" ---

ARMS = ("space_arm", "flexible_arm")
"""Arms with two flexible links of the library."""
STEP = 1e-3
"""Displacement of central differences [rad, m; rad/s, m/s]: rounding errors of 1e-13 are eigenvalues of 1e-5 1/s."""
SLACK = 2.0
"""The largest ratio of rounding errors that counts as equal."""


def flexible_systems(folder: Path) -> Outcome:
    """Compare eigenvalues that are zero without rounding errors: of accelerations under torques that cause given ones.

    qdd(q, qd, tau(q, qd, qdd_d)) = qdd_d does not depend on the state, so that all eigenvalues of its errors
    d(dq, dqd) = [0 1; dqdd/dq dqdd/dqd] (dq, dqd) are zero. Those of a computation are not, and make its errors grow.
    """
    rows, worst = [], {}
    for name in ARMS:
        for route, sizes in _spurious(load(name)).items():
            rows.append((name, route, float(sizes.max()), int((sizes > sizes.max() / 10).sum())))
            worst[name, route] = float(sizes.max())
    routes = list(dict.fromkeys(route for _, route in worst))
    first, others = routes[0], routes[1:]
    checks = tuple(
        Check(
            "the methodology for rigid-flexible systems produced numerically stable results",
            f"{name}: largest eigenvalue {worst[name, first]:.1e} 1/s by the recursion, "
            + ", ".join(f"{worst[name, x]:.1e} by {x}" for x in others),
            all(worst[name, first] <= SLACK * worst[name, x] for x in others),
            Source.STATED,
        )
        for name in ARMS
    )
    headings = ("arm", "forward dynamics", "largest eigenvalue [1/s]", "of at least a tenth of it")
    table = (headings, *((name, route, f"{x:.1e}", str(k)) for name, route, x, k in rows))
    file = write_csv(folder / "saha2013_flexible_systems.csv", headings, rows)
    stand_ins = (
        "the systems: two arms of the library",
        "their states and accelerations: random numbers",
        "the criterion of stability: eigenvalues that are zero without rounding errors",
    )
    notes = ("[Mohan2009], which compares such eigenvalues, is not among the papers at hand.",)
    return Outcome(checks, (("eigenvalues that should be zero", table),), (file,), notes, stand_ins)


def _spurious(arm: System) -> dict[str, Numbers]:
    """Return the sizes of the eigenvalues by the recursion and by dense solutions with the inertia matrix."""
    rng, n = np.random.default_rng(0), arm.nv
    q, qd = arm.random_state(rng)
    wanted = np.broadcast_to(rng.normal(size=n), (n, n))

    def recursion(q: Numbers, qd: Numbers) -> Numbers:
        tau = arm.inverse_dynamics(q, qd, wanted, forces=False)
        return arm.forward_dynamics(q, qd, tau, forces=False)

    def dense(solve: Callable[[Numbers, Numbers], Numbers]) -> Callable[[Numbers, Numbers], Numbers]:
        def accelerations(q: Numbers, qd: Numbers) -> Numbers:
            tau = arm.inverse_dynamics(q, qd, wanted, forces=False)
            driving = tau - arm.bias_torque(q, qd, forces=False)
            return np.array([solve(whole, x) for whole, x in zip(arm.inertia_matrix(q), driving, strict=True)])

        return accelerations

    ways = {
        "the recursion": recursion,
        "L D L^T of the inertia matrix": dense(_by_cholesky),
        "its inverse": dense(lambda whole, x: np.linalg.inv(whole) @ x),
    }
    moved, out = STEP * np.eye(n), {}
    q, qd = np.tile(q, (n, 1)), np.tile(qd, (n, 1))
    for name, way in ways.items():
        by_q = (way(q + moved, qd) - way(q - moved, qd)).T / (2 * STEP)
        by_qd = (way(q, qd + moved) - way(q, qd - moved)).T / (2 * STEP)
        errors = np.block([[np.zeros((n, n)), np.eye(n)], [by_q, by_qd]])
        out[name] = np.abs(np.linalg.eigvals(errors))
    return out


def _by_cholesky(inertia: Numbers, x: Numbers) -> Numbers:
    L = np.linalg.cholesky(inertia)
    return np.linalg.solve(L.T, np.linalg.solve(L, x))


FLEXIBLE = (Entry("saha2013-flexible-systems", "Saha2013", "stability for rigid-flexible systems", flexible_systems),)


PANELS = {
    "(a) joints of 1 degree of freedom": ("revolute",),
    "(b) joints of 2": ("universal",),
    "(c) joints of 3": ("euler",),
    "(d) as many joints of 1, 2 and 3": ("revolute", "universal", "euler"),
}
"""Kinds of joints in the panels of the figures."""
DEGREES = (6, 12, 18, 24, 30)
PER_JOINT = {"revolute": 1, "universal": 2, "euler": 3}
DENOC, APART = "Kinetree", "the same recursion, joints apart"
PRINTED_ROWS = {
    "inverse_dynamics": (
        TABLE_1,
        (
            "Luh et al. (1980)",
            "Walker and Orin (1982)",
            "Khalil et al. (1986)",
            "Angeles et al. (1989)",
            "Balafoutis et al. (1988)",
        ),
    ),
    "forward_dynamics": (TABLE_2, ("Featherstone (1983)", "Walker and Orin (1982)")),
}
"""Algorithms of others in the tables of [Saha1999], by printed formulas: every degree of freedom is a link."""
COUNTED = {
    "inverse_dynamics": ("Newton-Euler in ground axes", ground_axes, inverse_dynamics),
    "forward_dynamics": ("composite bodies, L D L^T", composite_bodies, forward_dynamics),
}
"""The algorithm of others that is counted, with its page, and the page of the recursion with joints apart."""


def chain(kinds: tuple[str, ...], degrees: int) -> Mechanism:
    """Return the generic chain of joints of these kinds in turn, with the given number of degrees of freedom."""
    return generic_robot(degrees * len(kinds) // sum(PER_JOINT[kind] for kind in kinds), kinds)


def panel(kinds: tuple[str, ...], function: str) -> dict[str, list[tuple[int, int]]]:
    """Return multiplications and additions at DEGREES by algorithm, Kinetree's first."""
    robots = [chain(kinds, n) for n in DEGREES]
    other, page, own = COUNTED[function]
    formulas, names = PRINTED_ROWS[function]
    pairs = {
        DENOC: [cost(robot, function) for robot in robots],
        APART: [count_page(own, robot, function, lumped=False) for robot in robots],
        other: [count_page(page, robot, function, lumped=True) for robot in robots],
    }
    out = {name: [_pair(c) for c in found] for name, found in pairs.items()}
    for name in names:
        m, a = formulas[name]
        out[name] = [(formula_value(m, n), formula_value(a, n)) for n in DEGREES]
    return out


def figure(number: int, function: str, folder: Path) -> Outcome:
    """Count the operations of Kinetree and of other algorithms by degrees of freedom, and compare them."""
    panels = {title: panel(kinds, function) for title, kinds in PANELS.items()}
    headings = ("joints", "algorithm", *(f"n = {n}" for n in DEGREES))
    rows = tuple(
        (title, name, *(f"{m}M {a}A" for m, a in found))
        for title, algorithms in panels.items()
        for name, found in algorithms.items()
    )
    totals = {
        title: {name: [m + a for m, a in found] for name, found in algorithms.items()}
        for title, algorithms in panels.items()
    }
    checks = _inverse_checks(totals) if function == "inverse_dynamics" else _forward_checks(totals)
    files = (
        write_csv(folder / f"saha2013_figure_{number}.csv", headings, rows),
        counts(
            folder / f"saha2013_figure_{number}.png",
            DEGREES,
            totals,
            label="degrees of freedom n",
            quantity="multiplications and additions",
            heading=f"[Saha2013] figure {number}: {function.replace('_', ' ')}, several algorithms",
            columns=2,
        ),
    )
    other, _, _ = COUNTED[function]
    notes = (
        f"Counted here: {DENOC}, {APART}, and {other}. The others are the formulas that [Saha1999] prints, in which "
        "every degree of freedom is a link with general numbers.",
        f'"{APART}" treats each joint of several axes as revolute joints on massless bodies and knows their zeros. It '
        "costs as much as Kinetree within 3% in panels (b) to (d): there the gain is that of the zeros. In panel (a) "
        "the difference is the assignment of masses to bodies nearer to the ground, which the papers do not name.",
    )
    unprinted = "the curves are pictures without numbers"
    return Outcome(checks, ((f"Figure {number}: {function}", (headings, *rows)),), files, notes, unprinted=unprinted)


def _inverse_checks(totals: dict[str, dict[str, list[int]]]) -> tuple[Check, ...]:
    single, *several = totals
    best = _best(totals[single])
    return (
        Check(
            "with joints of one degree of freedom as fast as the fastest algorithm (figure 19a)",
            _at_ends(totals[single][DENOC], best),
            all(own <= other for own, (other, _) in zip(totals[single][DENOC], best, strict=True)),
            Source.STATED,
        ),
        *(_cheapest(title, totals[title]) for title in several),
    )


def _forward_checks(totals: dict[str, dict[str, list[int]]]) -> tuple[Check, ...]:
    shares = {title: found[DENOC][-1] / _best(found)[-1][0] for title, found in totals.items()}
    one, two, three, _ = shares.values()
    return (
        *(_cheapest(title, found) for title, found in totals.items()),
        Check(
            "the more degrees of freedom the joints have, the greater the improvement",
            f"at n = {DEGREES[-1]} "
            + ", ".join(f"{title[:3]} {share:.0%}" for title, share in shares.items())
            + " of the operations of the best other algorithm",
            one > two > three,
            Source.STATED,
        ),
    )


def _cheapest(title: str, found: dict[str, list[int]]) -> Check:
    """Check that Kinetree needs the fewest operations at all sizes, and say where it does not."""
    best = _best(found)
    lost = [
        f"at n = {n} {own}, {name} {other}"
        for n, own, (other, name) in zip(DEGREES, found[DENOC], best, strict=True)
        if own >= other
    ]
    return Check(
        f"performs better than any other algorithm, {title}",
        "; ".join(lost) + "; at all other n it does" if lost else _at_ends(found[DENOC], best),
        not lost,
        Source.STATED,
    )


def _best(found: dict[str, list[int]]) -> list[tuple[int, str]]:
    """Return the fewest operations of another algorithm at DEGREES, and its name."""
    others = {name: values for name, values in found.items() if name not in (DENOC, APART)}
    return [min((values[k], name) for name, values in others.items()) for k in range(len(DEGREES))]


def _at_ends(own: list[int], best: list[tuple[int, str]]) -> str:
    return "; ".join(f"n = {DEGREES[k]}: {own[k]} operations, {best[k][1]} {best[k][0]}" for k in (0, -1))


def _pair(c: Cost) -> tuple[int, int]:
    return c.M, c.A


ENTRIES = (
    *MOTIONS,
    *FLEXIBLE,
    Entry(
        "saha2013-figure-19",
        "Saha2013",
        "operations of inverse dynamics, several algorithms and kinds of joints",
        lambda folder: figure(19, "inverse_dynamics", folder),
    ),
    Entry(
        "saha2013-figure-20",
        "Saha2013",
        "operations of forward dynamics, several algorithms and kinds of joints",
        lambda folder: figure(20, "forward_dynamics", folder),
    ),
)

# --- Figures of operation counts over the size of a mechanism, one panel per kind of mechanism ---

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def counts(
    path: str | Path,
    sizes: Sequence[int],
    panels: Mapping[str, Mapping[str, Sequence[int]]],
    *,
    label: str,
    quantity: str,
    heading: str = "",
    columns: int = 2,
) -> Path:
    """Draw curves by name over `sizes`, one panel per title and all with the same legend; return the file."""
    from ...plots.figures import COLORS, DASHES, _figure, _save, _style

    rows = -(-len(panels) // columns)
    with _style():
        figure = _figure((3.4 * columns, 2.7 * rows + 1.2))
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (title, curves) in zip(grid.flat, panels.items(), strict=True):
            for k, (name, values) in enumerate(curves.items()):
                style = {"color": COLORS[k % 8], "linestyle": DASHES[k % 4], "marker": MARKS[k % 8]}
                axes.plot(sizes, values, label=name, markersize=3.5, **style)
            axes.set_title(title, loc="left")
            axes.set_xticks(list(sizes))
            axes.set_ylim(bottom=0)
        for axes in grid[-1]:
            axes.set_xlabel(label)
        for axes in grid[:, 0]:
            axes.set_ylabel(quantity)
        handles, names = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, handlelength=2.8, ncols=columns, loc="outside lower center")
        return _save(figure, path, heading)
