"""Time steps of a quadruped that stands on four feet: native batches, compared with MuJoCo's own batches."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

import kinetree as kt
from book import Section
from measure import Contender, Disagreement, Figure, interleaved, ratio
from report import Table

STEP, STEPS, ROBOTS, FEWER = 1e-3, {"standing": 100, "landing": 200}, 2048, 128
"""The length of a step [s], the steps of a call, and the robots of our batch and of MuJoCo's."""
GAINS = 80.0, 3.0
"""Stiffness [N m/rad] and damping [N m s/rad] of the joints' control."""
STANCE = (0.0, 0.7, -1.4)
"""The angles of hip, thigh and shank of each leg [rad]."""
FRICTION, RADIUS = 0.8, 0.02
NEAR = 5e-3
"""The largest difference of heights after settling [m]: MuJoCo's contacts are soft."""
SETTLED = 1.0

LEG = """
<body name="hip_{name}" pos="{x} {y} 0"><joint name="hip_{name}" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="0.5" diaginertia="0.0006 0.0008 0.0007"/>
  <body name="thigh_{name}" pos="0 {side} 0"><joint name="thigh_{name}" axis="0 1 0"/>
    <inertial pos="0 0 -0.1" mass="0.9" diaginertia="0.0046 0.0045 0.0009"/>
    <body name="shank_{name}" pos="0 0 -0.22"><joint name="shank_{name}" axis="0 1 0"/>
      <inertial pos="0 0 -0.1" mass="0.2" diaginertia="0.0011 0.0011 0.0001"/>
      <geom name="foot_{name}" type="sphere" size="{radius}" pos="0 0 -0.22" mass="0"/>
    </body></body></body>"""
LEGS = {"fl": (0.2, 0.1, 0.06), "fr": (0.2, -0.1, -0.06), "rl": (-0.2, 0.1, 0.06), "rr": (-0.2, -0.1, -0.06)}


def model_text() -> str:
    """Return the quadruped as MJCF: a trunk, four legs of three joints, feet that are spheres, and a floor."""
    legs = "".join(LEG.format(name=name, x=x, y=y, side=side, radius=RADIUS) for name, (x, y, side) in LEGS.items())
    joints = [f"{part}_{name}" for name in LEGS for part in ("hip", "thigh", "shank")]
    drives = "".join(f'<position joint="{j}" kp="{GAINS[0]}" kv="{GAINS[1]}"/>' for j in joints)
    return f"""<mujoco model="quadruped"><compiler angle="radian" inertiafromgeom="false"/>
<option timestep="{STEP}" cone="elliptic"/><default><geom friction="{FRICTION} 0 0" condim="3"/></default>
<worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="trunk"><freejoint/><inertial pos="0 0 0" mass="6" diaginertia="0.03 0.09 0.1"/>{legs}</body>
</worldbody><actuator>{drives}</actuator></mujoco>"""


