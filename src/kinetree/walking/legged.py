"""Legged robots with a floating trunk on hard contacts: standing, and walking with a gait.

The controller is simple: torques of the planned motion with its ground forces, as functions of time, and a spring and a
damper in every joint of the legs that follow the planned angles. The trunk is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..model.contacts import Contact
from ..numbers import whole
from ..results.trajectory import Trajectory
from ..simulation.control.controllers import PD, Sum
from ..simulation.instants import Instant
from ..simulation.references import Constant, Reference
from ..simulator import simulate
from ..system import System
from .frame_motions import POINT, POSE, FramePath, Motion, joint_motion
from .gait_cycles import Gait
from .series import FourierMotion
from .transport import weight

ABOVE = 1e-7
"""The height above the ground at which runs start [m]: above rounding of the coordinates, below what can be seen."""
SAMPLES = 144
"""Times in a period at which the joint angles of a gait are computed."""
HARMONICS = 24
"""Of the series of the joint angles: the rest is below 1e-4 rad."""


@dataclass(frozen=True, eq=False)
class LegTorques:
    """Torques of the last joints, those of the legs, as a reference in time; none of the trunk."""

    torques: Reference

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        legs = self.torques(now.t)[0]
        return [0.0] * (now.mechanism.nv - len(legs)) + list(legs)


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
        return weight(self.system.mechanism)

    def stand(self, duration: float, *, dt: float = 1e-3, **options) -> Trajectory:
        """Return a run in which the drives hold the standing posture, with the torques that carry the weight."""
        q, still = self.standing.copy(), np.zeros(self.system.nv)
        carried = self._carried(q, still, still)
        q[self.up] += ABOVE
        hold = PD(self.k, self.c, Constant(q[self._legs].tolist()), joints=self.drives)
        return self._run(q, still, Sum([LegTorques(Constant(carried.tolist())), hold]), duration, dt, options)

    def walk(self, gait: Gait, *, cycles: int, dt: float = 1e-3, samples: int = 100, **options) -> Trajectory:
        """Return a run of so many cycles of a gait, from its first instant, with `samples` in each cycle."""
        count = whole(cycles, "cycles")
        times = np.linspace(0.0, count * gait.period, count * whole(samples, "samples") + 1)
        return self._run(*self.start(gait), self.control(gait), times, dt, options)

    def start(self, gait: Gait) -> tuple[Numbers, Numbers]:
        """Return q and qd at the first instant of a gait, a little above the ground."""
        q, qd, _ = self.motion(gait, np.zeros(1))
        q[0, self.up] += ABOVE
        return q[0], qd[0]

    def control(self, gait: Gait) -> Sum:
        """Return the controller of a gait: the torques of the planned motion, and every joint follows its angle."""
        planned = self.planned(gait)
        return Sum([LegTorques(planned[1]), PD(self.k, self.c, planned[0], joints=self.drives)])

    def planned(self, gait: Gait) -> tuple[FourierMotion, FourierMotion]:
        """Return the joint angles of the legs in a gait and their torques, as periodic references; computed once.

        Where the feet on the ground cannot carry the planned motion, as two point feet do not keep a trunk from
        tipping, the torques are those that come nearest.
        """
        key = repr(gait)
        if key not in self._plans:
            t = np.arange(SAMPLES) * (gait.period / SAMPLES)
            q, qd, qdd = self.motion(gait, t)
            series = (q[:, self._legs], self._carried(q, qd, qdd))
            angles, torques = (FourierMotion.fitted(x, gait.period, HARMONICS) for x in series)
            self._plans[key] = angles, torques
        return self._plans[key]

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

    def _carried(self, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
        """Return the torques of the legs [..., n] that carry the robot in a motion, with forces at the feet."""
        found = self.system.ground_forces(q, qd, qdd, contacts=self.contacts, actuated=self.drives)
        return found.tau[..., self.system.mechanism.v_slices[0].stop :]

    @cached_property
    def _plans(self) -> dict[str, tuple[FourierMotion, FourierMotion]]:
        return {}

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
