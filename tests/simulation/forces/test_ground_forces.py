"""The ground as a spring and a damper."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kinetree as kt
from kinetree.errors import InputError, UnknownNameError
from tolerance import assert_close

BALL = kt.System(
    kt.build_mechanism(
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
    arm = kt.System(kt.build_mechanism("block", [kt.Body("block", 1.7)], [
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


def test_a_rotated_world_has_rotated_motions() -> None:
    """Rotate ground, gravity and start by the same rotation, and find the motion rotated."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        turn = Rotation.from_rotvec(rng.normal(size=3))
        R = turn.as_matrix()
        up = R[:, 2] * rng.uniform(0.3, 4.0)
        mechanism = replace(BALL.mechanism, gravity=tuple(-9.81 * R[:, 2]))
        start, speeds = BALL.neutral(), np.array([0.3, -0.2, 0.4, 0.7, -1.1, -0.4])
        start[:3] = 0.11, -0.07, 0.195
        feet = replace(FEET, point=(0.03, -0.02, -0.2), height=0.013)
        expected = kt.simulate(BALL, start, speeds, forces=feet, times=[0.0, 0.1, 0.4])
        turned = np.concatenate([R @ start[:3], turn.as_quat()])  # velocities are in the body's axes
        run = kt.simulate(mechanism, turned, speeds, forces=replace(feet, up=tuple(up)), times=[0.0, 0.1, 0.4])
        assert_close(run.q[:, :3], expected.q[:, :3] @ R.T, 1e-9, "positions")


@pytest.mark.parametrize("letter", ["y", "-x"])
def test_a_slope_accelerates_a_block_by_the_closed_form(letter) -> None:
    """Slide down a slope in a world whose gravity is along any axis, with g (sin a - mu cos a)."""
    angle, mu = 0.5, 0.2
    e = {"y": np.array([0.0, 1.0, 0.0]), "-x": np.array([-1.0, 0.0, 0.0])}[letter]
    across = np.array([0.0, 0.0, 1.0])
    normal, down = np.cos(angle) * e + np.sin(angle) * across, np.cos(angle) * across - np.sin(angle) * e
    block = replace(BALL.mechanism, gravity=tuple(-9.81 * e))
    ground = kt.GroundForce("ball", stiffness=5e3, damping=200.0, friction=mu, up=tuple(normal), slip_speed=1e-4)
    start = -normal * 1.7 * 9.81 * np.cos(angle) / 5e3  # at the depth of rest
    at, speeds = [*start, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, *(0.1 * down)]
    run = kt.simulate(block, at, speeds, times=[0.0, 0.3], forces=ground)
    exact = 0.1 * 0.3 + 0.5 * 9.81 * (np.sin(angle) - mu * np.cos(angle)) * 0.09
    assert_close((run.q[-1, :3] - start) @ down, exact, 1e-6, "distance down the slope [m]")
    assert_close((run.q[-1, :3] - start) @ normal, 0.0, 1e-9, "distance from the slope [m]")
    flat = replace(ground, up=letter)
    assert_close(flat.up, e, 0.0, "direction by its letter")


def test_a_ground_that_gravity_does_not_pull_to_is_refused() -> None:
    """Name the direction that is missing where gravity is along y, and a direction that is none."""
    upright = replace(BALL.mechanism, gravity=(0.0, -9.81, 0.0))
    with pytest.raises(InputError) as error:
        kt.simulate(upright, duration=0.1, forces=FEET)
    assert str(error.value) == (
        "GroundForce on 'ball' pushes along z, but the gravity (0, -9.81, 0) of 'ball' does not pull against it; give "
        "the direction out of the ground, such as up=(0, 9.81, 0)"
    )
    start = BALL.neutral()
    start[1] = 0.19
    feet = replace(FEET, point=(0.0, -0.2, 0.0), up="y")
    run = kt.simulate(upright, start, forces=feet, times=[0.0, 2.0])
    assert_close(run.q[-1, 1], 0.2 - 1.7 * 9.81 / 3000.0, 1e-9, "height at rest along y")
    with pytest.raises(InputError, match="the up of GroundForce on 'ball' is zero; give a direction out of the ground"):
        kt.GroundForce("ball", stiffness=1.0, up=(0.0, 0.0, 0.0))
    with pytest.raises(kt.ModelError, match="'w' is not an axis"):
        kt.GroundForce("ball", stiffness=1.0, up="w")


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
