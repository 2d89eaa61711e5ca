"""Robots of the library on their feet, with a gait for each: planar biped, quadruped and hexapod.

The mechanisms are those of ReDySim. Feet, friction, drives and gaits are ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..loading import load
from ..model.contacts import Contact, Surface
from ..model.parts import Placement
from ..system import System
from .gait_cycles import Gait
from .legged import LeggedRobot

GROUND = Surface("plane", placement=Placement.from_euler("x", (-np.pi / 2,)))
"""The level ground, with y upward."""
FRICTION = 0.7
"""Coulomb's coefficient, as in the examples of ReDySim."""
HEEL = 0.075
"""Half the length of the biped's feet [m]: the ankle is in the middle."""
ROTOR = 0.02
"""Inertia of the biped's drives at their joints [kg m^2], such as that of geared motors. Without it, its feet of 0.2 kg
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
