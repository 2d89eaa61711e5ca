"""Tasks of mechanisms of the library: reaching, tracking with closed loops, driving, walking; the table of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..algebra.scalars import Scalar, absolute, cos, sin, sqrt, where
from ..loading import load
from ..model.contacts import Contact, Surface
from ..model.parts import Placement
from ..simulation.acting.smooth import clip
from ..system import System
from .classics import acrobot, cart_pole, pendulum
from .tasks import Continuous, Draw, Dynamics, Moment, Task
from .terms import near, squares


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


def arm_reach(arm: System | None = None, tip: str = "link6", torques: tuple[float, ...] = ARM_TORQUES) -> Task:
    """Return the reaching of random points by a body of an arm, by default the wrist of a Puma 560.

    Actions are wanted speeds of the joints, which computed torques follow as far as the motors have the torque [N m].
    """
    arm = load("puma560") if arm is None else arm
    count = arm.nv

    def control(now: Moment) -> list[Scalar]:
        wanted = [FOLLOWS * (a - v) for a, v in zip(now.action, now.qd, strict=True)]
        needed = now.inverse_dynamics(now.q, now.qd, wanted)
        return [clip(x, -m, m) for x, m in zip(needed, torques, strict=True)]

    def reset(draw: Draw) -> dict[str, object]:
        goal = draw.uniform(-1.5, 1.5, count)
        return {"q": draw.uniform(-1.0, 1.0, count), "target": draw.position(tip, goal)}

    def distance(now: Moment) -> Scalar:
        return squares(a - b for a, b in zip(now.position(tip), now["target"], strict=True))

    return Task(
        name="ArmReach",
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


FEET = ("a", "b", "c", "d")
"""The legs of the quadruped."""
BENT = math.acos(0.25 / 0.3)
LEG = (-math.pi / 2, BENT, -2.0 * BENT)
"""The posture of a standing leg, with the trunk 0.5 m above the ground [rad]."""


def quadruped(speed: tuple[float, float] = (0.0, 0.8), friction: float = 0.7) -> Task:
    """Return the walking of a quadruped at a commanded speed along z on hard ground; actions are joint angles."""
    robot = load("quadruped")
    ground = Surface("plane", placement=Placement.from_euler("x", (-math.pi / 2,)))
    contacts = tuple(
        Contact(f"foot_{x}", f"shank_{x}", placement=Placement((0.3, 0.0, 0.0)), surface=ground, friction=friction)
        for x in FEET
    )
    standing = [*robot.neutral()[:7].tolist(), *(LEG * 4)]
    standing[1] = 0.5
    k, c, most = 120.0, 4.0, 40.0

    def control(now: Moment) -> list[Scalar]:
        wanted = [a + b for a, b in zip(standing[7:], now.action, strict=True)]
        tau = [clip(k * (w - q) - c * v, -most, most) for w, q, v in zip(wanted, now.q[7:], now.qd[6:], strict=True)]
        return [0.0] * 6 + tau

    def up(now: Moment) -> list[Scalar]:
        return [now.orientation("base")[1][k] for k in range(3)]  # the upward direction, in the axes of the trunk

    def forward(now: Moment) -> Scalar:
        return now.velocity("base")[2]

    def reset(draw: Draw) -> dict[str, object]:
        legs = [x + draw.uniform(-0.1, 0.1) for x in standing[7:]]
        return {"q": [*standing[:1], standing[1] + 0.02, *standing[2:7], *legs], "command": draw.uniform(*speed)}

    return Task(
        name="Quadruped",
        motion=Dynamics(system=robot, dt=0.02, substeps=4, contacts=contacts, control=control),
        actions=Continuous((-0.5,) * 12, (0.5,) * 12),
        observation=(
            up, lambda now: now.qd[:6], lambda now: now.q[7:], lambda now: now.qd[6:], "command",
            lambda now: [where(now.contact_force(f"foot_{x}")[0] > 1.0, 1.0, 0.0) for x in FEET],
        ),
        reward={
            "speed": lambda now: near(squares([forward(now) - now["command"]]), 0.25),
            "sideways": lambda now: -0.5 * squares(now.velocity("base")[:2]),
            "turning": lambda now: -0.05 * squares(now.qd[3:6]),
            "level": lambda now: -1.0 * squares([up(now)[0], up(now)[2]]),
            "effort": lambda now: -1e-2 * squares(now.action),
        },
        reset=reset,
        terminated=lambda now: (now.q[1] < 0.25) | (up(now)[1] < 0.5),
        max_steps=500,
    )  # fmt: skip


TASKS: dict[str, Callable[[], Task]] = {
    "CartPole": cart_pole,
    "Acrobot": acrobot,
    "Pendulum": pendulum,
    "DoublePendulum": double_pendulum,
    "ArmReach": arm_reach,
    "FourBar": four_bar_tracking,
    "FiveBar": five_bar_tracking,
    "Stewart": stewart_tracking,
    "CharmieTorso": charmie_torso,
    "DifferentialDrive": differential_drive,
    "Bicycle": bicycle,
    "Quadruped": quadruped,
}
"""A function that makes each task that comes with Kinetree."""
