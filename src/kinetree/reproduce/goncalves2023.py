"""[Goncalves2023]: the time for 1000 steps of kinematics and of dynamics, table 5."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..algebra.arrays import Numbers
from ..analysis.cost.counting import cost, generic_robot
from ..formulations import denoc
from ..formulations.charmie import ACTUATORS
from ..formulations.charmie import inverse_dynamics as by_formulas
from ..loading import load
from ..model.axes import axis_labels
from ..system import System
from .charmie_motion import DURATION, closed_motion, spring_law, validation_motion
from .entry import Check, Entry, Outcome, write_csv

STEPS = 1000
PRINTED = {
    "2-DOF arm": (0.211, 0.482),
    "4-DOF arm": (0.269, 0.715),
    "6-DOF arm": (0.325, 0.947),
    "CHARMIE": (2.409, 7.856),
}
"""Seconds for kinematics and for kinematics with dynamics, without graphics, as printed."""


def table_5(folder: Path) -> Outcome:
    """Time 1000 steps, each a call from Python for one state, and compare their torques with another formulation."""
    headings = ("model", "analysis", "printed [s]", "start [s]", "1000 steps [s]", "factor", "one call for all [s]")
    rows, gaps = [], []
    for name, printed in PRINTED.items():
        system, states, step = _charmie() if name == "CHARMIE" else _arm(int(name[0]))
        start = _seconds(lambda: step(system, *(x[0] for x in states)))  # noqa: B023 - called at once
        kinematics = _steps(system, states, _kinematics)
        both = _steps(system, states, step)
        for word, seconds, batch, told in (
            ("kinematics", kinematics, _best(lambda: _kinematics(system, *states)), printed[0]),  # noqa: B023
            ("and dynamics", both, _best(lambda: step(system, *states)), printed[1]),  # noqa: B023
        ):
            rows.append(
                (name, word, f"{told:.3f}", f"{start:.3g}", f"{seconds:.3g}", f"{told / seconds:.0f}", f"{batch:.3g}")
            )
        if name != "CHARMIE":
            gaps.append(_difference(system, states))
    robot = _actuator_difference()
    checks = (
        Check(
            "the torques of the arms are right", f"to {max(gaps):.1e} of those by DeNOC matrices", max(gaps) <= 1e-11
        ),
        Check("CHARMIE's 21 torques are right", f"to {robot:.1e} of those by (5)-(43)", robot <= 1e-7),
        _linear("twist_rates", "kinematics"),
        _linear("inverse_dynamics", "dynamics"),
    )
    notes = (
        "The printed times are of the authors' Python on a Ryzen 5 5600X, including the start of their program. Those "
        "here are of this machine: the steps alone, and separately the start (functions compiled, or read from the "
        "cache). They are reported, not checked. factor = printed / 1000 steps.",
        "A step is one call each for poses, twists and accelerations of all bodies, and one for the torques. The arms' "
        "numbers are not printed: generic arms of revolute joints are used instead. CHARMIE has all its loops and "
        "springs, with geometry of ours where none is printed; its steps are those of the validation motion. Torques "
        "are those of its 21 actuators; the paper also computes the loads at all joints.",
    )
    file = write_csv(folder / "goncalves2023_table_5.csv", headings, rows)
    return Outcome(checks, (("Table 5: seconds for 1000 steps", (headings, *rows)),), (file,), notes)


def _arm(count: int) -> tuple[System, tuple[Numbers, ...], Callable]:
    """Return a generic arm, states of it, and one step."""
    system = System(generic_robot(count))
    q, qd = system.random_state(1, STEPS)
    return system, (q, qd, np.random.default_rng(2).normal(size=qd.shape)), _step


def _charmie() -> tuple[System, tuple[Numbers, ...], Callable]:
    """Return the robot with its loops, its states in the validation motion, and one step."""
    system = load("charmie_complete").fixed({})
    states = closed_motion(system, validation_motion(np.linspace(0.0, DURATION, STEPS)))
    springs, dynamics = spring_law(system), system.function("hybrid_dynamics", driven=ACTUATORS)

    def step(system: System, q, qd, qdd) -> Numbers:
        _kinematics(system, q, qd, qdd)
        return dynamics(q, qd, qdd, springs(q))[1]

    return system, states, step


def _kinematics(system: System, q, qd, qdd) -> None:
    system.poses(q)
    system.twists(q, qd)
    system.twist_rates(q, qd, qdd)


def _step(system: System, q, qd, qdd) -> None:
    _kinematics(system, q, qd, qdd)
    system.inverse_dynamics(q, qd, qdd)


def _steps(system: System, states, step: Callable) -> float:
    """Return the seconds for all states, one after the other."""

    def run() -> None:
        for state in zip(*states, strict=True):
            step(system, *state)

    return _best(run)


def _best(run: Callable[[], None], repeats: int = 5) -> float:
    return min(_seconds(run) for _ in range(repeats))


def _seconds(run: Callable[[], None]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _difference(system: System, states) -> float:
    """Return the difference of some steps' torques from those of the explicit matrices, relative to the largest."""
    worst = 0.0
    for q, qd, qdd in zip(*(x[:: STEPS // 5] for x in states), strict=True):
        dense = denoc.equations(system.mechanism, q, qd).torque(qdd)
        worst = max(worst, float(np.abs(system.inverse_dynamics(q, qd, qdd) - dense).max() / np.abs(dense).max()))
    return worst


def _actuator_difference() -> float:
    """Return the difference of CHARMIE's actuators from those by the paper's formulas, relative to the largest."""
    system, states, step = _charmie()
    found = step(system, *states)
    labels = axis_labels(system.mechanism, 1)
    paper = by_formulas(system.mechanism, validation_motion(np.linspace(0.0, DURATION, STEPS))).torques
    apart = max(np.abs(found[:, labels.index(name)] - x).max() for name, x in paper.items())
    return float(apart / max(np.abs(x).max() for x in paper.values()))


def _linear(function: str, word: str) -> Check:
    """Check that each additional body costs the same number of operations."""
    counts = [cost(generic_robot(n), function) for n in (2, 4, 6)]
    steps = {(b.M - a.M, b.A - a.A) for a, b in pairwise(counts)}
    found = "; ".join(f"{n}: {c}" for n, c in zip((2, 4, 6), counts, strict=True))
    return Check(f"the cost of {word} grows linearly with the number of bodies", found, len(steps) == 1)


ENTRIES = (Entry("goncalves2023-table-5", "Goncalves2023", "time of 1000 steps of four robots", table_5),)
