"""Legged robots with a floating trunk on hard contacts: standing, and walking with a gait.

The controller is simple: torques of the planned motion with its ground forces, as functions of time, and a spring and a
damper in every joint of the legs that follow the planned angles. The trunk is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._support.checks import positive, whole
from ...algebra.scalars import Numbers, Scalar
from ...errors import InputError
from ...loading import load
from ...model.contacts import Contact, Surface
from ...model.mechanism import Mechanism, resolve_parts
from ...model.parts import Placement
from ...results.trajectory import Trajectory
from ...simulation.acting.controllers import PD, Sum
from ...simulation.acting.instants import Instant
from ...simulation.acting.references import Constant, Reference
from ...simulation.simulate import simulate
from ...system import System
from .gaits import POINT, POSE, FourierMotion, FramePath, Gait, Motion, joint_motion

# --- Measures of a walking run: distance, work of the drives, cost of transport, and how well it repeats ---


@dataclass(frozen=True)
class Transport:
    """What a run took: distance of the center of mass [m], weight [N], and works of the drives [J].

    `work` is the net work, `spent` the integral of the absolute power of every joint: drives do not store the energy
    that they absorb. `dissipated` [J] is the net work less the change of the energy of the robot: the loss in impacts,
    slip and passive forces.
    """

    distance: float
    weight: float
    work: float
    spent: float
    dissipated: float

    @property
    def cost(self) -> float:
        """The cost of transport: energy spent per weight and distance."""
        return self.spent / (self.weight * abs(self.distance)) if self.distance else float("inf")


def transport(run: Trajectory, axis: int, *, start: float = 0.0) -> Transport:
    """Return the measures of a single run along an axis of the ground (0, 1, 2), from a time `start` [s] on.

    Integrals take straight lines between the samples. Give as many of these as the motion needs, some hundred
    in a step.
    """
    whole(axis, "axis", least=0, most=2)
    if run.shape or run.control is None:
        raise InputError("transport measures a single run under control; choose one of a batch by run.runs()")
    rows = np.flatnonzero(run.t >= start - 1e-12)
    if len(rows) < 2:
        raise InputError(f"the run ends at t = {run.t[-1]:g} s; start the measures before, not at {start:g} s")
    t = run.t[rows]
    power = np.asarray(run.control)[rows] * run.qd[rows]
    center = _center(run, rows[[0, -1]])[:, axis]
    work = float(np.trapezoid(power.sum(axis=-1), t))
    return Transport(
        distance=float(center[1] - center[0]),
        weight=weight(run.system.mechanism, run.constant_parameters),
        work=work,
        spent=float(np.trapezoid(np.abs(power).sum(axis=-1), t)),
        dissipated=work - float(run["energy"][rows[-1]] - run["energy"][rows[0]]),
    )


def weight(mechanism: Mechanism, parameters: Numbers | None = None) -> float:
    """Return the weight of a mechanism [N], at its own values of free parameters or at others."""
    values = mechanism.values(None if parameters is None else np.asarray(parameters).tolist())
    mass = sum(float(resolve_parts(body.mass, values)) for body in mechanism.bodies)
    return mass * float(np.linalg.norm(np.asarray(resolve_parts(tuple(mechanism.gravity), values), dtype=float)))


def advances(run: Trajectory, axis: int, period: float) -> Numbers:
    """Return the distances that the center of mass moves along an axis of the ground in all whole periods [m]."""
    rows = _rows(run, axis, period)
    return np.diff(_center(run, rows)[:, axis])


def repetition_error(run: Trajectory, axis: int, period: float) -> Numbers:
    """Return the largest differences between the states of successive periods, without the distance along the axis.

    One value per pair of periods, over all samples in them; coordinates in rad and m, velocities in rad/s and m/s.
    """
    rows = _rows(run, axis, period)
    count = rows[1] - rows[0]
    states = np.concatenate([run.q, run.qd], axis=-1)[: rows[-1]].reshape(len(rows) - 1, count, -1).copy()
    states[..., axis] -= states[:, :1, axis]
    return np.abs(np.diff(states, axis=0)).max(axis=(1, 2))


def _center(run: Trajectory, rows: np.ndarray) -> Numbers:
    """Return the positions of the center of mass [n, 3] at samples."""
    more: dict[str, Any] = {} if run.parameters is None else {"parameters": run.constant_parameters}
    return run.system.center_of_mass(run.q[rows], **more)


def _rows(run: Trajectory, axis: int, period: float) -> np.ndarray:
    """Return the samples at the ends of all whole periods, for an axis of the ground."""
    whole(axis, "axis", least=0, most=2)
    count = int(np.floor((run.t[-1] - run.t[0]) / positive(period, "period") + 1e-9))
    ends = run.t[0] + period * np.arange(count + 1)
    rows = np.clip(np.searchsorted(run.t, ends - 1e-9 * period), 0, len(run.t) - 1)
    if count < 1 or np.abs(run.t[rows] - ends).max() > 1e-6 * period or len(set(np.diff(rows))) > 1:
        raise InputError(
            f"the run has no samples at whole periods of {period:g} s; choose output times that include them"
        )
    return rows


ABOVE = 1e-7
"""The height above the ground at which runs start [m]: above rounding of the coordinates, below what can be seen."""
SAMPLES = 144
"""Times in a period at which the joint angles of a gait are computed."""
HARMONICS = 24
"""Of the series of the joint angles: the rest is below 1e-4 rad."""


@dataclass(frozen=True, eq=False)
class LegTorques:
    """Torques of the last joints, in the legs, as a reference in time; none of the trunk."""

    torques: Reference

    def torque(self, now: Instant) -> list[Scalar]:
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
        """The names of all driven joints, which are in the legs."""
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
            angles, torques = (FourierMotion.fit(x, gait.period, HARMONICS) for x in series)
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


# --- Robots of the library on their feet, with a gait for each: planar biped, quadruped and hexapod ---
#
# The mechanisms come from ReDySim. Feet, friction, drives and gaits are ours.

GROUND = Surface("plane", placement=Placement.from_euler("x", (-np.pi / 2,)))
"""The level ground, with y upward."""
FRICTION = 0.7
"""Coulomb's coefficient, as in the examples of ReDySim."""
HEEL = 0.075
"""Half the length of the biped's feet [m]: the ankle is in the middle."""
ROTOR = 0.02
"""Inertia of the biped's drives at their joints [kg m^2], as geared motors have. Without it, its feet of 0.2 kg
are too light for stiff drives and steps of 0.25 ms."""

