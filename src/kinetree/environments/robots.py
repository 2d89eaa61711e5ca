"""Tasks of mechanisms of the library: reaching, tracking with closed loops, driving; the table of all tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from ..algebra.scalars import Scalar, absolute, cos, sin, sqrt
from ..errors import InputError
from ..loading import load
from ..simulation.acting.smooth import clip
from ..system import System
from .classics import acrobot, cart_pole, pendulum
from .tasks import Continuous, Draw, Dynamics, Moment, Task
from .terms import near, squares
from .walkers import biped, quadruped, quadruped_rough, quadruped_stand


def double_pendulum() -> Task:
    """Return the swing-up of a planar arm of two links by a motor in its first joint, which cannot hold it."""
    arm = load("planar_2r")
    upright = math.pi / 2
    first = arm.joints[0].name

    def height(now: Moment) -> Scalar:
        return 0.5 * (sin(now.q[0]) + sin(now.q[0] + now.q[1]))

    def reset(draw: Draw) -> dict[str, object]:
        return {"q": [-upright + draw.uniform(-0.1, 0.1), draw.uniform(-0.1, 0.1)], "qd": draw.uniform(-0.1, 0.1, 2)}

    return Task(
        name="DoublePendulum",
        motion=Dynamics(system=arm, dt=0.02, substeps=2, control=lambda now: {first: now.action[0]}),
        actions=Continuous((-1.2,), (1.2,)),
        observation=("sin_q", "cos_q", "qd"),
        reward={
            "height": height,
            "speed": lambda now: -1e-3 * squares(now.qd),
            "effort": lambda now: -1e-2 * squares(now.action),
        },
        reset=reset,
        truncated=lambda now: squares(now.qd) > 1e4,
        max_steps=500,
    )


ARM_TORQUES = (90.0, 90.0, 60.0, 15.0, 15.0, 10.0)
"""The largest torques of the joints of a Puma 560 [N m]."""
SPEED, FOLLOWS = 2.0, 15.0
"""The largest wanted speed of a joint of an arm [rad/s], and the rate at which its speed follows [1/s]."""


def arm_reach(
    arm: System | None = None,
    tip: str = "link6",
    torques: tuple[float, ...] = ARM_TORQUES,
    *,
    name: str = "ArmReach",
    middle: tuple[float, ...] | None = None,
    turn: float = 1.5,
) -> Task:
    """Return the reaching of random points by a body of an arm, by default the wrist of a Puma 560.

    Actions are wanted speeds of the first joints, which computed torques follow as far as the motors have the torque
    [N m]; joints after those with a motor, such as fingers, are held still. Points are those of the tip at angles
    within a `turn` [rad] of the `middle`, and starts are within two thirds of it.
    """
    arm = load("puma560") if arm is None else arm
    count, others = len(torques), arm.nv - len(torques)
    middle = (0.0,) * arm.nv if middle is None else middle

    def control(now: Moment) -> list[Scalar]:
        speeds = [*now.action, *(0.0 for _ in range(others))]
        wanted = [FOLLOWS * (a - v) for a, v in zip(speeds, now.qd, strict=True)]
        needed = now.inverse_dynamics(now.q, now.qd, wanted)
        return [clip(x, -m, m) for x, m in zip(needed, torques, strict=False)] + needed[count:]

    def angles(draw: Draw, most: float) -> list[Scalar]:
        return [m + (draw.uniform(-most, most) if k < count else 0.0) for k, m in enumerate(middle)]

    def reset(draw: Draw) -> dict[str, object]:
        goal = angles(draw, turn)
        return {"q": angles(draw, turn * 2.0 / 3.0), "target": draw.position(tip, goal)}

    def distance(now: Moment) -> Scalar:
        return squares(a - b for a, b in zip(now.position(tip), now["target"], strict=True))

    return Task(
        name=name,
        motion=Dynamics(system=arm, dt=0.02, substeps=2, method="euler", control=control),
        actions=Continuous((-SPEED,) * count, (SPEED,) * count),
        observation=("sin_q", "cos_q", "qd", f"{tip}.position", "target"),
        reward={
            "distance": lambda now: -sqrt(distance(now)),
            "reached": lambda now: near(distance(now), 0.05),
            "effort": lambda now: -1e-2 * squares(now.action),
        },
        reset=reset,
        max_steps=200,
    )


UR5_TORQUES = (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)
"""The largest torques of a UR5 [N m]."""
PANDA_TORQUES = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
"""The largest torques of a Franka Emika Panda [N m]."""
PANDA_MIDDLE = (0.0, -0.3, 0.0, -1.6, 0.0, 1.6, 0.0, 0.02, 0.02)
"""A posture in the middle of the ranges of its joints [rad], with open fingers [m]."""


def ur5_reach() -> Task:
    """Return the reaching of random points by the flange of a UR5."""
    return arm_reach(public_robot("ur_description/urdf/ur5_robot.urdf"), "tool0", UR5_TORQUES, name="UR5Reach")


def panda_reach() -> Task:
    """Return the reaching of random points by the hand of a Panda with seven joints, within their ranges."""
    arm = public_robot("panda_description/urdf/panda.urdf")
    return arm_reach(arm, "panda_hand", PANDA_TORQUES, name="PandaReach", middle=PANDA_MIDDLE, turn=1.0)


def public_robot(file: str) -> System:
    """Return a robot of the package example-robot-data; InputError without it."""
    try:
        place = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
    except PackageNotFoundError:
        raise InputError(
            f"the model {file} is in the package example-robot-data; pip install example-robot-data"
        ) from None
    return load(Path(str(place)) / file)


STARTS = 8
"""The angles of the crank at which an episode of the four-bar begins."""


def four_bar_tracking() -> Task:
    """Return the tracking of a rate of the crank of a four-bar against gravity and inertia."""
    bars = load("four_bar")
    starts = [bars.assemble(hold={"crank": float(x)}).tolist() for x in np.arange(STARTS) * (2 * math.pi / STARTS)]

    def reset(draw: Draw) -> dict[str, object]:
        return {"q": draw.choice(starts), "rate": draw.uniform(2.0, 8.0)}

    def error(now: Moment) -> Scalar:
        return squares([now.qd[0] - now["rate"]])

    return Task(
        name="FourBar",
        motion=Dynamics(system=bars, dt=0.01, control=lambda now: {"crank": now.action[0]}),
        actions=Continuous((-2.0,), (2.0,)),
        observation=("sin_q", "cos_q", "qd", "rate"),
        reward={"rate": lambda now: near(error(now), 2.0), "effort": lambda now: -1e-2 * squares(now.action)},
        reset=reset,
        truncated=lambda now: absolute(now.qd[0]) > 100.0,
        max_steps=300,
    )


def five_bar_tracking() -> Task:
    """Return the tracking of a circle by the tool of a five-bar, whose two cranks are driven."""
    bars = load("five_bar")
    q0 = bars.assemble().tolist()
    center = bars.pose(q0, "tool")[:3, 3].tolist()
    drives = ("left_crank", "right_crank")
    torque = 0.5

    def target(now: Moment) -> list[Scalar]:
        phase = now["rate"] * now.t
        return [center[0] + now["radius"] * (cos(phase) - 1.0), center[1] + now["radius"] * sin(phase)]

    def error(now: Moment) -> Scalar:
        return squares(a - b for a, b in zip(now.position("tool")[:2], target(now), strict=True))

    def reset(draw: Draw) -> dict[str, object]:
        return {"q": q0, "radius": draw.uniform(0.01, 0.03), "rate": draw.uniform(2.0, 6.0)}

    return Task(
        name="FiveBar",
        motion=Dynamics(system=bars, dt=0.01, control=lambda now: dict(zip(drives, now.action, strict=True))),
        actions=Continuous((-torque,) * 2, (torque,) * 2),
        observation=("sin_q", "cos_q", "qd", lambda now: now.position("tool")[:2], target),
        reward={"place": lambda now: near(error(now), 0.01)},
        reset=reset,
        truncated=lambda now: squares(now.qd) > 1e4,
        max_steps=300,
    )


LEGS = tuple(f"leg{k}" for k in range(1, 7))
"""The driven joints of the Stewart platform."""


def stewart_tracking() -> Task:
    """Return the tracking of a heaving motion by a Stewart platform, whose six legs are driven."""
    platform = load("stewart")
    q0 = platform.assemble()
    names = [joint.name for joint in platform.joints]
    places = [platform.mechanism.v_slices[names.index(leg)].start for leg in LEGS]
    still = np.zeros(platform.nv)
    held = platform.inverse_dynamics(q0, still, still, actuated=LEGS)[places].tolist()
    first, force = q0.tolist(), 100.0

    def control(now: Moment) -> dict[str, Scalar]:
        return {leg: h + a for leg, h, a in zip(LEGS, held, now.action, strict=True)}

    def wanted(now: Moment) -> list[Scalar]:
        phase = now["rate"] * now.t
        size, rate = now["size"], now["rate"]
        return [first[2] + size * sin(phase), size * rate * cos(phase)]

    def error(now: Moment) -> Scalar:
        return squares([now.q[0], now.q[1], now.q[2] - wanted(now)[0]])

    def reset(draw: Draw) -> dict[str, object]:
        return {"q": first, "size": draw.uniform(0.02, 0.08), "rate": draw.uniform(2.0, 6.0)}

    return Task(
        name="Stewart",
        motion=Dynamics(system=platform, dt=0.01, method="euler", control=control),
        actions=Continuous((-force,) * 6, (force,) * 6),
        observation=(lambda now: now.q[:7], lambda now: now.qd[:6], wanted),
        reward={
            "place": lambda now: near(error(now), 0.03),
            "level": lambda now: near(squares(now.q[3:6]), 0.1),
            "effort": lambda now: -1e-6 * squares(now.action),
        },
        reset=reset,
        terminated=lambda now: (squares(now.q[3:6]) > 0.1) | (absolute(now.q[2] - first[2]) > 0.2),
        max_steps=300,
    )


TORSO_DRIVES = ("actuator_4", "actuator_5")
"""The linear actuators of CHARMIE's torso."""


