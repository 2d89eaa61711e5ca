"""[Goncalves2023]: pictures of CHARMIE, and a position and a force of its validation motion, figures 6, 8, 12, 13."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import pi
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.scalars import Numbers
from ...formulations.charmie import ACTUATORS, SHARE, CharmieDynamics, inverse_dynamics
from ...formulations.linear_actuators import Motion
from ...loading import load
from ...model.axes import axis_labels
from ...model.mechanism import Named, resolve_parts
from ...results.trajectory import Trajectory
from ...system import System
from .entry import Check, Entry, Outcome, Source, write_csv

# --- The motion with which [Goncalves2023] 6 validates its model of CHARMIE, and all joints of the robot during it.

DURATION, SWITCH = 5.0, 2.5
"""The length of the motion, and the time at which all accelerations change their sign [s]."""
TURNING, DRIVING, EXTENDING = pi / 9, 0.03, 0.003
"""Accelerations of revolute joints [rad/s^2], of the base and of the linear actuators of the torso [m/s^2]."""
START = 0.4
"""The length of the linear actuators at the beginning [m]; all other joints begin at 0."""


class Closed(NamedTuple):
    """Coordinates [nt, nq], velocities and accelerations [nt, nv] of all joints."""

    q: Numbers
    qd: Numbers
    qdd: Numbers


def validation_motion(times: ArrayLike) -> dict[str, Motion]:
    """Return position, velocity and acceleration of each actuator: first backward, from 2.5 s on slowing down."""
    t = np.asarray(times, dtype=float)
    late = t >= SWITCH
    since = t - SWITCH
    speed = np.where(late, since - SWITCH, -t)
    path = np.where(late, since**2 / 2 - SWITCH * since - SWITCH**2 / 2, -(t**2) / 2)
    sign = np.where(late, 1.0, -1.0)
    out = {}
    for name in ACTUATORS:
        rate = {"joint_1": DRIVING, "joint_2": DRIVING, "actuator_4": EXTENDING, "actuator_5": EXTENDING}.get(
            name, TURNING
        )
        start = START if name.startswith("actuator") else 0.0
        out[name] = (start + rate * path, rate * speed, rate * sign)
    return out


def closed_motion(
    system: System, motion: dict[str, Motion], *, parameters: Named | None = None, guess: Numbers | None = None
) -> Closed:
    """Return all joints of `charmie_complete` from its actuators, by Newton's method on the equations of its loops.

    It begins at the guess [nq]; by default at the assembled reference position.
    """
    labels = axis_labels(system.mechanism, 0)
    held = [labels.index(name) for name in motion]
    given = np.stack([x for x, _, _ in motion.values()], axis=-1)
    start = system.assemble(parameters=parameters) if guess is None else guess
    q = np.broadcast_to(start, (*given.shape[:-1], system.nq)).copy()
    q[..., held] = given
    q = system.assemble(q, list(motion), parameters=parameters)
    qd = system.consistent_speeds(q, {name: x for name, (_, x, _) in motion.items()}, parameters=parameters)
    rates = {name: x for name, (_, _, x) in motion.items()}
    return Closed(q, qd, system.consistent_accelerations(q, qd, rates, parameters=parameters))


def spring_law(system: System) -> Callable[[Numbers], Numbers]:
    """Return the forces of CHARMIE's springs in their prismatic joints as a function of q: [..., nv], by (35)."""
    values, labels = system.mechanism.values(), axis_labels(system.mechanism, 1)
    at = [labels.index(force.name) for force in system.mechanism.forces]
    given = [dict(resolve_parts(force.coefficients, values)) for force in system.mechanism.forces]
    rate, free, preload = (np.array([c[key] for c in given]) for key in ("stiffness", "free_length", "preload"))

    def forces(q: Numbers) -> Numbers:
        out = np.zeros(q.shape)
        out[..., at] = rate * (free - q[..., at]) + preload
        return out

    return forces


