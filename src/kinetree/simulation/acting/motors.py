"""Electric motors: their law on any scalar, control by voltage, current or torque, and control of elastic joints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..._support.checks import positive, real_array
from ...algebra.scalars import Numbers, Scalar, absolute
from ...compiler.ir.program import Array
from ...dynamics.force_laws import SLIP_SPEED, SOFT
from ...errors import InputError, argument, brief, unknown_name
from ...model.axes import axis_labels, entries
from ...model.drives import Motor, shaft_joint
from ...model.flexible import motor_name, with_rigid_joints, without_circuits
from ...model.mechanism import Mechanism, kept_with_mechanism, resolve_parts
from .drives import evaluate_reference
from .instants import Controller, Instant
from .references import Reference
from .smooth import clip, smooth_sign, where

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ...system import System

COMMANDS = ("torque", "current", "voltage")


# --- The law of a motor: i is the current [A], speed that of the joint [rad/s, m/s], torque that of the joint ---


def joint_torque(motor: Motor, i: Scalar, speed: Scalar) -> Scalar:
    """Return the torque of the joint under a current: gear (k i - friction) with the losses of the gear."""
    slip = smooth_sign(speed, SLIP_SPEED)
    shaft = motor.torque_constant * i - motor.friction * slip - motor.viscous * motor.gear * speed
    return motor.gear * (shaft - absolute(shaft) * _loss(motor, shaft * slip) * slip)


def motor_current(motor: Motor, torque: Scalar, speed: Scalar) -> Scalar:
    """Return the current of a torque of the joint: the inverse of `joint_torque`."""
    slip = smooth_sign(speed, SLIP_SPEED)
    shaft = torque / motor.gear  # of the sign of the torque of the shaft: the losses of the gear are less than it
    way = where(shaft < 0.0, -1.0, 1.0)
    shaft = shaft / (1.0 - way * _loss(motor, shaft * slip) * slip)
    return (shaft + motor.friction * slip + motor.viscous * motor.gear * speed) / motor.torque_constant


def back_emf(motor: Motor, speed: Scalar) -> Scalar:
    """Return the voltage k w that a motor induces at a speed of the joint."""
    return motor.torque_constant * motor.gear * speed


def _loss(motor: Motor, power: Scalar) -> Scalar:
    """Return the part of the shaft's torque that the gear takes, where the motor delivers power and where it brakes."""
    eta = motor.efficiency
    return 0.0 if eta == 1.0 else where(power < 0.0, 1.0 / eta - 1.0, 1.0 - eta)