def charmie_torso() -> Task:
    """Return the tracking of squats and leans by the torso of CHARMIE, with two linear actuators beside its springs."""
    torso = load("charmie_torso")  # its bars are at a dead center 0.1 m below the start
    q0, still = torso.assemble(), np.zeros(torso.nv)
    names = [joint.name for joint in torso.joints]
    places = [torso.mechanism.v_slices[names.index(x)].start for x in TORSO_DRIVES]
    held = torso.inverse_dynamics(q0, still, still, actuated=TORSO_DRIVES)[places].tolist()
    first, force = q0.tolist(), 60.0

    def control(now: Moment) -> dict[str, Scalar]:
        return {x: h + a for x, h, a in zip(TORSO_DRIVES, held, now.action, strict=True)}

    def wanted(now: Moment) -> list[Scalar]:
        phase = now["rate"] * now.t
        return [first[0] + now["squat"] * (1.0 - cos(phase)), first[1] + now["lean"] * sin(phase)]

    def errors(now: Moment) -> list[Scalar]:
        return [a - b for a, b in zip(now.q[:2], wanted(now), strict=True)]

    def reset(draw: Draw) -> dict[str, object]:
        squat, lean = draw.uniform(-0.03, 0.0), draw.uniform(-0.2, 0.2)
        return {"q": first, "squat": squat, "lean": lean, "rate": draw.uniform(1.0, 3.0)}

    return Task(
        name="CharmieTorso",
        motion=Dynamics(system=torso, dt=0.01, substeps=2, control=control),
        actions=Continuous((-force,) * 2, (force,) * 2),
        observation=(lambda now: now.q[:2], lambda now: now.qd[:2], wanted),
        reward={
            "squat": lambda now: near(squares(errors(now)[:1]), 0.02),
            "lean": lambda now: near(squares(errors(now)[1:]), 0.1),
            "effort": lambda now: -1e-6 * squares(now.action),
        },
        reset=reset,
        terminated=lambda now: (absolute(now.q[0] - first[0]) > 0.08) | (absolute(now.q[1]) > 0.8),
        max_steps=300,
    )