SAMPLES, FEW = 501, 11
"""The number of instants in figures, and of those whose loads at all joints are computed by both ways."""
SIZE, SHOWN = (900, 640), 1.3
"""Pixels of a picture, and the instant of figure 11b [s]."""
OURS = ("the geometry of actuators, springs and linkage: our own, of the library's charmie_complete",)
PICTURE = "the figure is a picture without numbers"
CURVES = (*OURS, "numbers of the curves")


@dataclass(frozen=True, eq=False)
class Validation:
    """The validation motion: times, states of the complete robot and of its main tree, and results by the formulas."""

    t: Numbers
    robot: System
    tree: System
    states: Closed
    main: Closed
    paper: CharmieDynamics


@cache
def validation(samples: int) -> Validation:
    """Return the motion at evenly spaced times, in three ways that share no code."""
    t = np.linspace(0.0, DURATION, samples)
    robot, tree, motion = load("charmie_complete"), load("charmie"), validation_motion(t)
    states = closed_motion(robot, motion)
    labels = axis_labels(robot.mechanism, 0)
    pick = [labels.index(name) for name in axis_labels(tree.mechanism, 0)]
    main = Closed(*(x[:, pick] for x in states))
    return Validation(t, robot, tree, states, main, inverse_dynamics(robot.mechanism, motion, times=t))


def figure_6(folder: Path) -> Outcome:
    """Draw the main bodies at the reference position."""
    made = validation(SAMPLES)
    poses = np.asarray(made.tree.poses(made.main.q))
    gap = 0.0
    for k, body in enumerate(made.tree.bodies):
        R, O = made.paper.poses[body.name]  # noqa: E741 - the paper's letter
        gap = max(gap, float(np.abs(poses[:, k, :3, :3] - R).max()), float(np.abs(poses[:, k, :3, 3] - O).max()))
    headings = ("body", "x [m]", "y [m]", "z [m]")
    rows = [(b.name, *map(float, poses[0, k, :3, 3])) for k, b in enumerate(made.tree.bodies)]
    checks = (
        Check(
            "the recursion (15)-(19) places all main bodies",
            f"poses equal to {gap:.1e} over the motion",
            gap <= 1e-12,
            Source.STATED,
        ),
        *_agrees(made, "poses", "all poses"),
    )
    files = (
        _drawn(folder / "goncalves2023_figure_6.png", made.tree, made.main.q[0]),
        write_csv(folder / "goncalves2023_figure_6.csv", headings, rows),
    )
    return Outcome(checks, (), files, ("Links are drawn as rods between their joints.",), unprinted=PICTURE)


def figure_8(folder: Path) -> Outcome:
    """Draw the complete robot at the reference position and at 1.3 s, as in figure 11."""
    made = validation(SAMPLES)
    mechanism = made.robot.mechanism
    kinds = [part.kind for part in (*mechanism.joints, *mechanism.loops)]
    counts = (len(mechanism.bodies), kinds.count("revolute"), kinds.count("prismatic"), kinds.count("fixed"))
    found = made.robot.doctor(made.states.q[0])
    gaps = [np.abs(made.paper.coordinates[n] - made.states.q[:, k]).max() for k, n in enumerate(_labels(made.robot))]
    checks = (
        Check(
            "40 bodies, 34 revolute, 10 prismatic and 3 rigid joints",
            f"{counts[0]} bodies; {counts[1]}, {counts[2]} and {counts[3]} joints, {len(mechanism.loops)} of them cut",
            counts == (40, 34, 10, 3),
            Source.PRINTED,
        ),
        Check("21 degrees of freedom", f"measured mobility {found.mobility}", found.mobility == 21, Source.PRINTED),
        Check(
            "(5)-(14) and (20)-(27) place all bodies in loops",
            f"coordinates equal to those of Newton's method to {max(gaps):.1e} rad or m",
            max(gaps) <= 1e-11,
            Source.STATED,
        ),
    )
    still = made.states.q[0]
    moved = made.states.q[int(np.argmin(np.abs(made.t - SHOWN)))]
    files = (
        _drawn(folder / "goncalves2023_figure_8.png", made.robot, still),
        _drawn(folder / "goncalves2023_figure_8_moving.png", made.robot, moved, SHOWN),
        write_csv(
            folder / "goncalves2023_figure_8.csv",
            ("joint", "q"),
            list(zip(_labels(made.robot), map(float, still), strict=True)),
        ),
    )
    return Outcome(checks, (), files, stand_ins=OURS)


