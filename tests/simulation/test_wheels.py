"""Wheels that are added to mechanisms: kinematics, torques, and the robot CHARMIE on its base."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close

WHEELS = {"radius": 0.076, "mass": 1.1, "track": 0.47}


def platform() -> kt.Mechanism:
    """Return a box on a planar joint, whose origin is 0.2 m above the floor."""
    body = kt.Body("box", 20.0, (0.02, 0.0, 0.1), (0.6, 0.8, 1.0, 0.0, 0.0, 0.0))
    joint = kt.Joint("base", "planar", kt.GROUND, "box", kt.Placement((0.0, 0.0, 0.2)))
    return kt.build_mechanism("platform", [body], [joint])


def test_mecanum_wheels_under_a_planar_platform():
    """Find the rates of the wheels, the accelerations by their torques, and mobility 3."""
    made = kt.with_mecanum_wheels(platform(), "box", wheelbase=0.44, center=(0.05, 0.0, -0.1), **WHEELS)
    base = kt.System(made)
    q = base.assemble()
    x, y, w, s, r = 0.7, -0.4, 0.9, (0.47 + 0.44) / 2, 0.076
    qd = base.consistent_speeds(q, {"base.x": x, "base.y": y, "base.angle": w})
    side = y + 0.05 * w  # at the middle of the wheels
    rates = np.array([x - side - s * w, x + side + s * w, x + side - s * w, x - side + s * w]) / r
    names = [j.name for j in base.joints]
    assert names == ["base", "front_left", "front_right", "rear_left", "rear_right"]
    assert_close(qd, [x, y, w, *rates], 1e-12, "velocities")
    assert (base.doctor(q).mobility, base.doctor(q).positions) == (3, 7)
    qdd = base.forward_dynamics(q, np.zeros(7), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    mass = 20.0 + 4 * 1.1 + 4 * 1.1 / 2
    assert_close(qdd[0], 4.0 / r / mass, 1e-11, "straight ahead")


def test_wheels_that_cannot_be_are_refused():
    """Name the number or the axis that is wrong."""
    with pytest.raises(InputError, match="the radius of the wheels is -0.1; give more than zero"):
        kt.with_driven_axle(platform(), "box", radius=-0.1, track=0.4, mass=1.0)
    with pytest.raises(InputError, match="forward is 'w'; expected one of x, y, z, -x, -y, -z"):
        kt.with_driven_axle(platform(), "box", radius=0.1, track=0.4, mass=1.0, forward="w")
    with pytest.raises(InputError, match="forward is 'z' and up is 'z'; expected two perpendicular axes"):
        kt.with_driven_axle(platform(), "box", radius=0.1, track=0.4, mass=1.0, forward="z")
    with pytest.raises(kt.UnknownNameError, match="no body 'bax'; did you mean 'box'"):
        kt.with_driven_axle(platform(), "bax", radius=0.1, track=0.4, mass=1.0)


@pytest.mark.slow
def test_charmie_drives_on_its_wheels():
    """Drive CHARMIE ahead and to the left on Mecanum wheels by torques of its wheels alone, its arms held."""
    made = kt.with_mecanum_wheels(
        kt.load("charmie"), "body_3", wheelbase=0.44, center=(0.0, 0.0, 0.076), forward="y", **WHEELS
    )
    robot = kt.System(made)
    q = robot.assemble()
    rest = {j.name: 0.0 for j in robot.joints if j.name.startswith("joint_") and j.kind != "fixed"}
    speeds = rest | {"joint_1": -0.2, "joint_2": 0.5}
    qd = robot.consistent_speeds(q, speeds)
    wheels = ["front_left", "front_right", "rear_left", "rear_right"]
    at = [robot.mechanism.v_slices[[j.name for j in robot.joints].index(name)].start for name in wheels]
    assert_close(0.076 * qd[at], [0.5 - 0.2, 0.5 + 0.2, 0.5 + 0.2, 0.5 - 0.2], 1e-12, "rates of the wheels")
    qdd = robot.consistent_accelerations(q, qd, rest | {"joint_2": 0.3})
    arms = [name for name in rest if name not in ("joint_1", "joint_2", "joint_3")]
    tau = robot.inverse_dynamics(q, qd, qdd, actuated=[*wheels, *arms])
    back = robot.forward_dynamics(q, qd, tau)
    assert_close(back, qdd, 1e-8, "the motion that these torques make")
    assert abs(tau[at]).max() > 0.1