def differential_drive() -> Task:
    """Return the driving of a base on two wheels to random points, as a rolling mechanism."""
    base = load("differential_drive")
    q0 = base.assemble().tolist()

    def relative(now: Moment) -> list[Scalar]:
        R, at = now.orientation("chassis"), now.position("chassis")
        x, y = (a - b for a, b in zip(now["target"], at[:2], strict=True))
        return [R[0][0] * x + R[1][0] * y, R[0][1] * x + R[1][1] * y]

    def reset(draw: Draw) -> dict[str, object]:
        return {"q": q0, "target": draw.uniform(-2.0, 2.0, 2)}

    def distance(now: Moment) -> Scalar:
        return sqrt(squares(relative(now)))

    return Task(
        name="DifferentialDrive",
        motion=Dynamics(system=base, dt=0.02, control=lambda now: {"left": now.action[0], "right": now.action[1]}),
        actions=Continuous((-1.0,) * 2, (1.0,) * 2),
        observation=(relative, lambda now: now.qd[-2:]),
        reward={"distance": lambda now: -distance(now), "effort": lambda now: -1e-3 * squares(now.action)},
        reset=reset,
        terminated=lambda now: distance(now) < 0.05,
        truncated=lambda now: squares(now.qd[-2:]) > 1e4,
        max_steps=500,
    )


