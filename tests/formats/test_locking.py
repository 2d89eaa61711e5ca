"""`kt.reduced`: locked joints, with bodies merged or kept, in trees and closed mechanisms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree import InputError, System
from kinetree.joints import kind
from kinetree.model import Coupling
from strategies import ALL, examples, mechanisms
from tolerance import assert_close


@given(mechanisms(ALL, least=2, most=6, armature=False), st.integers(0, 2**20), st.sampled_from(["merge", "keep"]))
@examples(60)
def test_a_tree_with_locked_joints_is_the_tree_at_rest_there(mechanism, seed, fixed):
    """Lock random joints, and find poses, masses and the torques of the other joints at any motion of these."""
    rng = np.random.default_rng(seed)
    whole = System(mechanism)
    q, qd = whole.random_state(rng)
    qdd, free = rng.normal(size=mechanism.nv), np.ones(mechanism.nv, dtype=bool)
    lock, coordinates = {}, np.ones(mechanism.nq, dtype=bool)
    for joint, at, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True):
        if kind(joint.kind).NV and rng.random() < 0.5:
            lock[joint.name] = q[at]
            free[dofs], coordinates[at] = False, False
    arm = kt.reduced(whole, lock, fixed=fixed)
    assert arm.nv == free.sum() and len(arm.bodies) == (sum(kind(j.kind).NV > 0 for j in arm.joints) if fixed == "merge"
                                                        else len(whole.bodies))  # fmt: skip
    qd, qdd = qd * free, qdd * free
    for body in whole.bodies:
        pose = np.asarray(whole.pose(q, body.name))
        assert_close(arm.pose(q[coordinates], body.name), pose, 1e-12 * max(1.0, np.abs(pose).max()), "pose")
    tau = whole.inverse_dynamics(q, qd, qdd)
    found = arm.inverse_dynamics(q[coordinates], qd[free], qdd[free])
    assert_close(found, tau[free], 1e-12 * max(np.abs(tau).max(initial=0.0), 1.0), "torques")


def test_a_closed_mechanism_with_a_locked_joint():
    """Lock a crank of a five-bar, and find the accelerations of the five-bar with a coupling that holds it."""
    bars = kt.load("five_bar")
    m = bars.mechanism
    names = [j.name for j in m.joints]
    q = bars.assemble()
    held = replace(m, couplings=(Coupling("hold", names[0], (), float(q[0])),))
    peer = System(held)
    arm = kt.reduced(bars, {names[0]: q[0]})
    assert arm.nv == bars.nv - 1 and len(arm.mechanism.loops) == 1 and names[0] not in [j.name for j in arm.joints]
    qd = peer.closing_speed(q, np.linspace(0.2, 1.1, bars.nv))
    tau = np.linspace(-1.0, 2.0, bars.nv)
    expected = peer.forward_dynamics(q, qd, tau)
    assert_close(arm.forward_dynamics(q[1:], qd[1:], tau[1:]), expected[1:], 1e-9 * np.abs(expected).max(), "motion")
    assert_close(arm.pose(q[1:], m.bodies[0].name), bars.pose(q, m.bodies[0].name), 1e-14, "locked crank")


def test_couplings_springs_and_drives_of_locked_joints():
    """Lock joints of couplings: the offset takes the locked coordinate, and impossible positions are refused."""
    train = kt.load("gear_train")
    (first, *_) = train.mechanism.couplings
    master, follower = first.terms[0][0], first.joint
    with pytest.raises(
        InputError, match=f"joint '{follower}' follows '{master}' by coupling .*; lock '{master}' instead"
    ):
        kt.reduced(train, {follower: 0.1}, fixed="keep")
    arm = kt.load("planar_3r").mechanism
    one, two, three = (j.name for j in arm.joints)
    coupled = replace(arm, couplings=(Coupling("c", three, ((one, 2.0), (two, -1.0)), 0.25),))
    (coupling,) = kt.reduced(coupled, {two: 0.5}).couplings
    assert (coupling.terms, coupling.offset) == (((one, 2.0),), -0.25)
    assert kt.reduced(coupled, {one: 0.1, two: 0.2, three: 0.25}).couplings == ()
    with pytest.raises(InputError, match="joint 'joint3' is locked at 1, but coupling 'c' puts it at 0.25"):
        kt.reduced(coupled, {one: 0.1, two: 0.2, three: 1.0})


@pytest.mark.parametrize(("name", "lock", "options", "message"), [
    ("planar_2r", {"joint9": 0.0}, {}, "no joint 'joint9'; did you mean"),
    ("planar_2r", {"joint1": [0.0, 1.0]}, {}, "the coordinate of joint 'joint1' has 2 numbers; a revolute joint has 1"),
    ("planar_2r", {"joint1": float("nan")}, {}, "the coordinate of joint 'joint1' is nan"),
    ("planar_2r", ["joint1"], {}, r"lock is \['joint1'\]; give coordinates by joint"),
    ("planar_2r", {}, {"fixed": "weld"}, "fixed must be one of merge, keep, not 'weld'"),
    ("press", {"main_bearing": 0.0}, {}, 'press\' has free parameters .*; give fixed="keep", or fix them'),
    ("four_bar", {"a": 0.3, "b": 0.1, "c": 2.0}, {}, "loop 'pin' does not close with these joints locked"),
])  # fmt: skip
def test_what_cannot_be_locked_is_named(name, lock, options, message):
    """Read what is wrong and what to do."""
    arm = kt.load(name)
    if name == "four_bar":
        lock = dict(zip([j.name for j in arm.joints], lock.values(), strict=True))
    with pytest.raises((InputError, kt.UnknownNameError), match=message):
        kt.reduced(arm, lock, **options)


def test_keyframes_keep_what_is_free():
    """Lock a joint: keyframes keep the states of the other joints and the controls of their drives."""
    arm = kt.load("planar_2r").mechanism
    one, two = (j.name for j in arm.joints)
    drives = tuple(kt.Actuator(f"{name}_motor", name) for name in (one, two))
    key = kt.Keyframe("home", {one: 0.3, two: -0.4}, {one: 0.1, two: 0.2}, {"joint1_motor": 5.0, "joint2_motor": 7.0})
    whole = replace(arm, actuators=drives, keyframes=(key,))
    (kept,) = kt.reduced(System(whole), {one: 0.3}).mechanism.keyframes
    assert (kept.q, kept.qd, kept.control) == (((two, (-0.4,)),), ((two, (0.2,)),), (("joint2_motor", (7.0,)),))
