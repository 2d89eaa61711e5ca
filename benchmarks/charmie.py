"""CHARMIE's dynamics with closed loops, 1000 steps: one call, compared with plain NumPy step by step."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from book import Section
from charmie_plain import PlainCharmie
from kinetree.apps.reproduce.goncalves2023_motion import DURATION, closed_motion, validation_motion
from kinetree.formulations.charmie import ACTUATORS, SHARE, inverse_dynamics
from kinetree.model.axes import axis_labels
from measure import Contender, Figure, agree, interleaved, ratio
from report import Table

STEPS, AGREE = 1000, 1e-7
"""Instants, and the largest relative difference of a force: auxiliary joints have an inertia of 1e-6, or none."""
PRINTED = 7.856
"""Seconds for 1000 steps, as printed in table 5 of [Goncalves2023], on another machine."""


def section(quick: bool) -> Section:
    """Return the times of 1000 steps by each way, and their ratios to plain NumPy."""
    robot = kt.load("charmie_complete").fixed({})
    motion = validation_motion(np.linspace(0.0, DURATION, STEPS))
    steps = [{name: tuple(float(x[k]) for x in m) for name, m in motion.items()} for k in range(STEPS)]
    plain, states = PlainCharmie(robot.mechanism), closed_motion(robot, motion)
    options = {"actuated": ACTUATORS, "forces": True}

    def step_by_step() -> list:
        return [plain.step(step) for step in steps]

    def torques():
        return robot.inverse_dynamics(*states, **options)

    def instants() -> None:
        """Compute one step after the other, each from the position of the one before."""
        q = states.q[0]
        for step in steps:
            position, speed, acceleration = ({name: m[k] for name, m in step.items()} for k in range(3))
            q = robot.driven_motion(position, speed, acceleration, q_guess=q, keep=("q", "tau")).q

    def loads(at=states):
        return robot.loads(at.q, at.qd, qdd=at.qdd, share=SHARE, **options)

    found = step_by_step()
    apart = _agreement(robot, found, torques(), loads())
    times = interleaved(
        {
            "plain": Contender(step_by_step, STEPS),
            "formulas": Contender(lambda: inverse_dynamics(robot.mechanism, motion), STEPS),
            "instants": Contender(instants, STEPS),
            "torques": Contender(torques, STEPS),
            "loads": Contender(loads, STEPS),
            "motion": Contender(lambda: loads(closed_motion(robot, motion)), STEPS),
        },
        2 if quick else 7,
    )
    words = {
        "plain": "plain NumPy, step by step: motion of the actuators to loads at all joints",
        "formulas": "the same formulas, vectorized in NumPy",
        "instants": "motion of the actuators to their torques, one call per step",
        "torques": "one call: torques of the 21 actuators, from states",
        "loads": "one call: torques and loads at all 47 joints, from states",
        "motion": "motion of the actuators to loads at all joints, five calls",
    }
    rows = tuple(
        (text, Figure.of(times[name]).times(1e-9 * STEPS).text(), ratio(times["plain"], times[name]).text())
        for name, text in words.items()
    )
    note = (
        f"Validation motion of [Goncalves2023], {STEPS} instants, one thread. The plain program follows the paper's "
        "equations (5)-(43) body by body, as a competent user would write it; the paper prints "
        f"{PRINTED} s for its own on a Ryzen 5 5600X. `loads` distributes the forces of overconstrained loops as "
        f"(36)-(43) do. All agree to {apart:.0e}, relative. Geometry that is not printed is ours."
    )
    columns = ("way", f"seconds for {STEPS} steps", "ratio to plain NumPy")
    ratios = {name: ratio(times["plain"], times[name]).median for name in times}
    headline = (
        f"1000 steps with loops in one call are {ratios['torques']:.0f} times as fast as plain NumPy (torques), "
        f"{ratios['loads']:.0f} times with loads at all joints."
    )
    return Section("CHARMIE with closed loops", headline, (Table("1000 steps of CHARMIE", columns, rows, note),))


def _agreement(robot: kt.System, plain: list, torques: np.ndarray, loads) -> float:
    """Return the largest difference of torques and of forces at joints from those of the plain program."""
    labels = axis_labels(robot.mechanism, 1)
    expected = np.array([[torque[name] for name in ACTUATORS] for torque, _ in plain])
    mine = [labels.index(name) for name in ACTUATORS]
    found = [agree("torques", x[:, mine], expected, AGREE) for x in (torques, loads.tau)]
    for name in ("joint_3", "joint_4", "joint_5", "joint_12a"):
        forces = np.array([force[name][0] for _, force in plain])
        found.append(agree(name, loads.at(name)[:, 3:], forces, AGREE))
    return max(found)
