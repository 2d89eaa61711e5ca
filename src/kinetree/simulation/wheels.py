"""Mechanisms on wheels: four Mecanum wheels, or two wheels on an axle, under a body that stands on a floor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.lower.loop_pattern import guess
from ..errors import InputError
from ..model import assemble
from ..model.mechanism import Mechanism
from ..model.part_fields import AXES, free_name
from ..model.parts import GROUND, Body, Joint, Loop, Placement
from ..numbers import positive
from ..system import System
from .arguments import mechanism_of, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

MECANUM = math.pi / 4
"""The angle between the rollers and the axle of a Mecanum wheel [rad]."""


def with_mecanum_wheels(
    mechanism: Mechanism | System,
    body: str,
    *,
    radius: float,
    track: float,
    wheelbase: float,
    mass: float,
    center: Sequence[float] = (0.0, 0.0, 0.0),
    forward: str = "x",
    up: str = "z",
) -> Mechanism:
    """Return the mechanism with four Mecanum wheels under a body, which roll on the floor that they touch at the guess.

    `center` [m] is the middle between the centers of the wheels, `forward` and `up` are axes, all in the body's frame.
    `track` and `wheelbase` [m] are the distances of the wheels to the side and along. Each wheel is a solid disc of
    the mass [kg] and the radius [m], on the joints front_left, front_right, rear_left and rear_right.
    """
    spans = {"radius": radius, "track": track, "wheelbase": wheelbase, "mass": mass}
    radius, track, wheelbase, mass = (positive(x, f"the {name} of the wheels") for name, x in spans.items())
    places = {
        f"{row}_{side}": (x * wheelbase / 2, y * track / 2, MECANUM * x * y)
        for row, x in (("front", 1.0), ("rear", -1.0))
        for side, y in (("left", 1.0), ("right", -1.0))
    }
    return _on_wheels(mechanism_of(mechanism), body, places, radius, mass, vector(center, "center"), forward, up)


def with_driven_axle(
    mechanism: Mechanism | System,
    body: str,
    *,
    radius: float,
    track: float,
    mass: float,
    center: Sequence[float] = (0.0, 0.0, 0.0),
    forward: str = "x",
    up: str = "z",
) -> Mechanism:
    """Return the mechanism with two wheels on an axle under a body, on the joints left and right.

    The arguments are those of `with_mecanum_wheels`. The wheels roll without slipping. A body that can tilt also needs
    casters, such as a `point_on_plane` loop.
    """
    spans = {"radius": radius, "track": track, "mass": mass}
    radius, track, mass = (positive(x, f"the {name} of the wheels") for name, x in spans.items())
    places = {"left": (0.0, track / 2, None), "right": (0.0, -track / 2, None)}
    return _on_wheels(mechanism_of(mechanism), body, places, radius, mass, vector(center, "center"), forward, up)


def _on_wheels(
    m: Mechanism, body: str, places: Mapping[str, Any], radius: float, mass: float, center: Any, forward: str, up: str
) -> Mechanism:
    """Add wheels at places (along, to the left, angle of the rollers or None) in the axes of a body."""
    m.body(body)
    x, z = (_axis(name, letter) for name, letter in (("forward", forward), ("up", up)))
    if abs(float(x @ z)) > 0.5:
        raise InputError(f"forward is {forward!r} and up is {up!r}; expected two perpendicular axes")
    y = np.cross(z, x)
    pose = np.asarray(System(m).pose(np.array(guess(m)), body), dtype=float)
    normal = pose[:3, :3] @ z
    floor = Placement(_numbers(pose[:3, :3] @ np.array(center) + pose[:3, 3] - radius * normal))
    names = {b.name for b in m.bodies} | {j.name for j in m.joints} | {p.name for p in m.loops}
    across, along = mass * radius**2 / 4, mass * radius**2 / 2
    inertia = _numbers(across + (along - across) * np.abs(y))
    bodies, joints, loops = list(m.bodies), list(m.joints), list(m.loops)
    for label, (ahead, aside, angle) in places.items():
        name = free_name(label, names)
        at = Placement(_numbers(np.array(center) + ahead * x + aside * y))
        bodies.append(Body(name, mass, (0.0, 0.0, 0.0), (*inertia, 0.0, 0.0, 0.0)))
        joints.append(Joint(name, "revolute", body, name, at, axis=_numbers(y)))
        kind = "rolling_disc" if angle is None else "rolling_rollers"
        touch = Loop(f"{name}_on_floor", kind, GROUND, name, floor, axis=_numbers(normal), axis2=_numbers(y))
        loops.append(replace(touch, radius=radius, angle=angle))
    return assemble(
        m.name, bodies, joints, frames=m.frames, loops=loops, couplings=m.couplings, forces=m.forces, gravity=m.gravity,
        parameters=m.parameters, scenery=m.scenery, contacts=m.contacts, source=m.source, description=m.description,
        guess=m.guess, lenient=True,
    )  # fmt: skip


def _axis(name: str, letter: str) -> Numbers:
    if not isinstance(letter, str) or letter not in AXES:
        raise InputError(f"{name} is {letter!r}; expected one of {', '.join(AXES)}")
    return np.array(AXES[letter])


def _numbers(x: Numbers) -> Any:
    return tuple(float(v) + 0.0 for v in x)
