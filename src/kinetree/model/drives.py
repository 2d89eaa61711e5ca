"""Actuators of joints and named states of a mechanism, as robot descriptions list them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import joints as joint_kinds
from .._support.checks import plain
from ..errors import ModelError, at, below, brief, part_at, unknown_name
from .mechanism import Mechanism
from .part_fields import check_name

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
            given: Any = getattr(self, key)
            pairs = given.items() if hasattr(given, "items") else given
            if not isinstance(pairs, Iterable) or isinstance(pairs, str):
                raise ModelError(
                    f"{brief(given)} where numbers by name belong", where=where, remedy='give {"hip": 0.3}'
                )
            object.__setattr__(self, key, tuple((str(name), _numbers(x, where, None)) for name, x in pairs))


def check_drives(mechanism: Mechanism) -> None:
    """Refuse actuators and keyframes with equal names, of unknown joints, or with wrong counts of numbers."""
    joints = {j.name: joint_kinds.kind(j.kind) for j in mechanism.joints}
    for sort, parts in (("actuator", mechanism.actuators), ("keyframe", mechanism.keyframes)):
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


def listed_drives(given: Any, kind: type, sort: str) -> tuple[Any, ...]:
    """Return actuators or keyframes as a tuple, or raise ModelError."""
    out = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(x, kind) for x in out):
        what = f"{brief(given)} where a list of kt.{kind.__name__} belongs"
        raise ModelError(what, where=at(sort), remedy="put the parts in brackets")
    return out


def _known(what: str, name: str, known: dict[str, Any], where: str) -> Any:
    if name not in known:
        raise unknown_name(what, name, known, where=where)
    return known[name]


def _count(numbers: Numbers, count: int, where: str, what: str) -> None:
    if len(numbers) != count:
        raise ModelError(f"{len(numbers)} numbers", where=where, remedy=f"give {count}, {what}")


def _number(x: Any, where: str) -> float:
    found = plain(x)
    if found is None or not math.isfinite(found):
        raise ModelError(f"{brief(x)} is not a finite number", where=where, remedy="give a number")
    return found


def _numbers(given: Any, where: str, counts: tuple[int, ...] | None) -> Numbers:
    items = [given] if plain(given) is not None else given
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ModelError(f"{brief(given)} is not a list of numbers", where=where, remedy="give a tuple of numbers")
    out = tuple(_number(x, where) for x in items)
    if counts is not None and len(out) not in counts:
        raise ModelError(f"{len(out)} numbers", where=where, remedy=f"give {counts[-1]}")
    return out
