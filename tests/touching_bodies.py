"""Bodies that touch planes, for runs with contacts: ball, box on a slope, ladder, rod, coin, leg."""

from __future__ import annotations

import math

import numpy as np

import kinetree as kt

G = 9.81
LEG_MASS = 1.3
LEG_START = 0.2, 0.35
"""The angle of a leg and its rate at the start [rad, rad/s]."""


def free_body(name: str, mass: float, moments: tuple[float, float, float]) -> kt.System:
    """Return one free body."""
    body = kt.Body(name, mass, inertia=(*moments, 0.0, 0.0, 0.0))
    return kt.System(kt.build_mechanism(name, [body], [kt.Joint("root", "free", kt.GROUND, name)]))


def ball(height: float, **contact) -> tuple[kt.System, np.ndarray, kt.Contact]:
    """Return a ball of 0.1 m at a height above the ground, its start and its contact."""
    system = free_body("ball", 1.3, (0.01, 0.01, 0.01))
    q = system.neutral()
    q[2] = height + 0.1
    return system, q, kt.Contact("ground", "ball", "sphere", 0.1, **contact)


def box_on_slope(angle: float, friction: float) -> tuple[kt.System, np.ndarray, kt.Contact]:
    """Return a box that lies on a slope [rad], with contacts at its corners."""
    system = free_body("box", 2.0, (0.02, 0.03, 0.04))
    slope = kt.Placement.from_euler("y", (angle,))
    q = system.neutral()
    q[:3] = np.array(slope.rotation) @ [0.0, 0.0, 0.05]
    q[3:] = 0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2)
    corners = kt.Contact(
        "corner", "box", "box", (0.3, 0.2, 0.1), surface=kt.Surface(placement=slope), friction=friction
    )
    return system, q, corners


def ladder(angle: float, floor: float, wall: float) -> tuple[kt.System, np.ndarray, list[kt.Contact]]:
    """Return a ladder of 2 m at an angle from the vertical [rad], with friction on floor and wall."""
    system = free_body("ladder", 3.0, (1.0, 1.0, 1e-3))
    q = system.neutral()
    q[:3] = math.sin(angle), 0.0, math.cos(angle)
    q[3:] = 0.0, math.sin(-angle / 2), 0.0, math.cos(-angle / 2)
    upright = kt.Surface(placement=kt.Placement.from_euler("y", (math.pi / 2,)))
    foot = kt.Contact("foot", "ladder", placement=(0.0, 0.0, -1.0), friction=floor)
    return system, q, [foot, kt.Contact("top", "ladder", placement=(0.0, 0.0, 1.0), surface=upright, friction=wall)]


def planar_rod(friction: float) -> tuple[kt.System, kt.Contact]:
    """Return a rod of 2 m and 1 kg in the xz plane, and the contact of its lower tip: q = (x, z, angle)."""
    bodies = [kt.Body("x"), kt.Body("z"), kt.Body("rod", 1.0, inertia=(1 / 3, 1 / 3, 1e-3, 0.0, 0.0, 0.0))]
    joints = [
        kt.Joint("x", "prismatic", kt.GROUND, "x", axis="x"),
        kt.Joint("z", "prismatic", "x", "z", axis="z"),
        kt.Joint("y", "revolute", "z", "rod", axis="y"),
    ]
    return kt.System(kt.build_mechanism("rod", bodies, joints)), kt.Contact(
        "tip", "rod", "point", (), (0, 0, -1), friction=friction
    )


def coin(angle: float, friction: float) -> tuple[kt.System, np.ndarray, np.ndarray, kt.Contact]:
    """Return a coin of 40 mm radius that rolls on its rim at an angle from the ground [rad].

    It begins near the steady motion with its center at rest, in which it precesses by sqrt(4 g / (r sin(angle))).
    """
    r, m = 0.04, 0.4
    body = kt.Body("coin", m, inertia=(m * r * r / 4, m * r * r / 4, m * r * r / 2, 0.0, 0.0, 0.0))
    joint = kt.Joint("root", "free", kt.GROUND, "coin", friction=(friction, friction, friction, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism("coin", [body], [joint]))
    q = system.neutral()
    q[2:] = r * math.sin(angle), math.sin(angle / 2), 0.0, 0.0, math.cos(angle / 2)
    w = math.sqrt(4 * G * math.sin(angle) / r)
    spin = np.array([0.0, w, 0.05 * w])
    qd = np.concatenate([spin, -np.cross(spin, [0.0, -r, 0.0])])  # the lowest point is at rest
    return system, q, qd, kt.Contact("rim", "coin", "disc", r, friction=0.9)


def sticking_leg(inertia: float, *, units: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> kt.System:
    """Return a body in a plane with a foot 1 m below its mass, in other units of length, mass and time."""
    length, mass, time = units
    body = kt.Body("bob", LEG_MASS / mass, inertia=(inertia / (mass * length**2),) * 3 + (0.0,) * 3)
    parts = [
        kt.Joint("x", "prismatic", kt.GROUND, "x", axis="x"),
        kt.Joint("z", "prismatic", "x", "z", axis="z"),
        kt.Joint("turn", "revolute", "z", "bob", axis="y"),
    ]
    foot = kt.Contact("foot", "bob", placement=(0.0, 0.0, -1.0 / length), friction=0.9)
    gravity = (0.0, 0.0, -G * time**2 / length)
    made = kt.build_mechanism("leg", [kt.Body("x"), kt.Body("z"), body], parts, gravity=gravity, contacts=[foot])
    return kt.System(made)


def leg_start(*, units: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates and velocities of a leg that turns about its foot."""
    (a, w), (length, _, time) = LEG_START, units
    q, qd = np.array([np.sin(a), np.cos(a), a]), np.array([np.cos(a) * w, -np.sin(a) * w, w])
    return q / [length, length, 1.0], qd * time / [length, length, 1.0]
