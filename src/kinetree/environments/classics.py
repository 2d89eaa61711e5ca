"""CartPole, Acrobot and Pendulum with the equations, steps and rules of Gymnasium 1.x (its versions v1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..algebra.scalars import Scalar, cos, sin, where
from ..model import build_mechanism
from ..model.parts import GROUND, Body, Joint, Limits, Placement, Shape
from ..simulation.acting.smooth import atan2, clip
from ..system import System
from .tasks import Continuous, Discrete, Draw, Equations, Moment, Task

# --- CartPole: A. Barto, R. Sutton, C. Anderson, IEEE Transactions SMC-13(5), 834-846 (1983); explicit Euler ---

GRAVITY = 9.8
"""The gravity of CartPole and Acrobot [m/s^2]."""


def cart_pole() -> Task:
    """Return CartPole-v1: a pole on a cart that is pushed to the left or right is kept upright."""
    length, pole, total, pull, dt = 0.5, 0.1, 1.1, 10.0, 0.02
    widest, farthest = 12 * 2 * math.pi / 360, 2.4

    def advance(now: Moment) -> tuple[list[Scalar], list[Scalar]]:
        (x, angle), (v, rate) = now.q, now.qd
        c, s = cos(angle), sin(angle)
        force = where(now.action[0] > 0.5, pull, -pull)
        common = (force + (pole * length) * (rate * rate) * s) / total
        turning = (GRAVITY * s - c * common) / (length * (4.0 / 3.0 - pole * (c * c) / total))
        moving = common - (pole * length) * turning * c / total
        return [x + dt * v, angle + dt * rate], [v + dt * moving, rate + dt * turning]

    def fallen(now: Moment) -> Scalar:
        x, angle = now.q
        return (x < -farthest) | (x > farthest) | (angle < -widest) | (angle > widest)

    def reset(draw: Draw) -> dict[str, Scalar]:
        return {"q": draw.uniform(-0.05, 0.05, 2), "qd": draw.uniform(-0.05, 0.05, 2)}

    high = (2 * farthest, math.inf, 2 * widest, math.inf)
    return Task(
        name="CartPole",
        motion=Equations(2, 2, advance, dt, cart_with_pole(length, pole, total - pole, farthest)),
        actions=Discrete(2),
        observation=lambda now: [now.q[0], now.qd[0], now.q[1], now.qd[1]],
        reward=lambda now: 1.0,
        reset=reset,
        terminated=fallen,
        max_steps=500,
        low=tuple(-x for x in high),
        high=high,
    )


# --- Acrobot: R. Sutton, NIPS 8, 1038-1044 (1996), with the equations of the book of Sutton and Barto ---


def acrobot() -> Task:
    """Return Acrobot-v1: two hanging links are swung up by a torque of -1, 0 or 1 N m between them."""
    dt, most = 0.2, (4 * math.pi, 9 * math.pi)

    def rates(y: Sequence[Scalar], a: Scalar) -> list[Scalar]:
        t1, t2, w1, w2 = y
        c, s = cos(t2), sin(t2)
        d1 = 0.25 + (1.25 + c) + 1.0 + 1.0
        d2 = (0.25 + 0.5 * c) + 1.0
        phi2 = 0.5 * GRAVITY * cos(t1 + t2 - math.pi / 2)
        phi1 = (-0.5 * (w2 * w2)) * s - w2 * w1 * s + 1.5 * GRAVITY * cos(t1 - math.pi / 2) + phi2
        a2 = (a + d2 / d1 * phi1 - 0.5 * (w1 * w1) * s - phi2) / (1.25 - d2 * d2 / d1)
        return [w1, w2, -(d2 * a2 + phi1) / d1, a2]

    def advance(now: Moment) -> tuple[list[Scalar], list[Scalar]]:
        y = runge_kutta(lambda x: rates(x, now.action[0] - 1.0), [*now.q, *now.qd], dt)
        q = [within(x) for x in y[:2]]
        return q, [clip(x, -m, m) for x, m in zip(y[2:], most, strict=True)]

    def raised(now: Moment) -> Scalar:
        return -cos(now.q[0]) - cos(now.q[1] + now.q[0]) > 1.0

    def reset(draw: Draw) -> dict[str, Scalar]:
        return {"q": draw.uniform(-0.1, 0.1, 2), "qd": draw.uniform(-0.1, 0.1, 2)}

    high = (1.0, 1.0, 1.0, 1.0, *most)
    return Task(
        name="Acrobot",
        motion=Equations(2, 2, advance, dt, hanging_links(2)),
        actions=Discrete(3),
        observation=lambda now: [cos(now.q[0]), sin(now.q[0]), cos(now.q[1]), sin(now.q[1]), *now.qd],
        reward=lambda now: where(raised(now), 0.0, -1.0),
        reset=reset,
        terminated=raised,
        max_steps=500,
        low=tuple(-x for x in high),
        high=high,
    )


def runge_kutta(rates: Callable[[list[Scalar]], list[Scalar]], y: list[Scalar], h: float) -> list[Scalar]:
    """Return the state after a step of the classical Runge-Kutta method."""

    def moved(k: list[Scalar], part: float) -> list[Scalar]:
        return [a + part * b for a, b in zip(y, k, strict=True)]

    k1 = rates(y)
    k2 = rates(moved(k1, h / 2))
    k3 = rates(moved(k2, h / 2))
    k4 = rates(moved(k3, h))
    sums = [a + 2.0 * b + 2.0 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
    return moved(sums, h / 6.0)


def within(angle: Scalar) -> Scalar:
    """Return an angle of at most 5 pi within pi, by whole turns."""
    for _ in range(2):
        angle = where(angle > math.pi, angle - 2 * math.pi, angle)
        angle = where(angle < -math.pi, angle + 2 * math.pi, angle)
    return angle


# --- Pendulum: velocity first, with bounds of torque and velocity ---


def pendulum() -> Task:
    """Return Pendulum-v1: a pendulum is swung up by torques of at most 2 N m. Its angle is zero upright."""
    dt, gravity, torque, fastest = 0.05, 10.0, 2.0, 8.0

    def advance(now: Moment) -> tuple[list[Scalar], list[Scalar]]:
        (angle,), (rate,), (u,) = now.q, now.qd, now.action
        rate = clip(rate + (3 * gravity / 2 * sin(angle) + 3.0 * u) * dt, -fastest, fastest)
        return [angle + rate * dt], [rate]

    def reward(now: Moment) -> Scalar:
        (angle,), (rate,), (u,) = now.before.q, now.before.qd, now.action  # type: ignore[union-attr]
        angle = atan2(sin(angle), cos(angle))
        return -(angle * angle + 0.1 * (rate * rate) + 0.001 * (u * u))

    def reset(draw: Draw) -> dict[str, Scalar]:
        return {"q": [draw.uniform(-math.pi, math.pi)], "qd": [draw.uniform(-1.0, 1.0)]}

    return Task(
        name="Pendulum",
        motion=Equations(1, 1, advance, dt, upright_rod()),
        actions=Continuous((-torque,), (torque,), scaled=False),
        observation=lambda now: [cos(now.q[0]), sin(now.q[0]), now.qd[0]],
        reward=reward,
        reset=reset,
        max_steps=200,
        low=(-1.0, -1.0, -fastest),
        high=(1.0, 1.0, fastest),
    )


# --- Mechanisms with the same coordinates and equations, for pictures and recordings ---


def cart_with_pole(half: float, pole: float, cart: float, farthest: float) -> System:
    """Return a cart on a slide with an upright pole, whose angle grows clockwise."""
    moment = pole * (2.0 * half) ** 2 / 12.0
    return _planar("cart_pole", [
        Body("cart", cart, shapes=(Shape("box", (0.4, 0.2, 0.2)),)),
        Body("pole", pole, (0.0, half, 0.0), (moment, 0.0, moment, 0.0, 0.0, 0.0), shapes=(
            Shape("box", (0.06, 2.0 * half, 0.06), Placement((0.0, half, 0.12))),)),
    ], [
        Joint("slide", "prismatic", GROUND, "cart", axis=(1.0, 0.0, 0.0), limits=Limits((-farthest,), (farthest,))),
        Joint("hinge", "revolute", "cart", "pole", axis=(0.0, 0.0, -1.0)),
    ], GRAVITY)  # fmt: skip


def hanging_links(count: int) -> System:
    """Return hanging links of 1 m and 1 kg, each with a moment of inertia of 1 kg m^2 about its center of mass."""
    names = [f"link{k + 1}" for k in range(count)]
    return _planar("acrobot", [
        Body(x, 1.0, (0.0, -0.5, 0.0), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0), shapes=(
            Shape("box", (0.12, 1.0, 0.12), Placement((0.0, -0.5, 0.12 * k))),))
        for k, x in enumerate(names)
    ], [
        Joint(f"joint{k + 1}", "revolute", names[k - 1] if k else GROUND, x, axis=(0.0, 0.0, 1.0), placement=Placement(
            (0.0, -1.0, 0.0) if k else (0.0, 0.0, 0.0)))
        for k, x in enumerate(names)
    ], GRAVITY)  # fmt: skip


def upright_rod() -> System:
    """Return a uniform rod of 1 m and 1 kg, upright at an angle of zero."""
    return _planar("pendulum", [
        Body("rod", 1.0, (0.0, 0.5, 0.0), (1 / 12, 0.0, 1 / 12, 0.0, 0.0, 0.0), shapes=(
            Shape("box", (0.1, 1.0, 0.1), Placement((0.0, 0.5, 0.0))),)),
    ], [Joint("hinge", "revolute", GROUND, "rod", axis=(0.0, 0.0, 1.0))], 10.0)  # fmt: skip


def _planar(name: str, bodies: list[Body], joints: list[Joint], gravity: float) -> System:
    return System(build_mechanism(name, bodies, joints, gravity=(0.0, -gravity, 0.0)))
