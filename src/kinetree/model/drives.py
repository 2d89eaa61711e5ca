"""Actuators, electric motors and named states of a mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from .. import joints as joint_kinds
from .._support.checks import plain
from ..errors import ModelError, at, below, brief, part_at, unknown_name
from .mechanism import Mechanism
from .part_fields import check_name
from .parts import GROUND, Body, Joint

T = TypeVar("T")

Numbers = tuple[float, ...]
Named = tuple[tuple[str, Numbers], ...]


@dataclass(frozen=True)
class Actuator:
    """A drive with a transmission: the force p = gain u + bias . (1, l, dl/dt) under a control u acts as tau = gear p.

    `gear` has a number per degree of freedom of the joint, l = gear . q is the displacement of the actuator. A torque
    motor has no bias; a position servo has gain = k and bias = (0, -k, -c), so that u is the desired l. `control` and
    `force` are bounds (lower, upper) of u and p, empty for none.
    """

    name: str
    joint: str
    gear: Numbers = (1.0,)
    gain: float = 1.0
    bias: Numbers = (0.0, 0.0, 0.0)
    control: Numbers = ()
    force: Numbers = ()

    def __post_init__(self) -> None:
        """Read the numbers."""
        check_name(self.name, "actuator")
        where = part_at("actuator", self.name)
        object.__setattr__(self, "gain", _number(self.gain, below(where, "gain")))
        for key, counts in (("gear", None), ("bias", (3,)), ("control", (0, 2)), ("force", (0, 2))):
            object.__setattr__(self, key, _numbers(getattr(self, key), below(where, key), counts))
        for key in ("control", "force"):
            bounds = getattr(self, key)
            if bounds and not bounds[0] <= bounds[1]:
                raise ModelError(
                    f"the lower bound {bounds[0]:g} is above {bounds[1]:g}",
                    where=below(where, key),
                    remedy="give (lower, upper)",
                )


COPPER = 0.00393
"""The relative rise of the resistance of copper [1/K] above ROOM."""
ROOM = 25.0
"""The temperature at which resistances are given [C]."""


@dataclass(frozen=True)
class Motor:
    """An electric motor with a gear on a joint: its law between voltage, current and torque.

    With the speed w = gear qd of its shaft: u = R i + L di/dt + k w, shaft torque T = k i - friction sign(w) - viscous
    w, torque of the joint gear T efficiency while the motor delivers power, and gear T / efficiency while it brakes.
    `torque_constant` k [N m/A = V s/rad], `resistance` R [Ohm] at 25 C, `inductance` L [H], `gear` [1, or rad/m],
    `friction` [N m] and `viscous` [N m s/rad] at the shaft. `current` [A] and `voltage` [V] are its limits. The inertia
    of the rotor is the armature of the joint, gear^2 J, or that of the motor of an elastic joint, on which it acts.

    With an inductance, the current is a state: the velocity of the joint "NAME.circuit". `thermal_resistances` [K/W]
    and `thermal_times` [s] are those of the winding to the housing and of the housing to the surroundings, with the
    temperature `ambient` [C].
    """

    name: str
    joint: str
    torque_constant: float
    resistance: float
    inductance: float = 0.0
    gear: float = 1.0
    efficiency: float = 1.0
    friction: float = 0.0
    viscous: float = 0.0
    current: float = math.inf
    voltage: float = math.inf
    thermal_resistances: Numbers = ()
    thermal_times: Numbers = ()
    max_temperature: float = 155.0
    ambient: float = ROOM

    def __post_init__(self) -> None:
        """Read the numbers, and refuse impossible ones."""
        check_name(self.name, "motor")
        where = part_at("motor", self.name)
        for key in (f.name for f in fields(self) if f.name not in ("name", "joint", *THERMAL)):
            label, given = below(where, key), getattr(self, key)
            x = math.inf if key in LIMITS and given == math.inf else _number(given, label)
            positive = key in ("torque_constant", "resistance", "gear", "efficiency", *LIMITS)
            if (x < 0.0 and key not in ("ambient", "max_temperature")) or (x == 0.0 and positive):
                remedy = "give a number above zero" if positive else "give zero or more"
                raise ModelError(f"{key} is {x:g}", where=label, remedy=remedy)
            if key == "efficiency" and x > 1.0:
                raise ModelError(f"efficiency is {x:g}", where=label, remedy="give at most 1, such as 0.85 for 85 %")
            object.__setattr__(self, key, x)
        for key in THERMAL:
            label = below(where, key)
            object.__setattr__(self, key, _numbers(getattr(self, key), label, (0, 2)))
            if any(x <= 0.0 for x in getattr(self, key)):
                raise ModelError(f"{key} are {getattr(self, key)}", where=label, remedy="give numbers above zero")
        if len(self.thermal_resistances) != len(self.thermal_times):
            raise ModelError(
                "thermal resistances and times belong together",
                where=where,
                remedy="give both, of the winding and of the housing, or leave both out",
            )
        if self.max_temperature <= self.ambient:
            raise ModelError(
                f"max_temperature is {self.max_temperature:g} C, and ambient {self.ambient:g} C",
                where=where,
                remedy="give a largest temperature above that of the surroundings",
            )

    @property
    def circuit(self) -> str:
        """The name of the joint whose velocity is the current of a motor with an inductance."""
        return f"{self.name}.circuit"


LIMITS = ("current", "voltage")
THERMAL = ("thermal_resistances", "thermal_times")
"""Fields of a motor that may be infinite, and those with a number for the winding and one for the housing."""


def shaft_joint(mechanism: Mechanism, joint: str) -> str:
    """Return the joint on which a drive of a joint acts: the motor before an elastic joint, or the joint itself."""
    before = f"{joint}.motor"
    elastic = mechanism.joint(joint).elastic is not None
    return before if elastic and any(j.name == before for j in mechanism.joints) else joint


def with_circuits(
    bodies: Sequence[Body], joints: Sequence[Joint], motors: Sequence[Motor]
) -> tuple[list[Body], list[Joint]]:
    """Return bodies and joints with a circuit for each motor with an inductance that has none yet."""
    known, out_bodies, out_joints = {j.name for j in joints}, [*bodies], [*joints]
    for motor in motors:
        if motor.inductance and motor.circuit not in known:
            known.add(motor.circuit)
            out_bodies.append(Body(motor.circuit))
            circuit = Joint(motor.circuit, "circuit", GROUND, motor.circuit, damping=(motor.resistance,))
            out_joints.append(replace(circuit, armature=(motor.inductance,)))
    return out_bodies, out_joints


@dataclass(frozen=True)
class Keyframe:
    """A named state: coordinates and velocities by joint name, controls by actuator name.

    Joints without coordinates are neutral, and those without velocities at rest.
    """

    name: str
    q: Named = ()
    qd: Named = ()
    control: Named = ()

    def __post_init__(self) -> None:
        """Read names and numbers."""
        check_name(self.name, "keyframe")
        for key in ("q", "qd", "control"):
            where = below(part_at("keyframe", self.name), key)
            given = getattr(self, key)
            pairs = given.items() if hasattr(given, "items") else given
            if not isinstance(pairs, Iterable) or isinstance(pairs, str):
                raise ModelError(
                    f"{brief(given)} where numbers by name belong", where=where, remedy='give {"hip": 0.3}'
                )
            object.__setattr__(self, key, tuple((str(name), _numbers(x, where, None)) for name, x in pairs))


def check_drives(mechanism: Mechanism) -> None:
    """Refuse actuators, motors and keyframes with equal names, of unknown joints, or with wrong counts of numbers."""
    joints = {j.name: joint_kinds.kind(j.kind) for j in mechanism.joints}
    sorts = (("actuator", mechanism.actuators), ("motor", mechanism.motors), ("keyframe", mechanism.keyframes))
    for sort, parts in sorts:
        for k, part in enumerate(parts):
            if part.name in {other.name for other in parts[:k]}:
                raise ModelError(f"the {sort} name {part.name!r} is used twice", remedy="rename one of them")
    for actuator in mechanism.actuators:
        where = part_at("actuator", actuator.name)
        kind = _known("joint", actuator.joint, joints, below(where, "joint"))
        _count(actuator.gear, kind.NV, below(where, "gear"), "one number per degree of freedom of the joint")
        if kind.NQ != kind.NV and actuator.bias[1]:
            raise ModelError(
                f"the force depends on the displacement of {actuator.joint!r}, whose coordinates are a quaternion",
                where=below(where, "bias"),
                remedy="leave bias[1] zero",
            )
    shafts: dict[str, str] = {}
    for motor in mechanism.motors:
        where = below(part_at("motor", motor.name), "joint")
        kind = _known("joint", motor.joint, joints, where)
        if (kind.NQ, kind.NV) != (1, 1) or kind.UNITS[0] == "C":
            raise ModelError(
                f"a motor drives a joint with one coordinate; {motor.joint!r} is {mechanism.joint(motor.joint).kind}",
                where=where,
                remedy="name a revolute, prismatic or helical joint",
            )
        elastic = mechanism.joint(motor.joint).elastic
        if elastic is not None and elastic.ratio != 1.0 and elastic.ratio != motor.gear:
            raise ModelError(
                f"its gear is {motor.gear:g}, and the ratio of the elastic joint {motor.joint!r} {elastic.ratio}",
                where=below(part_at("motor", motor.name), "gear"),
                remedy="make them equal, or leave out the ratio and give the inertia at the joint's side of the gear",
            )
        other = shafts.setdefault(shaft_joint(mechanism, motor.joint), motor.name)
        if other != motor.name:
            raise ModelError(
                f"the motor {other!r} drives {motor.joint!r} already", where=where, remedy="give a joint one motor"
            )
    drives = dict.fromkeys(a.name for a in mechanism.actuators)
    for keyframe in mechanism.keyframes:
        where = part_at("keyframe", keyframe.name)
        for key, what in (("q", "NQ"), ("qd", "NV")):
            for name, numbers in getattr(keyframe, key):
                kind = _known("joint", name, joints, below(where, key))
                _count(numbers, getattr(kind, what), below(where, key), f"those of joint {name!r}")
        for name, numbers in keyframe.control:
            _known("actuator", name, drives, below(where, "control"))
            _count(numbers, 1, below(where, "control"), f"one control of actuator {name!r}")


def listed_drives(given: object, kind: type, sort: str) -> tuple[Any, ...]:
    """Return actuators or keyframes as a tuple, or raise ModelError."""
    out = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(x, kind) for x in out):
        what = f"{brief(given)} where a list of kt.{kind.__name__} belongs"
        raise ModelError(what, where=at(sort), remedy="put the parts in brackets")
    return out


def _known(what: str, name: str, known: dict[str, T], where: str) -> T:
    if name not in known:
        raise unknown_name(what, name, known, where=where)
    return known[name]


def _count(numbers: Numbers, count: int, where: str, what: str) -> None:
    if len(numbers) != count:
        raise ModelError(f"{len(numbers)} numbers", where=where, remedy=f"give {count}, {what}")


def _number(x: object, where: str) -> float:
    found = plain(x)
    if found is None or not math.isfinite(found):
        raise ModelError(f"{brief(x)} is not a finite number", where=where, remedy="give a number")
    return found


def _numbers(given: object, where: str, counts: tuple[int, ...] | None) -> Numbers:
    items = [given] if plain(given) is not None else given
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ModelError(f"{brief(given)} is not a list of numbers", where=where, remedy="give a tuple of numbers")
    out = tuple(_number(x, where) for x in items)
    if counts is not None and len(out) not in counts:
        raise ModelError(f"{len(out)} numbers", where=where, remedy=f"give {counts[-1]}")
    return out