def bicycle() -> Task:
    """Return the balancing of a bicycle by its handlebar, at speeds at which it stays upright alone or falls."""
    bike = load("bicycle")
    q0 = bike.assemble()
    ahead = bike.consistent_speeds(q0, {"base.vx": 1.0, "base.wx": 0.0, "steering": 0.0}).tolist()

    def lean(now: Moment) -> Scalar:
        return now.orientation("frame")[2][1]  # the sine of the angle

    def reset(draw: Draw) -> dict[str, object]:
        speed, rate = draw.uniform(2.0, 6.0), draw.uniform(-0.5, 0.5)
        return {"q": q0.tolist(), "qd": [rate, *(speed * x for x in ahead[1:])]}

    return Task(
        name="Bicycle",
        motion=Dynamics(system=bike, dt=0.02, substeps=2, control=lambda now: {"steering": now.action[0]}),
        actions=Continuous((-5.0,), (5.0,)),
        observation=(lean, lambda now: now.qd[:1], lambda now: now.q[-2:-1], lambda now: now.qd[-2:], "action"),
        reward={
            "upright": lambda now: near(squares([lean(now)]), 0.1),
            "effort": lambda now: -1e-3 * squares(now.action),
        },
        reset=reset,
        terminated=lambda now: absolute(lean(now)) > 0.6,
        max_steps=500,
    )


TASKS: dict[str, Callable[[], Task]] = {
    "CartPole": cart_pole,
    "Acrobot": acrobot,
    "Pendulum": pendulum,
    "DoublePendulum": double_pendulum,
    "ArmReach": arm_reach,
    "UR5Reach": ur5_reach,
    "PandaReach": panda_reach,
    "FourBar": four_bar_tracking,
    "FiveBar": five_bar_tracking,
    "Stewart": stewart_tracking,
    "CharmieTorso": charmie_torso,
    "DifferentialDrive": differential_drive,
    "Bicycle": bicycle,
    "Quadruped": quadruped,
    "QuadrupedStand": quadruped_stand,
    "QuadrupedRough": quadruped_rough,
    "Biped": biped,
}
"""A function that makes each task that comes with Kinetree."""