TROT = Gait(0.5, 0.6, 0.4, 0.06, {"foot_a": 0.0, "foot_b": 0.5, "foot_c": 0.5, "foot_d": 0.0})
"""Diagonal legs of the quadruped together."""
TRIPOD = Gait(
    0.6, 0.55, 0.3, 0.05, {"foot_a": 0.0, "foot_b": 0.5, "foot_c": 0.5, "foot_d": 0.0, "foot_e": 0.0, "foot_f": 0.5}
)
"""Three legs of the hexapod together: front and rear of one side, and the middle of the other."""
WALK = Gait(1.0, 0.65, 0.2, 0.05, {"foot_a": 0.0, "foot_b": 0.5})
"""One leg of the biped after the other, with both feet on the ground for 0.15 s in between."""
TROT_SIDES = {"foot_a": "foot_b", "foot_c": "foot_d"}
TRIPOD_SIDES = {"foot_a": "foot_b", "foot_c": "foot_d", "foot_e": "foot_f"}
"""Feet and their counterparts on the other side."""


def quadruped(friction: float = FRICTION) -> LeggedRobot:
    """Return the quadruped on four point feet, its trunk 0.5 m above the ground; it walks along z."""
    bent = float(np.arccos(0.25 / 0.3))
    leg = (-np.pi / 2, bent, -2.0 * bent)
    return _on_points(load("quadruped"), "abcd", leg, ahead=2, friction=friction, rows=(3, 4, 5), gains=(600.0, 12.0))


def hexapod(friction: float = FRICTION) -> LeggedRobot:
    """Return the hexapod on six point feet, its trunk 0.5 m above the ground; it walks along x."""
    bent = float(np.arccos(0.25 / 0.3))
    leg = (bent - np.pi / 2, -2.0 * bent)
    return _on_points(load("hexapod"), "abcdef", leg, ahead=0, friction=friction, rows=(3, 4), gains=(600.0, 12.0))


def planar_biped(friction: float = FRICTION) -> LeggedRobot:
    """Return the biped in the plane, its trunk on a planar joint, each foot on heel and toe; it walks along x."""
    mechanism = load("biped").mechanism
    joints = tuple(
        replace(joint, kind="planar", axis=(0.0, 0.0, 1.0))
        if joint.kind == "free"
        else replace(joint, armature=(ROTOR,))
        for joint in mechanism.joints
    )
    system = System(replace(mechanism, name="planar_biped", joints=joints))
    bent = float(np.arccos(0.45 / 0.5))
    leg = (bent, -2.0 * bent, bent + np.pi / 2)
    contacts = tuple(
        Contact(f"{end}_{side}", f"foot_{side}", placement=Placement((x, 0.0, 0.0)), surface=GROUND, friction=friction)
        for side in "ab"
        for end, x in (("heel", -HEEL), ("toe", HEEL))
    )
    standing = np.array([0.0, 1.15, -np.pi / 2, *leg, *leg])
    rows = (2, 3, 4)
    return LeggedRobot(
        system, "base", ("foot_a", "foot_b"), contacts, standing, 0, 1, 1500.0, 30.0, trunk_rows=rows, foot_rows=rows
    )


def _on_points(system: System, sides: str, leg, *, ahead: int, friction: float, rows, gains) -> LeggedRobot:
    """Return a robot whose shanks end in point feet, with all legs in the same posture."""
    feet = tuple(f"foot_{side}" for side in sides)
    contacts = tuple(
        Contact(
            f"foot_{side}", f"shank_{side}", placement=Placement((0.3, 0.0, 0.0)), surface=GROUND, friction=friction
        )
        for side in sides
    )
    standing = np.concatenate([system.neutral()[:7], np.tile(leg, len(sides))])
    standing[1] = 0.5
    return LeggedRobot(system, "base", feet, contacts, standing, ahead, 1, *gains, foot_rows=rows)