@dataclass(frozen=True)
class MotorControl:
    """Control of the motors of a mechanism, within their limits of current and voltage.

    `control` is a controller of torques, as for joints without motors: each motor gets the current torque / (gear k),
    and losses of motor and gear are not compensated. With `command` "current" [A] or "voltage" [V], it is a number, one
    per motor, numbers by name (zero for others), a reference, or a controller whose values at the joints are commands.

    Without an inductance, the current follows at once. With one, currents and torques are followed with the time
    constant `response` [s] of a current loop. A voltage is reduced so that the current stays within its limit.
    """

    control: Controller
    _: KW_ONLY
    command: str = "torque"
    response: float = 1e-3

    def __post_init__(self) -> None:
        """Check the command."""
        if self.command not in COMMANDS:
            raise InputError(
                f"the command of MotorControl is {brief(self.command)}; give one of {', '.join(COMMANDS)}",
                path=("command",),
            )
        if self.command == "torque" and not hasattr(self.control, "torque"):
            raise InputError(
                f"MotorControl has {brief(self.control)} as control; give a controller of torques, such as kt.PD, or "
                'command="current" or "voltage"',
                path=("control",),
            )
        if getattr(self.control, "outside", False) or hasattr(self.control, "motions"):
            raise InputError(
                f"MotorControl cannot contain {type(self.control).__name__}, whose torques are computed outside of it",
                path=("control",),
            )
        object.__setattr__(self, "response", positive(self.response, argument("response", "MotorControl")))

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The further inputs of the controller."""
        return tuple(getattr(self.control, "inputs", ()))

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of the joints, and the voltages of circuits less those that the motors induce."""
        m = now.mechanism
        if not m.motors:
            raise InputError(f"{m.name!r} has no motors; add them by kt.with_motors, or give the controller alone")
        given, commands = self._commands(now)
        tau = list(given)
        for motor, command in zip(m.motors, commands, strict=True):
            (at,) = entries(m, shaft_joint(m, motor.joint), 1)
            speed = now.qd[at]
            induced, R, most = back_emf(motor, speed), motor.resistance, motor.current
            if self.command == "torque":
                command = command / (motor.gear * motor.torque_constant)
            if motor.inductance:
                (of,) = entries(m, motor.circuit, 1)
                i = now.qd[of]
                if self.command == "voltage":
                    u = _within(command, induced - R * most, induced + R * most, most)
                else:
                    wanted = _within(command, -most, most, most)
                    u = induced + R * i + (motor.inductance / self.response) * (wanted - i)
                tau[of] = _within(u, -motor.voltage, motor.voltage, motor.voltage) - induced
            elif self.command == "voltage":
                u = _within(command, induced - R * most, induced + R * most, most)
                i = (_within(u, -motor.voltage, motor.voltage, motor.voltage) - induced) / R
            else:
                u = induced + R * _within(command, -most, most, most)
                i = (_within(u, -motor.voltage, motor.voltage, motor.voltage) - induced) / R
            tau[at] = joint_torque(motor, i, speed)
        return tau

    def _commands(self, now: Instant) -> tuple[list[Scalar], list[Scalar]]:
        """Return torques of joints without motors, and the command of each motor."""
        m = now.mechanism
        if hasattr(self.control, "torque"):
            hidden = self.command == "torque"
            values = _torques(self.control, now, *_mechanical(m)) if hidden else list(self.control.torque(now))
            labels = [entries(m, shaft_joint(m, motor.joint), 1)[0] for motor in m.motors]
            rest = values if self.command == "torque" else [0.0] * m.nv
            return rest, [values[k] for k in labels]
        names = [motor.name for motor in m.motors]
        if callable(self.control):
            reference = cast(Reference, self.control)
            return [0.0] * m.nv, list(evaluate_reference(reference, now.t, len(names))[0])
        if isinstance(self.control, Mapping):
            for name in self.control:
                if name not in names:
                    raise unknown_name("motor", str(name), names)
            return [0.0] * m.nv, [float(self.control.get(name, 0.0)) for name in names]
        values = np.asarray(self.control, dtype=float)
        if values.shape not in ((), (len(names),)):
            raise InputError(
                f"the control of MotorControl has shape {values.shape}; give a number, or one per motor: "
                f"{', '.join(names[:10])}",
                path=("control",),
            )
        return [0.0] * m.nv, np.broadcast_to(values, (len(names),)).tolist()


def _within(x: Scalar, lower: Scalar, upper: Scalar, limit: float) -> Scalar:
    """Return x between two bounds, if there is a limit."""
    return clip(x, lower, upper) if math.isfinite(limit) else x


# --- Elastic joints: controllers of the rigid robot at the motors, and the start at rest ---


@kept_with_mechanism
def _mechanical(mechanism: Mechanism) -> tuple[Mechanism, list[int], list[int]]:
    """Return the mechanism without circuits, and the entries of its coordinates and velocities in q and qd."""
    plain = without_circuits(mechanism)
    q, v = ([k for joint in plain.joints for k in entries(mechanism, joint.name, which)] for which in (0, 1))
    return plain, q, v


def _torques(controller: Controller, now: Instant, seen: Mechanism, q: list[int], v: list[int]) -> list[Scalar]:
    """Return the torques of a controller that sees another mechanism, with some entries of q and qd of this one."""
    own = [now.q[k] for k in q], [now.qd[k] for k in v]
    inner = Instant(seen, now.t, *own, now.inputs().get("parameters"), now.given, now.dtype)
    found = list(controller.torque(inner))
    if len(found) != len(v):
        raise InputError(f"the controller returned {len(found)} torques; expected {len(v)}, those of {_names(seen)}")
    tau: list[Scalar] = [0.0] * now.mechanism.nv
    for k, x in zip(v, found, strict=True):
        tau[k] = x
    return tau


