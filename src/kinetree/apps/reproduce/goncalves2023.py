"""[Goncalves2023]: the time for 1000 steps of kinematics and of dynamics from start to end, table 5."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...analysis.cost import cost, generic_robot
from ...formulations import denoc
from ...formulations.charmie import ACTUATORS
from ...formulations.charmie import inverse_dynamics as by_formulas
from ...loading import load
from ...model.axes import axis_labels
from ...system import System
from .entry import Check, Entry, Outcome, Source, write_csv
from .goncalves2023_motion import DURATION, Closed, closed_motion, spring_law, validation_motion

STEPS = 1000
REPEATS = 2
"""Runs that are timed; the shortest counts, because other processes disturb such a short run."""
PRINTED = {
    "2-DOF arm": (0.211, 0.482),
    "4-DOF arm": (0.269, 0.715),
    "6-DOF arm": (0.325, 0.947),
    "CHARMIE": (2.409, 7.856),
}
"""Seconds for kinematics and for kinematics with dynamics, without graphics, as printed."""
KINEMATICS, DYNAMICS = "kinematics", "and dynamics"


@dataclass(frozen=True)
class Case:
    """A model of the table: the inputs of all steps, and one call from Python per step.

    `kinematics` returns the motion of all bodies and `dynamics` the torques, from the inputs of one step alone. Those
    of a robot with loops are the motions of its actuators, so that every step closes the loops.
    """

    steps: tuple[Numbers, ...]
    kinematics: Callable[..., tuple[Numbers, ...]]
    dynamics: Callable[..., Numbers]

    def run(self, analysis: str) -> list[Numbers]:
        """Return the results of all steps, one after the other."""
        call = self.kinematics if analysis == KINEMATICS else self.dynamics
        return [np.asarray(call(*step)[-1] if analysis == KINEMATICS else call(*step)) for step in self.inputs()]

    def inputs(self):
        """Return the inputs step by step."""
        return zip(*self.steps, strict=True)


def model(name: str) -> Case:
    """Return a model of the table by its name there."""
    return _charmie() if name == "CHARMIE" else _arm(int(name[0]))


def table_5(folder: Path) -> Outcome:
    """Time 1000 steps, each a call from Python for one state, in programs of their own, and compare their torques."""
    headings = ("model", "analysis", "printed [s]", "in all [s]", "factor", "first time [s]", "steps alone [s]")
    rows, arms, robot = [], 0.0, 0.0
    for name, printed in PRINTED.items():
        case = model(name)
        torques = np.array(case.run(DYNAMICS))
        if name == "CHARMIE":
            robot = _actuator_difference(torques)
        else:
            arms = max(arms, _difference(int(name[0]), case, torques))
        for analysis, told in zip((KINEMATICS, DYNAMICS), printed, strict=True):
            first, again = _programs(name, analysis)
            steps = min(_seconds(lambda: case.run(analysis)) for _ in range(REPEATS))  # noqa: B023 - called at once
            times = (f"{first:.3g}", f"{steps:.3g}")
            rows.append((name, analysis, f"{told:.3f}", f"{again:.3g}", f"{told / again:.2g}", *times))
    checks = (
        Check("the torques of the arms are right", f"to {arms:.1e} of those by DeNOC matrices", arms <= 1e-11),
        Check("CHARMIE's 21 torques are right", f"to {robot:.1e} of those by (5)-(43)", robot <= 1e-7),
        _linear("twist_rates", "kinematics"),
        _linear("inverse_dynamics", "dynamics"),
    )
    notes = (
        "As in the paper, times include the start: a new process of Python that imports, reads the model and computes "
        'all steps. "first time" also compiles the functions; "in all" reads them from the cache. They are of this '
        "machine, the printed ones of a Ryzen 5 5600X: reported, not checked. factor = printed / in all.",
        "A step of an arm is one call each for poses, twists and accelerations of all bodies, and one for the torques. "
        "A step of CHARMIE begins with the motions of its 21 actuators, as the paper's: it closes the loops, solves "
        "for velocities and accelerations of all joints, and then does the same; its steps follow the validation "
        "motion. Torques are those of the actuators; the paper also computes the loads at all joints.",
    )
    stand_ins = (
        "the numbers of the arms: generic arms of revolute joints",
        "the geometry of CHARMIE's loops and springs: our own",
        "the authors' program, whose machine is another",
    )
    file = write_csv(folder / "goncalves2023_table_5.csv", headings, rows)
    return Outcome(checks, ((f"Table 5: seconds for {STEPS} steps", (headings, *rows)),), (file,), notes, stand_ins)


def _programs(name: str, analysis: str) -> tuple[float, float]:
    """Return the seconds of a new process for all steps, with an empty cache and with what that left in it."""
    given = f"g.STEPS = {STEPS}; g.model({name!r}).run({analysis!r})"
    code = f"from kinetree.apps.reproduce import goncalves2023 as g; {given}"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "KINETREE_CACHE_DIR": folder}

        def run() -> None:
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)

        return _seconds(run), min(_seconds(run) for _ in range(REPEATS))


def _arm(count: int) -> Case:
    """Return a generic arm at random states."""
    system = System(generic_robot(count))
    q, qd = system.random_state(1, STEPS)

    def kinematics(q: Numbers, qd: Numbers, qdd: Numbers) -> tuple[Numbers, ...]:
        return _all_bodies(system, q, qd, qdd)

    def dynamics(q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
        kinematics(q, qd, qdd)
        return system.inverse_dynamics(q, qd, qdd)

    return Case((q, qd, np.random.default_rng(2).normal(size=qd.shape)), kinematics, dynamics)


def _charmie() -> Case:
    """Return the robot with its loops and springs, from the motions of its actuators in the validation motion."""
    system = load("charmie_complete").fixed({})
    springs, torques = spring_law(system), system.function("hybrid_dynamics", driven=ACTUATORS, forces=False)
    motion = validation_motion(np.linspace(0.0, DURATION, STEPS))
    steps = tuple(np.stack([m[k] for m in motion.values()], axis=-1) for k in range(3))
    last = [system.assemble()]

    def closed(x: Numbers, v: Numbers, a: Numbers) -> Closed:
        given = {name: (x[k], v[k], a[k]) for k, name in enumerate(motion)}
        found = closed_motion(system, given, guess=last[0])
        last[0] = found.q  # the next step begins here
        return found

    def kinematics(x: Numbers, v: Numbers, a: Numbers) -> tuple[Numbers, ...]:
        return _all_bodies(system, *closed(x, v, a))

    def dynamics(x: Numbers, v: Numbers, a: Numbers) -> Numbers:
        q, qd, qdd = closed(x, v, a)
        _all_bodies(system, q, qd, qdd)
        return torques(q, qd, qdd, springs(q))[1]

    return Case(steps, kinematics, dynamics)


def _all_bodies(system: System, q: Numbers, qd: Numbers, qdd: Numbers) -> tuple[Numbers, ...]:
    return system.poses(q), system.twists(q, qd), system.twist_rates(q, qd, qdd)


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _difference(count: int, case: Case, torques: Numbers) -> float:
    """Return the difference of some steps' torques from the explicit matrices' torques, relative to the largest."""
    mechanism, some, worst = generic_robot(count), slice(None, None, max(1, STEPS // 5)), 0.0
    for q, qd, qdd, tau in zip(*(x[some] for x in case.steps), torques[some], strict=True):
        dense = denoc.equations(mechanism, q, qd).torque(qdd)
        worst = max(worst, float(np.abs(tau - dense).max() / np.abs(dense).max()))
    return worst


def _actuator_difference(torques: Numbers) -> float:
    """Return the difference of CHARMIE's actuators from those by the paper's formulas, relative to the largest."""
    mechanism = load("charmie_complete").mechanism
    labels = axis_labels(mechanism, 1)
    paper = by_formulas(mechanism, validation_motion(np.linspace(0.0, DURATION, STEPS))).torques
    apart = max(np.abs(torques[:, labels.index(name)] - x).max() for name, x in paper.items())
    return float(apart / max(np.abs(x).max() for x in paper.values()))


def _linear(function: str, word: str) -> Check:
    """Check that each additional body costs the same number of operations."""
    counts = [cost(generic_robot(n), function) for n in (2, 4, 6)]
    steps = {(b.M - a.M, b.A - a.A) for a, b in pairwise(counts)}
    found = "; ".join(f"{n}: {c}" for n, c in zip((2, 4, 6), counts, strict=True))
    states = f"the cost of {word} grows linearly with the number of bodies of an arm"
    return Check(states, found, len(steps) == 1, Source.STATED)


ENTRIES = (Entry("goncalves2023-table-5", "Goncalves2023", "time of 1000 steps of four robots", table_5),)
