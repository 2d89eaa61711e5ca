"""Tasks of walkers: a quadruped that stands, trots on command and crosses rough ground, and a biped in the plane."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..algebra.scalars import Scalar, absolute, cos, sin, where
from ..loading import load
from ..model.contacts import Contact, Surface
from ..model.parts import Placement
from ..simulation.acting.smooth import clip
from ..system import System
from .tasks import Continuous, Draw, Dynamics, Moment, Task
from .terms import near, squares

FEET = ("a", "b", "c", "d")
"""The legs of the quadruped."""
BENT = math.acos(0.25 / 0.3)
LEG = (-math.pi / 2, BENT, -2.0 * BENT)
"""The posture of a standing leg, with the trunk 0.5 m above the ground [rad]."""


STRIDE = 2.5
"""The strides of the quadruped per second: legs on a diagonal step together."""


def quadruped(
    forward: tuple[float, float] = (-0.5, 1.0),
    aside: tuple[float, float] = (-0.3, 0.3),
    turning: tuple[float, float] = (-0.6, 0.6),
    friction: float = 0.7,
) -> Task:
    """Return the trotting of a quadruped at commanded velocities [m/s, rad/s] on hard ground, along and across z.

    Actions are joint angles beside those of a standing posture, which springs and dampers follow. An episode has one
    command, (forward, aside, turning), in the axes of the trunk.
    """  # fmt: skip
    robot = load("quadruped")
    ground = Surface("plane", placement=Placement.from_euler("x", (-math.pi / 2,)))
    contacts = tuple(
        Contact(f"foot_{x}", f"shank_{x}", placement=Placement((0.3, 0.0, 0.0)), surface=ground, friction=friction)
        for x in FEET
    )
    standing = [*robot.neutral()[:7].tolist(), *(LEG * 4)]
    standing[1] = 0.5
    k, c, most = 120.0, 4.0, 40.0

    def torques(now: Moment) -> list[Scalar]:
        wanted = [a + b for a, b in zip(standing[7:], now.action, strict=True)]
        return [clip(k * (w - q) - c * v, -most, most) for w, q, v in zip(wanted, now.q[7:], now.qd[6:], strict=True)]

    def up(now: Moment) -> list[Scalar]:
        return [now.orientation("base")[1][k] for k in range(3)]  # the upward direction, in the axes of the trunk

    def phase(now: Moment) -> list[Scalar]:
        return [f(2.0 * math.pi * STRIDE * now.t) for f in (sin, cos)]

    def standing_feet(now: Moment) -> list[Scalar]:
        return [where(now.contact_force(f"foot_{x}")[0] > 1.0, 1.0, 0.0) for x in FEET]

    def in_step(now: Moment) -> Scalar:
        a, b, c, d = standing_feet(now)
        first = (a + d - b - c) * 0.5  # 1 if the first pair stands and the second is in the air
        return where(phase(now)[0] > 0.0, first, -first)

    def slip(now: Moment) -> Scalar:
        return squares((now.qd[5] - now["command"][0], now.qd[3] - now["command"][1]))

    def jerks(now: Moment) -> Scalar:
        return squares(a - b for a, b in zip(now.qd[6:], now.before.qd[6:], strict=True))  # type: ignore[union-attr]

    def reset(draw: Draw) -> dict[str, Scalar]:
        legs = [x + draw.uniform(-0.1, 0.1) for x in standing[7:]]
        command = [draw.uniform(*forward), draw.uniform(*aside), draw.uniform(*turning)]
        return {"q": [*standing[:1], standing[1] + 0.02, *standing[2:7], *legs], "command": command}

    return Task(
        name="Quadruped",
        motion=Dynamics(
            system=robot, dt=0.02, substeps=4, contacts=contacts, control=lambda now: [0.0] * 6 + torques(now)
        ),
        actions=Continuous((-0.6,) * 12, (0.6,) * 12),
        observation=(
            up, lambda now: now.qd[:6], lambda now: [a - b for a, b in zip(now.q[7:], standing[7:], strict=True)],
            lambda now: [0.1 * x for x in now.qd[6:]], "command", phase, standing_feet,
        ),
        reward={
            "velocity": lambda now: near(slip(now), 0.3),
            "turning": lambda now: 0.5 * near(squares([now.qd[1] - now["command"][2]]), 0.5),
            "step": lambda now: 0.3 * in_step(now),
            "alive": lambda now: 0.3,
            "bounce": lambda now: -1.0 * squares([now.qd[4]]),
            "wobble": lambda now: -0.05 * squares([now.qd[0], now.qd[2]]),
            "level": lambda now: -2.0 * squares([up(now)[0], up(now)[2]]),
            "height": lambda now: -10.0 * squares([now.q[1] - 0.47]),
            "smooth": lambda now: -2e-4 * jerks(now),
            "effort": lambda now: -2e-5 * squares(torques(now)),
        },
        reset=reset,
        terminated=lambda now: (now.q[1] < 0.25) | (up(now)[1] < 0.5),
        max_steps=500,
    )  # fmt: skip


ROUGH = 0.06
"""The height of the bumps of rough ground [m]."""
GRID = (0.5, 9, 23)
"""The distance of the heights of rough ground [m], and their numbers across and along the way."""


def quadruped_stand() -> Task:
    """Return the standing of the quadruped, which is pushed at the start of an episode."""
    walking = quadruped()
    start = walking.reset
    assert start is not None

    def reset(draw: Draw) -> dict[str, object]:
        begun = dict(start(draw))
        pushes = [*draw.uniform(-3.0, 3.0, 3), *draw.uniform(-1.5, 1.5, 3)]
        return begun | {"command": [0.0] * 3, "qd": [*pushes, *(0.0 for _ in LEG * 4)]}

    assert isinstance(walking.reward, Mapping)
    still = {name: term for name, term in walking.reward.items() if name != "step"}
    return walking.changed(name="QuadrupedStand", reset=reset, reward=still, max_steps=250)


def quadruped_rough(seed: int = 0) -> Task:
    """Return the walking of the quadruped over bumps: a height field that rises from level ground at the start."""
    walking = quadruped()
    motion, (step, across, along) = walking.motion, GRID
    assert isinstance(motion, Dynamics) and motion.contacts is not None
    heights = np.random.default_rng(seed).uniform(0.0, ROUGH, (across, along))
    heights[:, -5:] = 0.0  # the way leads from the last rows to the first ones, along z
    corner = (-0.5 * step * (across - 1), 0.0, step * (along - 3))
    ground = Surface(
        "heights", placement=Placement(corner, Placement.from_euler("x", (-math.pi / 2,)).rotation),
        heights=tuple(map(tuple, heights.tolist())), spacing=(step, step),
    )  # fmt: skip
    contacts = tuple(replace(contact, surface=ground) for contact in motion.contacts)
    return walking.changed(name="QuadrupedRough", motion=replace(motion, contacts=contacts))


SIDES = ("a", "b")
"""The legs of the biped."""
SOLE, ROTOR = 0.075, 0.02
"""Half the length of its feet [m], and the inertia of its geared drives at the joints [kg m^2]: without the latter,
feet of 0.2 kg are too light for stiff drives."""
KNEE = math.acos(0.45 / 0.5)
STANCE = (KNEE, -2.0 * KNEE, KNEE + math.pi / 2)
"""The posture of a standing leg, with the trunk 1.15 m above the ground [rad]."""


def biped(speed: tuple[float, float] = (0.0, 0.8), friction: float = 0.7) -> Task:
    """Return the walking of a biped in the plane at a commanded speed along x, each foot on heel and toe."""
    robot = load("biped")
    trunk, *legs = robot.joints
    joints = (replace(trunk, kind="planar", axis=(0.0, 0.0, 1.0)), *(replace(x, armature=(ROTOR,)) for x in legs))
    upright, high = -math.pi / 2, 1.15
    angles = {joint.name: (x,) for joint, x in zip(legs, STANCE * 2, strict=True)}
    guess = tuple({trunk.name: (0.0, high, upright), **angles}.items())
    robot = System(replace(robot.mechanism, name="planar_biped", joints=joints, guess=guess), robot.report)
    ground = Surface("plane", placement=Placement.from_euler("x", (-math.pi / 2,)))
    contacts = tuple(
        Contact(f"{end}_{x}", f"foot_{x}", placement=Placement((at, 0.0, 0.0)), surface=ground, friction=friction)
        for x in SIDES
        for end, at in (("heel", -SOLE), ("toe", SOLE))
    )
    k, c, most = 400.0, 10.0, 120.0

    def control(now: Moment) -> list[Scalar]:
        wanted = [a + b for a, b in zip(STANCE * 2, now.action, strict=True)]
        tau = [clip(k * (w - q) - c * v, -most, most) for w, q, v in zip(wanted, now.q[3:], now.qd[3:], strict=True)]
        return [0.0] * 3 + tau

    def lean(now: Moment) -> Scalar:
        return now.q[2] - upright

    def reset(draw: Draw) -> dict[str, object]:
        angles = [x + draw.uniform(-0.05, 0.05) for x in STANCE * 2]
        return {"q": [0.0, high + 0.02, upright, *angles], "command": draw.uniform(*speed)}

    return Task(
        name="Biped",
        motion=Dynamics(system=robot, dt=0.02, substeps=8, contacts=contacts, control=control),
        actions=Continuous((-0.6,) * 6, (0.6,) * 6),
        observation=(
            lambda now: [now.q[1], lean(now)], lambda now: now.qd[:3], lambda now: now.q[3:], lambda now: now.qd[3:],
            "command", *(f"{end}_{x}.touching" for x in SIDES for end in ("heel", "toe")),
        ),
        reward={
            "speed": lambda now: near(squares([now.velocity("base")[0] - now["command"]]), 0.25),
            "level": lambda now: -squares([lean(now)]),
            "alive": lambda now: 0.5,
            "effort": lambda now: -1e-2 * squares(now.action),
        },
        reset=reset,
        terminated=lambda now: (now.q[1] < 0.8) | (absolute(lean(now)) > 0.7),
        max_steps=500,
    )  # fmt: skip