def _names(mechanism: Mechanism) -> str:
    return ", ".join(axis_labels(mechanism, 1))


@kept_with_mechanism
def _rigid(mechanism: Mechanism) -> tuple[Mechanism, list[int], list[int]]:
    """Return the mechanism with rigid joints, and where its coordinates and velocities are measured: at the motors."""
    rigid, known = with_rigid_joints(mechanism), {j.name for j in mechanism.joints}
    measured = [
        motor_name(j) if motor_name(j) in known and _is_elastic(mechanism, j.name) else j.name
        for j in rigid.joints
        if j.kind != "fixed"
    ]
    q, v = ([k for name in measured for k in entries(mechanism, name, which)] for which in (0, 1))
    return rigid, q, v


def _is_elastic(mechanism: Mechanism, name: str) -> bool:
    return mechanism.joint(name).elastic is not None


@dataclass(frozen=True)
class AtMotors:
    """A controller of the robot with rigid joints, which measures at the motors and acts on them.

    Positions and velocities of an elastic joint are those of its motor, and the dynamics are those of the robot with
    rigid joints, whose armatures are the rotors (`kt.with_rigid_joints`). References and gains are those of that robot.
    """

    controller: Controller

    def __post_init__(self) -> None:
        """Check the controller."""
        inner = self.controller
        if not hasattr(inner, "torque") or getattr(inner, "outside", False) or hasattr(inner, "motions"):
            raise InputError(
                f"AtMotors takes a compiled controller, such as kt.PDGravity, not {brief(inner)}",
                path=("controller",),
            )

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The further inputs of the controller."""
        return tuple(getattr(self.controller, "inputs", ()))

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        return _torques(self.controller, now, *_rigid(now.mechanism))


def elastic_start(system: System, q: ArrayLike) -> Numbers:
    """Return coordinates [..., nq] of a robot with elastic joints at rest, from those of the robot with rigid joints.

    Every motor stands where its spring holds the weight: the joints have the positions q, and are in equilibrium while
    the motors do not move. Circuits have no charge.
    """
    m = system.mechanism
    if m.closures:
        raise InputError(f"elastic_start: {m.name!r} has loops; use kt.equilibrium, with the motors held")
    rigid, at, _ = _rigid(m)
    given = real_array(q, "q")
    if given.shape[-1:] != (rigid.nq,):
        raise InputError(
            f"elastic_start: q has shape {given.shape}; expected [..., {rigid.nq}], the coordinates of the robot with "
            "rigid joints"
        )
    elastic = [j for j in m.joints if j.elastic is not None]
    out = np.zeros((*given.shape[:-1], m.nq))
    out[..., at] = given
    pairs = [(entries(m, motor_name(j), 0)[0], entries(m, j.name, 0)[0], entries(m, j.name, 1)[0]) for j in elastic]
    for motor, joint, _ in pairs:
        out[..., joint] = out[..., motor]
    held = np.asarray(system.gravity_torque(out))
    values = m.values()
    for (motor, joint, label), j in zip(pairs, elastic, strict=True):
        spring = next(f for f in m.forces if f.name == f"{j.name}.spring")
        numbers = resolve_parts(dict(spring.coefficients).get("stiffness"), values)
        play = resolve_parts(dict(spring.coefficients).get("backlash", 0.0), values)
        out[..., motor] = out[..., joint] + _twist(held[..., label], float(numbers), float(play))
    return out


def _twist(torque: Numbers, stiffness: float, backlash: float) -> Numbers:
    """Return the twist of a transmission under a torque: the inverse of its law."""
    h = np.abs(torque) / stiffness
    soft = SOFT * backlash
    y = np.where(h < soft / 2, np.sqrt(2.0 * soft * h), h + soft / 2) if backlash else h
    return np.sign(torque) * (y + backlash / 2 * (torque != 0.0))