def figure_12(folder: Path) -> Outcome:
    """Draw the position of the left claw during the validation motion."""
    from ...plots import figures

    made = validation(SAMPLES)
    path = np.asarray(made.tree.pose(made.main.q, "claw_a"))[:, :3, 3]
    R, O = made.paper.poses["body_12a"]  # noqa: E741 - the paper's letter
    gap = float(np.abs(path - (O + R @ [0.0, 0.0, 0.1023])).max())
    loops = float(np.abs(path - np.asarray(made.robot.pose(made.states.q, "claw_a"))[:, :3, 3]).max())
    end = float(np.abs(made.main.qd[-1]).max())
    checks = (
        Check("the same point by (15)-(19)", f"{gap:.1e} m apart", gap <= 1e-12, Source.STATED),
        Check("the same point of the robot with its loops", f"{loops:.1e} m apart", loops <= 1e-12),
        *_agrees(made, "claw", "the point"),
        Check(
            "the robot is fully stopped at the end",
            f"largest velocity {end:.1e} rad/s or m/s",
            end <= 1e-14,
            Source.STATED,
        ),
    )
    files = (
        figures.curves(
            folder / "goncalves2023_figure_12.png",
            made.t,
            path,
            names=("x", "y", "z"),
            label="position of $D_{12a}$  [m]",
            heading="[Goncalves2023] figure 12: position of the left claw",
        ),
        write_csv(
            folder / "goncalves2023_figure_12.csv", ("t", "x", "y", "z"), np.column_stack([made.t, path]).tolist()
        ),
    )
    return Outcome(checks, (), files, stand_ins=CURVES)


def figure_13(folder: Path) -> Outcome:
    """Draw the force of body 2 on body 3 during the validation motion."""
    from ...plots import figures

    made = validation(SAMPLES)
    index = [j.name for j in made.tree.joints].index("joint_3")
    wrench = np.asarray(made.tree.reactions(*made.main))[:, index]
    R = np.asarray(made.tree.poses(made.main.q))[:, index, :3, :3]
    force = np.asarray((R @ wrench[:, 3:, None])[..., 0])
    scale = float(np.abs(force).max())
    gap = float(np.abs(force - made.paper.wrenches["joint_3"][:, 3:]).max()) / scale
    checks = (
        Check("the same force by (28)-(43)", f"{gap:.1e} of the largest, {scale:.4g} N", gap <= 1e-12, Source.STATED),
        *_agrees(made, "force", "this force"),
        *_agrees(made, "torques", "the torques of all joints of the main tree"),
        _both_ways(),
    )
    torques = {name: np.abs(x).max() for name, x in made.paper.torques.items()}
    headings = ("actuator", "largest force or torque", "unit")
    rows = [
        (n, f"{x:.4g}", "N" if n in ("joint_1", "joint_2") or "actuator" in n else "N m") for n, x in torques.items()
    ]
    files = (
        figures.panels(
            folder / "goncalves2023_figure_13.png",
            made.t,
            force,
            titles=["along x", "along y", "along z"],
            symbols=["$f_x$", "$f_y$", "$f_z$"],
            units=["N"] * 3,
            heading="[Goncalves2023] figure 13: force of body 2 on body 3",
            columns=3,
        ),
        write_csv(
            folder / "goncalves2023_figure_13.csv", ("t", "x", "y", "z"), np.column_stack([made.t, force]).tolist()
        ),
    )
    notes = (
        "The axes of the printed force are not stated: those of the ground are used. Fingers of a claw move as mirror "
        "images.",
    )
    return Outcome(
        checks, (("Largest forces and torques of the 21 actuators", (headings, *rows)),), files, notes, CURVES
    )