class Quadrupeds:
    """The robot in both libraries, with random starts above the floor."""

    def __init__(self) -> None:
        """Read the model; MuJoCo keeps its own integrator and solver, Euler and Newton."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "quadruped.xml"
            path.write_text(model_text())
            self.system = kt.load(path)
            self.model = mujoco.MjModel.from_xml_path(str(path))
        feet = [
            kt.Contact(f"foot_{name}", f"shank_{name}", "sphere", (RADIUS,), (0.0, 0.0, -0.22), friction=FRICTION)
            for name in LEGS
        ]
        joints = [j.name for j in self.system.mechanism.joints if j.kind == "revolute"]
        stance = np.array(STANCE * 4)
        self.options: dict[str, Any] = {
            "contacts": feet,
            "control": kt.PD(*GAINS, kt.Hold(stance), joints=joints),
            "method": "moreau",
            "dt": STEP,
        }
        rng = np.random.default_rng(4)
        self.q0 = np.tile(self.system.neutral(), (ROBOTS, 1))
        self.q0[:, 7:] = stance + rng.normal(scale=0.05, size=(ROBOTS, 12))
        self.q0[:, 2] = 0.38 + rng.uniform(0.0, 0.03, size=ROBOTS)
        self.qd0 = rng.normal(scale=0.1, size=(ROBOTS, self.system.nv))
        self.stance = stance

    def ours(self, steps: int, start: tuple[np.ndarray, np.ndarray]) -> kt.Trajectory:
        """Return runs of so many steps from given states."""
        return kt.simulate(self.system, *start, times=[0.0, steps * STEP], **self.options)

    def peers(self) -> Batch:
        """Return MuJoCo's batch on one thread, at the same start."""
        batch = Batch(self.model, nsim=FEWER, nthread=1)
        batch.bind("ctrl")[:] = self.stance
        self.restart(batch)
        return batch

    def restart(self, batch: Batch) -> None:
        """Set MuJoCo's batch to the start: quaternions begin with w, and velocities of the trunk with linear ones."""
        q, qd = self.q0[:FEWER], self.qd0[:FEWER]
        batch.bind("qpos")[:] = np.concatenate([q[:, :3], q[:, [6, 3, 4, 5]], q[:, 7:]], axis=1)
        batch.bind("qvel")[:] = np.concatenate([qd[:, 3:6], qd[:, :3], qd[:, 6:]], axis=1)

    def settled(self) -> tuple[tuple[np.ndarray, np.ndarray], Batch, float, float]:
        """Return both batches after settling, the largest difference of heights, and the largest residual."""
        count = round(SETTLED / STEP)
        run = self.ours(count, (self.q0, self.qd0))
        batch = self.peers()
        batch.step(nstep=count)
        difference = float(np.abs(np.median(run.q[:, -1, 2]) - np.median(batch.bind("qpos")[:, 2])))
        if not difference <= NEAR:
            raise Disagreement(f"the heights of the trunk differ by {difference:.1e} m, more than {NEAR:.1e} m")
        return (run.q[:, -1], run.qd[:, -1]), batch, difference, max(run.contact.residuals.values())


def section(quick: bool) -> Section:
    """Return steps per second of both, standing and landing, and the ratios."""
    robots = Quadrupeds()
    standing, batch, difference, residual = robots.settled()
    falling, starts = robots.peers(), {"standing": standing, "landing": (robots.q0, robots.qd0)}

    def fall() -> None:
        robots.restart(falling)
        falling.step(nstep=STEPS["landing"])

    contenders = {
        f"ours, {how}": Contender(lambda how=how: robots.ours(STEPS[how], starts[how]), STEPS[how] * ROBOTS)
        for how in STEPS
    }
    contenders |= {
        "MuJoCo's batch, standing": Contender(lambda: batch.step(nstep=STEPS["standing"]), STEPS["standing"] * FEWER),
        "MuJoCo's batch, landing": Contender(fall, STEPS["landing"] * FEWER),
    }
    times = interleaved(contenders, 3 if quick else 15)
    rates = {name: Figure.of([1e9 / x for x in values]) for name, values in times.items()}
    ratios = {how: ratio(times[f"MuJoCo's batch, {how}"], times[f"ours, {how}"]) for how in STEPS}
    million = rates["ours, standing"].median
    rows = [(name, figure.text(4)) for name, figure in rates.items()]
    verdicts = [
        ("steps per second, ours, standing", f"{million:.3g}", f">= 1e6: {'met' if million >= 1e6 else 'missed'}"),
        *(
            (f"ratio to MuJoCo's batch, {how}", x.text(), f">= 20: {'met' if x.median >= 20 else 'missed'}")
            for how, x in ratios.items()
        ),
    ]
    note = (
        f"A quadruped of 18 degrees of freedom with four feet on a floor, friction {FRICTION}, PD control of the "
        f"joints, steps of {STEP:g} s, one core. Standing: {STEPS['standing']} steps per call on four feet. Landing: "
        f"{STEPS['landing']} steps per call, from the fall to the stand. Ours: the method moreau, {ROBOTS} robots, "
        f"hard contact with the exact cone; largest residual {residual:.1e} of the velocities. MuJoCo: `mujoco.batch`, "
        f"{FEWER} robots on one thread, its integrator and solver with their settings, elliptic cones, soft contact. "
        f"After a second the median heights of the trunks differ by {difference * 1e3:.2f} mm."
    )
    return Section(
        "Time steps with contact",
        f"{million / 1e6:.2f} million time steps of a standing quadruped per second on one core, "
        f"{ratios['standing'].median:.0f} times MuJoCo's batch, and {ratios['landing'].median:.0f} times in landing.",
        (
            Table("Rates of a quadruped", ("contender", "steps/s"), tuple(rows), note),
            Table("Targets of contact", ("figure", "measured", "target"), tuple(verdicts), "On one core."),
        ),
    )
