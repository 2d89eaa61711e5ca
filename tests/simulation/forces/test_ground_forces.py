"""The ground as a spring and a damper."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError, UnknownNameError
from tolerance import assert_close

BALL = kt.System(
    kt.assemble(
        "ball", [kt.Body("ball", 1.7, inertia=(0.1, 0.1, 0.1, 0, 0, 0))], [kt.Joint("root", "free", "ground", "ball")]
    )
)
FEET = kt.GroundForce("ball", (0.0, 0.0, -0.2), stiffness=3000.0, damping=140.0, friction=0.6)


def test_foot_sinks_by_its_load() -> None:
    """Come to rest at the depth m g / k."""
    start = BALL.neutral()
    start[2] = 0.21
    run = kt.simulate(BALL, start, forces=FEET, times=[0.0, 2.0])
    assert_close(run.q[-1, 2], 0.2 - 1.7 * 9.81 / 3000.0, 1e-9, "height at rest")


def test_friction_opposes_the_velocity() -> None:
    """Slide with a deceleration of mu g, and push only where the point is below the ground."""
    arm = kt.System(kt.assemble("block", [kt.Body("block", 1.7)], [
        kt.Joint("x", "prismatic", "ground", "block", axis="x")]))  # fmt: skip
    held = kt.GroundForce("block", (0.0, 0.0, -0.1), stiffness=1000.0, friction=0.3)
    run = kt.simulate(arm, [0.0], [2.0], duration=0.5, forces=held)
    assert_close(run["qdd"][0, 0], -0.3 * 100.0 / 1.7, 1e-4, "deceleration")
    free = kt.GroundForce("block", (0.0, 0.0, -0.1), stiffness=1000.0, friction=0.3, height=-0.11)
    assert_close(
        kt.simulate(arm, [0.0], [2.0], duration=0.5, forces=free).qd[-1, 0], 2.0, 1e-15, "velocity without contact"
    )


def test_never_pulls_down() -> None:
    """Push by zero while the foot leaves quickly, although the damper would pull."""
    start = BALL.neutral()
    start[2] = 0.199
    run = kt.simulate(BALL, start, [0, 0, 0, 0, 0, 2.0], times=[0.0, 1e-4], forces=FEET)
    assert_close(run["qdd"][0, 5], -9.81, 1e-12, "acceleration while it leaves")


def test_wrong_arguments_are_refused() -> None:
    """Name the faulty argument of a ground force."""
    with pytest.raises(InputError, match="the friction of GroundForce on 'ball' is -0.1"):
        kt.GroundForce("ball", stiffness=1.0, friction=-0.1)
    with pytest.raises(InputError, match="GroundForce acts on the ground"):
        kt.GroundForce("ground", stiffness=1.0)
    with pytest.raises(InputError, match="slip_speed"):
        kt.GroundForce("ball", stiffness=1.0, slip_speed=0.0)
    with pytest.raises(UnknownNameError, match="GroundForce: no body 'bal'; did you mean 'ball'"):
        kt.simulate(BALL, duration=1.0, forces=kt.GroundForce("bal", stiffness=1.0))
    assert math.isclose(np.linalg.norm(FEET.point), 0.2)
