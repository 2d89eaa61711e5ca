"""[Saha2013] 4.1: torque and fall of a four-bar, figures 17 and 18."""

from __future__ import annotations

from dataclasses import replace
from math import pi
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...formulations.closed_system import closed_equations
from ...loading import load
from ...model.mechanism import resolve_parts
from ...simulation.simulate import simulate
from ...system import System
from .entry import Check, Entry, Outcome, Source, keeps_energy, same_motion, write_csv

SPEED = 1.5 * pi
"""Velocity of the crank [rad/s], as in the initial state of the paper's program; one revolution takes 4/3 s."""
TURN = 2 * pi / SPEED
SAMPLES = 201
LENGTHS, MASSES = (0.038, 0.1152, 0.1152, 0.0895), (1.5, 3.0, 5.0)
"""Lengths [m] of crank, output link, coupler and base, and masses [kg] of the first three, as printed."""
STATE = (
    "the crank's motion and the inertias: 1.5 pi rad/s and slender bars, as in the example of the same four-bar that "
    "comes with the paper's program, ReDySim",
    "numbers of the curves",
)


def crank_motion(arm: System, times: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return q, qd and qdd, each [nt, 3], with the crank rotating at constant velocity."""
    q, out = arm.assemble(), []
    for t in times:
        q = arm.assemble(np.array([SPEED * t, *q[1:]]), ["crank"])
        qd = arm.consistent_speeds(q, {"crank": SPEED})
        out.append((q, qd, arm.consistent_accelerations(q, qd, {"crank": 0.0})))
    q, qd, qdd = (np.array(x) for x in zip(*out, strict=True))
    return q, qd, qdd


def figure_17(folder: Path) -> Outcome:
    """Draw the angle and the torque of the crank over one revolution."""
    from ...plots import figures

    arm, t = load("four_bar"), np.linspace(0.0, TURN, SAMPLES)
    q, qd, qdd = crank_motion(arm, t)
    tau = arm.inverse_dynamics(q, qd, qdd, actuated=["crank"])[:, 0]
    recursion = arm.subsystems("crank")
    apart = float(np.abs(tau - recursion.inverse_dynamics(q, qd, qdd).tau[:, 0]).max())
    power = np.einsum("ti,ti->t", qd, arm.tree.inverse_dynamics(q, qd, qdd))
    work = float(np.abs(tau * SPEED - power).max())
    closed = float(np.abs(tau[0] - tau[-1]))
    checks = (
        _as_printed(arm),
        Check(
            "the torque follows subsystem by subsystem, the determinate one first",
            f"in steps: {'; '.join(map(str, recursion.steps))}; {apart:.1e} N m from that of the whole system",
            apart <= 1e-10 and len(recursion.steps) == 2,
            Source.STATED,
        ),
        Check(
            "multipliers do no work",
            f"the power of the crank equals the power of all bodies to {work:.1e} W",
            work <= 1e-10,
        ),
        Check(
            "the crank rotates fully",
            f"its torque is the same after one revolution to {closed:.1e} N m",
            closed <= 1e-9,
        ),
    )
    columns = np.column_stack([np.degrees(q[:, 0]), tau])
    files = (
        figures.panels(
            folder / "saha2013_figure_17.png",
            t,
            columns,
            titles=["input angle", "torque at joint 1"],
            symbols=[r"$\theta_1$", r"$\tau_1$"],
            units=["deg", "N m"],
            heading="[Saha2013] figure 17: inverse dynamics of a four-bar",
        ),
        write_csv(
            folder / "saha2013_figure_17.csv", ("t", "theta_1", "tau_1"), np.column_stack([t, q[:, 0], tau]).tolist()
        ),
    )
    return Outcome(checks, (), files, stand_ins=STATE)


def figure_18(folder: Path) -> Outcome:
    """Let the four-bar fall and draw its joint angles and rates."""
    from ...plots import figures

    arm = load("four_bar")
    q = arm.assemble()
    qd = arm.consistent_speeds(q, {"crank": SPEED})
    run = simulate(arm, q, qd, times=np.linspace(0.0, TURN, SAMPLES), rtol=1e-12, atol=1e-13, progress=False)
    gap = float(np.abs(arm.closure_residual(run.q)).max())
    mechanism, none = arm.mechanism, np.zeros(arm.nv)
    other = same_motion(
        run,
        lambda t, q, qd: closed_equations(mechanism, q, qd).acceleration(none),
        1e-7,
        by="explicit matrices at both ends of the loop and SciPy's DOP853",
    )
    checks = (
        _as_printed(arm),
        keeps_energy(run),
        Check("the loop stays closed", f"to {gap:.1e} m", gap <= 1e-11),
        replace(
            other, states=f"another program confirms it (SimMechanics there); here {other.states}", source=Source.STATED
        ),
    )
    titles = [f"{word} {k}" for word in ("joint angle", "joint rate") for k in (1, 2, 3)]
    symbols = [rf"$\theta_{k}$" for k in (1, 2, 3)] + [rf"$\dot\theta_{k}$" for k in (1, 2, 3)]
    shown = np.column_stack([np.degrees(run.q), run.qd])
    heading = "[Saha2013] figure 18: free fall of a four-bar"
    names = ("t", *(f"theta_{k}" for k in (1, 2, 3)), *(f"theta_dot_{k}" for k in (1, 2, 3)))
    files = (
        figures.panels(
            folder / "saha2013_figure_18.png",
            run.t,
            shown,
            titles=titles,
            symbols=symbols,
            units=["deg"] * 3 + ["rad/s"] * 3,
            heading=heading,
            columns=3,
        ),
        write_csv(folder / "saha2013_figure_18.csv", names, np.column_stack([run.t, run.q, run.qd]).tolist()),
    )
    notes = ("Joints in the order of the tree: crank, output link, coupler.",)
    return Outcome(checks, (), files, notes, stand_ins=STATE)


def _as_printed(arm: System) -> Check:
    """Compare the printed numbers with the library's mechanism."""
    plain = resolve_parts(arm.mechanism, arm.mechanism.values())
    loop, base = plain.loops[0], plain.joints[1].placement.translation
    on_output = plain.joints[2].placement.translation
    found = (loop.placement_a.translation[0], on_output[0], loop.placement_b.translation[0], abs(base[0]))
    masses = tuple(float(b.mass) for b in plain.bodies)
    text = f"lengths {', '.join(f'{x:g}' for x in found)} m, masses {', '.join(f'{m:g}' for m in masses)} kg"
    return Check(
        "crank, output link, coupler and base are 0.038, 0.1152, 0.1152 and 0.0895 m long; 1.5, 3 and 5 kg",
        text,
        found == LENGTHS and masses == MASSES,
        Source.DATA,
    )


ENTRIES = (
    Entry("saha2013-figure-17", "Saha2013", "torque of a four-bar's crank", figure_17),
    Entry("saha2013-figure-18", "Saha2013", "free fall of a four-bar", figure_18),
)
