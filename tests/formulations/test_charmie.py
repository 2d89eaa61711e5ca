"""CHARMIE by the formulas of [Goncalves2023] and by closed loops with shared loads: the same torques and wrenches."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps.reproduce.goncalves2023_motion import closed_motion, validation_motion
from kinetree.errors import InputError
from kinetree.formulations.charmie import ACTUATORS, MAIN, SHARE, SIDES, half_forces, inverse_dynamics, tilt, torso
from kinetree.formulations.linear_actuators import balancing_half, sliding_joint
from kinetree.formulations.newton_euler import Load, balance, forward, links
from tolerance import assert_close

TIMES = np.array([0.0, 0.37, 1.3, 2.2, 2.5, 3.1, 4.45, 5.0])
SCALE = 614.0
"""The largest force or torque of the motion [N, N m]."""
AWKWARD = {"D3y": -0.13, "F4y": 0.151, "S4z": 0.47, "F3x": -0.055, "G3x": -0.02, "a4": 0.113, "k4": 977.0, "P5": -17.0}


@cache
def robot() -> kt.System:
    """Return the robot."""
    return kt.load("charmie_complete")


@cache
def both(changed: bool = False):
    """Return the results of the formulas and of the closed loops for the same motion of the actuators."""
    values = (AWKWARD if changed else {}) | {"e": 0.0}
    names = [p.name for p in robot().mechanism.free_parameters]
    declared = robot().mechanism.values()
    numbers = [values.get(name, declared[name]) for name in names]
    mechanism, motion = robot().mechanism.fixed(numbers), validation_motion(TIMES)
    states = closed_motion(robot(), motion, parameters=values)
    loads = robot().loads(
        states.q, states.qd, qdd=states.qdd, actuated=ACTUATORS, share=SHARE, forces=True, parameters=values
    )
    return inverse_dynamics(mechanism, motion), loads, states, mechanism


@everyday.long
@pytest.mark.parametrize("changed", everyday.only([False, True], [True]))
def test_formulas_are_closed_loops(changed):
    """Find the coordinates, the 21 torques and the wrenches at all 47 joints both ways, also for other parameters."""
    paper, loads, states, mechanism = both(changed)
    moving = [j.name for j in mechanism.joints if j.kind != "fixed"]
    assert set(moving) == set(paper.coordinates)
    for k, name in enumerate(moving):
        assert_close(paper.coordinates[name], states.q[:, k], 1e-12, "coordinates")
        if name in paper.joints:
            assert_close(paper.joints[name][1], states.qd[:, k], 1e-12, "velocities")
            assert_close(paper.joints[name][2], states.qdd[:, k], 1e-12, "accelerations")
        if name in ACTUATORS:
            assert_close(paper.torques[name], loads.tau[:, k], 1e-12 * SCALE, "torques of actuators")
    assert set(paper.wrenches) == set(loads.names) and len(loads.names) == 47
    for name in loads.names:
        assert_close(paper.wrenches[name], loads.at(name, axes="world"), 1e-12 * SCALE, "wrenches")


@pytest.mark.slow
def test_native_code_shares_in_the_same_way():
    """Find the same wrenches in a native batch, where auxiliary joints have a little inertia."""
    paper, _, states, _ = both()
    loads = robot().loads(states.q, states.qd, qdd=states.qdd, actuated=ACTUATORS, share=SHARE, forces=True)
    for name in loads.names:
        assert_close(paper.wrenches[name], loads.at(name, axes="world"), 1e-9 * SCALE, "wrenches")


@everyday.long
def test_every_row_of_the_sharing_formulas_holds():
    """Put the wrenches of the closed loops into each row of (36), (38), (40), (42) and (43)."""
    _, loads, states, mechanism = both()
    T, tree = torso(mechanism), links(mechanism, MAIN)
    names = [j.name for j in mechanism.joints if j.kind != "fixed"]
    motion = {n: (states.q[:, k], states.qd[:, k], states.qdd[:, k]) for k, n in enumerate(names) if n in MAIN}
    at = forward(tree, motion, mechanism.gravity)
    index = {link.joint: k for k, link in enumerate(tree)}

    def acting(name: str, body: str, point) -> Load:
        """Return what a body applies at a point to the child of a joint, or to body b of a loop, in its axes."""
        R0 = at[index[body]].R0
        n, f = (np.einsum("...ji,...j->...i", R0, loads.at(name, axes="world")[:, s]) for s in (slice(3), slice(3, 6)))
        return Load(f, n, np.broadcast_to(point, f.shape))

    i, here = tree[index["joint_5"]], at[index["joint_5"]]
    after = [acting(f"joint_6{k}", "joint_5", tree[index[f"joint_6{k}"]].B) for k in "abc"]
    total, torque = balance(i, here, [*after, acting("head_5s", "joint_5", T.E5)])
    head, joint = acting("head_5d", "joint_5", T.G5), acting("joint_5", "joint_5", np.zeros(3))
    fd, mud, fa, mua = -head.f, -head.mu, joint.f, joint.mu
    F4 = np.einsum("...ji,...j->...i", here.R, np.broadcast_to(T.F4 - T.B4, fd.shape))
    angle = tilt(np.broadcast_to(T.G5, F4.shape), F4, 1)
    assert_close(fd + fa, total, 1e-12 * SCALE, "(36), rows 1 to 3")
    turning = np.cross(fd, i.C - T.G5) + np.cross(fa, i.C)
    assert_close(turning[:, 0], torque[:, 0], 1e-12 * SCALE, "(36), row 4")
    assert_close(np.cos(angle) * fd[:, 1], np.sin(angle) * fd[:, 2], 1e-12 * SCALE, "(36), row 5")
    assert_close(fd[:, 0], fa[:, 0], 1e-12 * SCALE, "(36), row 6")
    assert_close((mud + mua)[:, 1:], (torque - turning)[:, 1:], 1e-12 * SCALE, "(38), rows 1 and 2")
    assert_close(mud[:, 1:], mua[:, 1:], 1e-12 * SCALE, "(38), rows 3 and 4")
    assert np.abs(fd[:, 0]).max() > 0.1 and np.abs(mud[:, 1:]).max() > 0.1

    i, here = tree[index["joint_4"]], at[index["joint_4"]]
    d4 = states.q[:, names.index("joint_4")]
    halves = {
        k: balancing_half(T.B3[2] - d4 + T.H4z, T.F3 * [-side, 1, 1], T.a, T.b, T.c, side=side)
        for k, side in SIDES.items()
    }
    rise = np.stack([0 * d4, 0 * d4, T.B3[2] - d4], axis=-1)
    rails = {k: acting(f"rail_4{k}", "joint_4", half.rail - rise) for k, half in halves.items()}
    for k, half in halves.items():
        spring, bar, side = acting(f"foot_4s{k}", "joint_4", 0.0).f, acting(f"bar_4{k}", "joint_4", 0.0), SIDES[k]
        assert_close(spring, half_forces(T, half, side).spring, 1e-12 * SCALE, "(39)")
        assert_close(
            spring[:, 0], -bar.f[:, 0], 1e-12 * SCALE, "(40), row 1: -f_3sra is the force of body 3 on the bar"
        )
        assert_close(spring[:, 2], -rails[k].f[:, 2] - bar.f[:, 2], 1e-12 * SCALE, "(40), row 2")
        arm, tip = half.spring - T.F3 * [-side, 1, 1], half.tip - T.F3 * [-side, 1, 1]
        a5 = spring[:, 2] * arm[:, 0] - spring[:, 0] * arm[:, 2]
        assert_close(a5, -tip[:, 0] * rails[k].f[:, 2], 1e-12 * SCALE, "(40), row 3 with (41)")
    after = [acting("joint_5", "joint_4", T.B4), acting("foot_5d", "joint_4", T.F4), acting("foot_5s", "joint_4", T.S4)]
    known = [Load(load.f, 0 * load.mu, load.point) for load in rails.values()]
    total, torque = balance(i, here, [*after, *known])
    head, joint = acting("head_4d", "joint_4", T.E4), acting("joint_4", "joint_4", np.zeros(3))
    fd, fa, mua = -head.f, joint.f, joint.mu + np.cross(joint.f, here.A)
    angle = tilt(np.broadcast_to(T.E4, rise.shape), T.D3 - rise, 1)
    assert_close(fa[:, 0], total[:, 0], 1e-12 * SCALE, "(42), row 1")
    assert_close(fd[:, 1] + fa[:, 1], total[:, 1], 1e-12 * SCALE, "(42), row 2")
    assert_close(fd[:, 2], total[:, 2], 1e-12 * SCALE, "(42), row 3")
    assert_close(np.cos(angle) * fd[:, 1], np.sin(angle) * fd[:, 2], 1e-12 * SCALE, "(42), row 4")
    left = torque - np.cross(fd, i.C - T.E4) - np.cross(fa, i.C - here.A)
    assert_close(mua[:, :2], left[:, :2], 1e-12 * SCALE, "(43), rows 1 and 2")
    uprights = [-rails[k].mu[:, 2] for k in SIDES]
    assert_close(uprights[0] + uprights[1], left[:, 2], 1e-12 * SCALE, "(43), row 3")
    assert_close(uprights[0], uprights[1], 1e-12 * SCALE, "(43), row 4")
    assert np.abs(uprights[0]).max() > 0.1


def test_impossible_geometry_is_named_with_its_time():
    """Refuse actuators and bars that cannot reach, with the part, the instant and the limits."""
    motion, t = validation_motion(TIMES), TIMES
    x, xd, xdd = motion["actuator_4"]
    words = "actuator_4 is 0.11 m long at t = 3.1 s; expected more than 0.112 m, the distance of its ends across"
    with pytest.raises(InputError, match=words):
        inverse_dynamics(robot().mechanism, motion | {"actuator_4": (np.where(t > 3, 0.11, x), xd, xdd)}, times=t)
    words = r"actuator_5 is 0.572 m long at t = 0 s; expected between 0.232\d* and 0.569\d* m, by the distances of its"
    with pytest.raises(InputError, match=words):
        inverse_dynamics(robot().mechanism, motion | {"actuator_5": (1.43 * x, 1.43 * xd, xdd)}, times=t)
    low = motion | {"actuator_4": (np.where(t > 3, 0.1121, x), xd, xdd)}
    values = robot().mechanism.values() | {"b4": 0.16}
    short = robot().mechanism.fixed([values[p.name] for p in robot().mechanism.free_parameters])
    words = (
        r"bars of the balancing linkage are 0.16 m long, but their tips are -0.22\d* m above .* at t = 3.1 s; expected"
    )
    with pytest.raises(InputError, match=words):
        inverse_dynamics(short, low, times=t)
    with pytest.raises(InputError, match=re.escape("actuator_4 is 0.1 m long in state [1]; expected more than")):
        sliding_joint((np.array([0.4, 0.1]), 0.0, 0.0), [0, -0.12, 0.04], [0, -0.008, 0.134], 0.29)  # type: ignore[arg-type]
    del motion["joint_3"]
    with pytest.raises(InputError, match="the motion has no joint_3; give the motions of all 21 actuators"):
        inverse_dynamics(robot().mechanism, motion)
    with pytest.raises(
        InputError, match="joint 'joint1' is spherical about .* for fixed, prismatic and revolute joints"
    ):
        arm = kt.build_mechanism("ball", [kt.Body("b", 1.0)], [kt.Joint("joint1", "spherical", kt.GROUND, "b")])
        links(arm, ["joint1"])