def _both_ways() -> Check:
    """Compare the wrenches at all joints, by the formulas and by closed loops with shared loads."""
    made = validation(FEW)
    loads = made.robot.loads(
        *made.states[:2], qdd=made.states.qdd, actuated=ACTUATORS, share=SHARE, forces=True, parameters={"e": 0.0}
    )
    gaps = [np.abs(loads.at(name, axes="world") - made.paper.wrenches[name]).max() for name in loads.names]
    tau = [np.abs(loads.tau[:, _labels(made.robot).index(n)] - x).max() for n, x in made.paper.torques.items()]
    largest = max(float(np.abs(x).max()) for x in made.paper.wrenches.values())
    worst = float(max(*gaps, *tau)) / largest
    return Check(
        "(35)-(43) are closed loops with shared loads",
        f"the wrenches at all {len(gaps)} joints and {len(tau)} torques equal to {worst:.1e} of the largest",
        worst <= 1e-8,
    )


@cache
def _pinocchio(made: Validation) -> dict[str, float] | None:
    """Return the largest differences from Pinocchio on the main tree, relative ones of forces; None without it."""
    if find_spec("pinocchio") is None:
        return None
    from ...analysis.verify.pinocchio import build, pin

    q, qd, qdd = made.main
    model, carriers, _ = build(made.tree.mechanism)
    data = model.createData()
    ours, poses = np.asarray(made.tree.inverse_dynamics(q, qd, qdd)), np.asarray(made.tree.poses(q))
    reactions = np.asarray(made.tree.reactions(q, qd, qdd))
    claw = np.asarray(made.tree.pose(q, "claw_a"))[:, :3, 3]
    names = [b.name for b in made.tree.bodies]
    third, hand = names.index("body_3"), names.index("body_12a")
    out: dict[str, float] = dict.fromkeys(("poses", "claw", "force", "torques"), 0.0)
    for k in range(len(q)):
        tau = np.array(pin.rnea(model, data, q[k], qd[k], qdd[k]))
        pin.forwardKinematics(model, data, q[k])
        for body, (number, place) in enumerate(carriers):
            there = (data.oMi[number] * place).homogeneous
            out["poses"] = max(out["poses"], float(np.abs(there - poses[k, body]).max()))
        number, place = carriers[hand]
        point = (data.oMi[number] * place).act(np.array([0.0, 0.0, 0.1023]))
        out["claw"] = max(out["claw"], float(np.abs(point - claw[k]).max()))
        force = data.f[carriers[third][0]].linear - reactions[k, third, 3:]
        out["force"] = max(out["force"], float(np.abs(force).max() / np.abs(reactions[k, third]).max()))
        out["torques"] = max(out["torques"], float(np.abs(tau - ours[k]).max() / np.abs(ours[k]).max()))
    return out


def _agrees(made: Validation, key: str, what: str) -> tuple[Check, ...]:
    """Return the comparison with Pinocchio where it is installed."""
    found = _pinocchio(made)
    if found is None:
        return ()
    return (Check(f"Pinocchio on the same tree: {what}", f"equal to {found[key]:.1e}", found[key] <= 1e-10),)


def _drawn(path: Path, system: System, q: Numbers, t: float = 0.0) -> Path:
    """Draw a system at one instant."""
    from ...plots.animation import snapshot

    return snapshot(Trajectory(system, np.full(1, t), q[None], np.zeros((1, system.nv))), path, time=t, size=SIZE)


def _labels(system: System) -> list[str]:
    return axis_labels(system.mechanism, 0)


ENTRIES = (
    Entry("goncalves2023-figure-6", "Goncalves2023", "main bodies of CHARMIE", figure_6),
    Entry("goncalves2023-figure-8", "Goncalves2023", "the complete robot CHARMIE", figure_8),
    Entry("goncalves2023-figure-12", "Goncalves2023", "position of CHARMIE's left claw", figure_12),
    Entry("goncalves2023-figure-13", "Goncalves2023", "force on CHARMIE's base", figure_13),
)
