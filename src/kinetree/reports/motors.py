"""Loads of motors, elastic joints and flexible bodies over a run: currents, temperatures, twists, deflections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..dynamics.force_laws import transmission
from ..joints import kind
from ..model.axes import axis_labels, entries
from ..model.drives import COPPER, ROOM, Motor, shaft_joint
from ..model.flexible import is_modes, modal_entries
from ..model.mechanism import resolve_parts
from ..results.trajectory import Trajectory
from ..simulation.acting.joint_forces import Transmission
from ..simulation.acting.motors import back_emf, motor_current
from ..simulation.monitors import spline
from .loads import drive_efforts, own_elements, twist_of
from .measures import Extreme, extreme, highest, rms, work


@dataclass(frozen=True)
class MotorLoad:
    """The load of an electric motor over a run, from the torque and the speed of its joint.

    `electrical` is the energy that it takes from its supply, `copper` the heat of its winding, `drag` what friction and
    gear take, and `mechanical` the work on the joint [J]: electrical = copper + drag + mechanical + change of the
    energy of the inductance. `warm` is the largest temperature of the winding [C] in one run from the temperature of
    the surroundings, and `hot` that of the run repeated without end: infinite if the copper heats faster than the
    housing cools, None without thermal data.
    """

    name: str
    drive: str
    motor: Motor = field(repr=False)
    peak_current: Extreme
    rms_current: float
    peak_voltage: Extreme
    peak_power: Extreme
    electrical: float
    copper: float
    drag: float
    mechanical: float
    warm: Extreme | None
    hot: float | None
    t: Numbers = field(repr=False)
    current: Numbers = field(repr=False)
    voltage: Numbers = field(repr=False)
    temperature: Numbers | None = field(repr=False)

    @property
    def over(self) -> tuple[str, ...]:
        """The limits that the run exceeds: "current", "voltage", "temperature"."""
        found = (
            ("current", abs(self.peak_current.value), self.motor.current),
            ("voltage", abs(self.peak_voltage.value), self.motor.voltage),
            ("temperature", self.hot if self.hot is not None else -np.inf, self.motor.max_temperature),
        )
        return tuple(name for name, x, most in found if x > most * (1.0 + BEYOND))


BEYOND = 1e-4
"""The part of a limit by which it must be exceeded: a current loop ends some 1e-6 above, by the tolerance of a run."""


@dataclass(frozen=True)
class TwistLoad:
    """The load of an elastic joint over a run: the torque of its spring and damper on the joint, and its twist.

    `lost` is the energy that its damper takes [J]. `stored` is the largest energy of its spring [J].
    """

    name: str
    joint: str
    unit: str
    peak: Extreme
    rms: float
    twist: Extreme
    stored: float
    lost: float
    t: Numbers = field(repr=False)
    torque: Numbers = field(repr=False)


def motor_loads(run: Trajectory) -> tuple[MotorLoad, ...]:
    """Return the loads of the motors of a mechanism over a single run."""
    m = run.system.mechanism
    efforts, labels = drive_efforts(run), axis_labels(m, 1)
    out = []
    for motor in m.motors:
        (at,) = entries(m, shaft_joint(m, motor.joint), 1)
        torque, speed = efforts[:, at], run.qd[:, at]
        i = np.asarray(motor_current(motor, torque, speed), dtype=float)
        u = motor.resistance * i + back_emf(motor, speed)
        if motor.inductance and run.control is not None:
            (of,) = entries(m, motor.circuit, 1)
            i = run.qd[:, of]
            u = run.control[:, of] + back_emf(motor, speed)
        elif motor.inductance and len(run) > 1:
            u = u + motor.inductance * spline(run.t, i).derivative()(run.t)
        out.append(_motor_load(motor, labels[at], run.t, i, u, torque * speed))
    return tuple(out)


def _motor_load(motor: Motor, drive: str, t: Numbers, i: Numbers, u: Numbers, power: Numbers) -> MotorLoad:
    copper, taken = motor.resistance * i * i, u * i
    heat, electrical, mechanical = _integral(t, copper), _integral(t, taken), _integral(t, power)
    magnetic = 0.5 * motor.inductance * float(i[-1] ** 2 - i[0] ** 2)
    warmth = winding_temperature(motor, t, i) if motor.thermal_times else None
    return MotorLoad(
        motor.name, drive, motor, extreme(t, i), rms(t, i), extreme(t, u), highest(t, taken), electrical, heat,
        electrical - heat - magnetic - mechanical, mechanical,
        None if warmth is None else highest(t, warmth[0]), None if warmth is None else warmth[1],
        t, i, u, None if warmth is None else warmth[0],
    )  # fmt: skip


def _integral(t: Numbers, power: Numbers) -> float:
    delivered, taken = work(t, power)
    return delivered - taken


def winding_temperature(motor: Motor, t: Numbers, current: Numbers) -> tuple[Numbers, float]:
    """Return the temperature of the winding [C, nt] in a run that starts cold, and its largest in the run repeated.

    With the heat R i^2 (1 + COPPER (T - ROOM)) of the winding, and the resistances and heat capacities c = time /
    resistance of winding and housing, both temperatures follow linear equations whose coefficients depend on i^2
    alone. Over each step the mean of i^2 counts, with straight lines between samples; the equations are then solved
    exactly.
    """
    if len(t) == 1:
        return np.full(1, motor.ambient), motor.ambient
    R1, R2 = motor.thermal_resistances
    c1, c2 = (time / resistance for time, resistance in zip(motor.thermal_times, (R1, R2), strict=True))
    a, b = current[:-1], current[1:]
    heat = motor.resistance * (a * a + a * b + b * b) / 3.0
    steps = _heat_steps(
        np.diff(t),
        (heat * COPPER - 1.0 / R1) / c1,
        1.0 / (R1 * c1),
        1.0 / (R1 * c2),
        -(1.0 / R1 + 1.0 / R2) / c2,
        heat * (1.0 + COPPER * (motor.ambient - ROOM)) / c1,
    )
    paths = np.empty((len(t), 3, 3))
    paths[0] = np.eye(3)
    for k, step in enumerate(steps):
        paths[k + 1] = step @ paths[k]
    once, whole = paths[:, 0, 2], paths[-1]
    if np.abs(np.linalg.eigvals(whole[:2, :2])).max() >= 1.0:
        return motor.ambient + once, np.inf
    start = np.linalg.solve(np.eye(2) - whole[:2, :2], whole[:2, 2])
    again = paths[:, 0, :2] @ start + once
    return motor.ambient + once, motor.ambient + float(again.max())


def _heat_steps(h: Numbers, a: Numbers, b: float, c: float, d: float, rate: Numbers) -> Numbers:
    """Return the steps [n, 3, 3] of (x, y, 1) with x' = a x + b y + rate and y' = c x + d y, exact for constant a.

    The eigenvalues of [[a, b], [c, d]] are real and apart, because b c > 0.
    """
    apart = np.sqrt((a - d) ** 2 + 4.0 * b * c)
    roots = np.stack([a + d + apart, a + d - apart]) / 2.0
    out = np.zeros((len(h), 3, 3))
    out[:, 2, 2] = 1.0
    for root, other, gap in ((roots[0], roots[1], apart), (roots[1], roots[0], -apart)):
        part = np.stack([np.stack([a - other, 0.0 * a + b]), np.stack([0.0 * a + c, d - other])]) / gap
        safe = np.where(root == 0.0, 1.0, root)
        over = np.where(root == 0.0, h, np.expm1(safe * h) / safe)
        out[:, :2, :2] += np.moveaxis(part * np.exp(root * h), -1, 0)
        out[:, :2, 2] += (part[:, 0] * over * rate).T
    return out


def twist_loads(run: Trajectory) -> tuple[TwistLoad, ...]:
    """Return the loads of the transmissions of a mechanism over a single run."""
    m = run.system.mechanism
    values, out = m.values(run.constant_parameters), []
    for name, force in own_elements(run):
        if not isinstance(force, Transmission):
            continue
        _, x, rate = twist_of(run, force)
        numbers = resolve_parts((force.stiffness, force.damping, force.backlash), values)
        torque, energy = (np.asarray(y, dtype=float) for y in transmission(x, rate, *numbers))
        elastic = np.asarray(transmission(x, 0.0 * rate, *numbers)[0], dtype=float)
        unit = {"m": "N"}.get(_unit(run, force.joint), "N m")
        out.append(
            TwistLoad(
                name, force.joint, unit, extreme(run.t, torque), rms(run.t, torque), extreme(run.t, x),
                float(energy.max()), _integral(run.t, (torque - elastic) * rate), run.t, torque,
            )
        )  # fmt: skip
    return tuple(out)


@dataclass(frozen=True)
class Deflection:
    """How far a node of a flexible body moves by deformation over a run [m].

    `own` is its largest distance from its place at rest in the frame at the body's joint, `total` the one from where it
    would be if no body bent. `part` is that of the modal coordinate of the body that comes nearest to the largest valid
    one: above 1, deflections are not small. It is None for a body that states no valid ones.
    """

    name: str
    body: str
    own: Extreme
    total: Extreme
    mode: str
    part: Extreme | None
    t: Numbers = field(repr=False)
    values: Numbers = field(repr=False)


def deflection(run: Trajectory, frame: str) -> Numbers:
    """Return how far a frame is from where it would be with undeformed bodies and the same joints [m], [..., nt]."""
    now, straight = _poses(run, frame)
    return np.linalg.norm(now[..., :3, 3] - straight[..., :3, 3], axis=-1)


def _poses(run: Trajectory, frame: str) -> tuple[Numbers, Numbers]:
    """Return the poses of a frame, and those with undeformed bodies."""
    q = run.q.copy()
    q[..., modal_entries(run.system.mechanism, 0)] = 0.0
    more: dict[str, Any] = {} if run.parameters is None else {"parameters": run.parameters_at_samples}
    return run.system.pose(run.q, frame, **more), run.system.pose(q, frame, **more)


def deflections(run: Trajectory, joints: set[str]) -> tuple[Deflection, ...]:
    """Return the deflections of all nodes of the flexible bodies that are on some joints, over a single run."""
    m, out = run.system.mechanism, []
    carried = {j.child: j.name for j in m.joints}
    for modes, own in zip(m.joints, m.q_slices, strict=True):
        if not is_modes(modes) or own.stop == own.start or carried[modes.parent] not in joints:
            continue
        mode, part, e = "", None, np.abs(run.q[:, own])
        if modes.limits.upper:
            ratios = e / np.array(modes.limits.upper)
            k = int(ratios.max(axis=0).argmax())
            of: Any = kind(modes.kind)
            mode, part = of.names[k], highest(run.t, ratios[:, k])
        frames = _poses(run, modes.parent)
        for node in (j.child for j in m.joints if j.parent == modes.child):
            poses = _poses(run, node)
            now, rest = (_seen_from(frame, pose) for frame, pose in zip(frames, poses, strict=True))
            values = np.linalg.norm(now - rest, axis=-1)
            total = highest(run.t, np.linalg.norm(poses[0][:, :3, 3] - poses[1][:, :3, 3], axis=-1))
            out.append(Deflection(node, modes.parent, highest(run.t, values), total, mode, part, run.t, values))
    return tuple(out)


def _seen_from(frame: Numbers, pose: Numbers) -> Numbers:
    """Return the places of poses in other frames."""
    return np.einsum("tji,tj->ti", frame[:, :3, :3], pose[:, :3, 3] - frame[:, :3, 3])


def _unit(run: Trajectory, joint: str) -> str:
    return kind(run.system.mechanism.joint(joint).kind).UNITS[0]
