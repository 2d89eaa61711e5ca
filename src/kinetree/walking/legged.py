"""Legged robots with a floating trunk on hard contacts: standing, and walking with a gait under PD control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..algebra.arrays import Numbers
from ..model.contacts import Contact
from ..results.trajectory import Trajectory
from ..simulation.control.controllers import PD
from ..simulation.references import Constant
from ..simulator import simulate
from ..system import System
from .frame_motions import POINT, POSE, FramePath, Motion, joint_motion
from .gait_cycles import Gait
from .series import FourierMotion

ABOVE = 1e-7
"""The height above the ground at which runs start [m]: above rounding of the coordinates, below what can be seen."""
SAMPLES = 144
"""Times in a period at which the joint angles of a gait are computed."""
HARMONICS = 24
"""Of the series of the joint angles: the rest is below 1e-4 rad."""


@dataclass(frozen=True, eq=False)
class LeggedRobot:
    """A robot on feet: its System with a `trunk` on the first joint, frames of the `feet`, and their `contacts`.

    `standing` are the coordinates with the feet on the ground. It walks along the axis `ahead` of the ground (0, 1, 2
    for x, y, z), and `up` points upward. `trunk_rows` and `foot_rows` are the rows of the FramePaths that determine
    its motion. Every joint of the legs has a drive with the gains k [N m/rad] and c [N m s/rad].
    """

    system: System
    trunk: str
    feet: tuple[str, ...]
    contacts: tuple[Contact, ...]
    standing: Numbers
    ahead: int
    up: int
    k: float
    c: float
    trunk_rows: tuple[int, ...] = POSE
    foot_rows: tuple[int, ...] = POINT

    @cached_property
    def drives(self) -> tuple[str, ...]:
        """The names of all driven joints: those of the legs."""
        return tuple(joint.name for joint in self.system.joints[1:])

    @cached_property
    def weight(self) -> float:
        """The weight [N]."""
        mechanism = self.system.mechanism
        mass = sum(float(body.mass) for body in mechanism.bodies)  # type: ignore[arg-type]
        return float(mass * np.linalg.norm(np.asarray(mechanism.gravity, dtype=float)))

    def stand(self, duration: float, *, dt: float = 1e-3, **options) -> Trajectory:
        """Return a run in which the drives hold the standing posture."""
        q = self.standing.copy()
        q[self.up] += ABOVE
        hold = Constant(q[self._legs].tolist())
        return self._run(
            q, np.zeros(self.system.nv), PD(self.k, self.c, hold, joints=self.drives), duration, dt, options
        )

    def walk(self, gait: Gait, *, cycles: int, dt: float = 1e-3, samples: int = 100, **options) -> Trajectory:
        """Return a run of so many cycles of a gait, from its first instant, with `samples` in each cycle."""
        times = np.linspace(0.0, cycles * gait.period, cycles * samples + 1)
        return self._run(*self.start(gait), self.control(gait), times, dt, options)

    def start(self, gait: Gait) -> tuple[Numbers, Numbers]:
        """Return q and qd at the first instant of a gait, a little above the ground."""
        q, qd, _ = self.motion(gait, np.zeros(1))
        q[0, self.up] += ABOVE
        return q[0], qd[0]

    def control(self, gait: Gait) -> PD:
        """Return the controller of a gait: every joint of the legs follows its angle."""
        return PD(self.k, self.c, self.reference(gait), joints=self.drives)

    def motion(self, gait: Gait, t: Numbers) -> Motion:
        """Return q, qd and qdd at times [nt] with the trunk and the feet exactly where the gait has them."""
        system, standing = self.system, self.standing
        still = np.zeros((len(t), 3))
        travel = [still.copy() for _ in range(3)]
        travel[0][:, self.ahead] = gait.speed * t
        travel[1][:, self.ahead] = gait.speed
        paths = [self._path(self.trunk, travel, self.trunk_rows)]
        for foot in self.feet:
            along, up = gait.foot(foot, t)
            moved = [x.copy() for x in travel]
            for k in range(3):
                moved[k][:, self.ahead] += along[k]
                moved[k][:, self.up] += up[k]
            paths.append(self._path(foot, moved, self.foot_rows))
        return joint_motion(system, paths, standing)

    def reference(self, gait: Gait) -> FourierMotion:
        """Return the joint angles of the legs in the gait as a periodic reference."""
        t = np.arange(SAMPLES) * (gait.period / SAMPLES)
        return FourierMotion.fitted(self.motion(gait, t)[0][:, self._legs], gait.period, HARMONICS)

    def _path(self, frame: str, moved: Sequence[Numbers], rows: tuple[int, ...]) -> FramePath:
        T = self.system.pose(self.standing, frame)
        return FramePath(frame, (T[:3, 3] + moved[0], moved[1], moved[2]), T[:3, :3], rows)

    @cached_property
    def _legs(self) -> slice:
        return slice(self.system.mechanism.q_slices[0].stop, None)

    def _run(self, q, qd, control, times, dt, options) -> Trajectory:
        options = {"contacts": self.contacts, "method": "moreau", "progress": False} | options
        if options["method"] == "moreau":
            options["dt"] = dt
        span = {"duration": times} if np.ndim(times) == 0 else {"times": times}
        return simulate(self.system, q, qd, control=control, **span, **options)
