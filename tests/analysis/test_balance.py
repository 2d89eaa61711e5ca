"""Tests of src/kinetree/analysis/balance.py: torques at rest over the workspace, with and without springs."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree import GROUND, Body, InputError, Joint
from kinetree.model.parts import ForceElement
from sprung_mechanisms import sprung
from tolerance import assert_close

MASS, ARM, HIGH, REACH, GRAVITY = 3.7, 0.43, 0.31, 0.22, 9.81


def pendulum(share: float = 1.0) -> kt.System:
    """Return a pendulum on a spring of zero free length; with a share of 1, k a b = m g l balances it everywhere."""
    bob = Body("bob", MASS, (ARM, 0.0, 0.0), (0.01, 0.02, 0.02, 0.0, 0.0, 0.0))
    stiffness = share * MASS * GRAVITY * ARM / (HIGH * REACH)
    coil = ForceElement(
        "coil", "spring_damper", GROUND, "bob", (0.0, 0.0, HIGH), (REACH, 0.0, 0.0), (("stiffness", stiffness),)
    )
    hinge = Joint("hinge", "revolute", GROUND, "bob", axis=(0.0, 1.0, 0.0))
    return kt.System(kt.build_mechanism("pendulum", [bob], [hinge], forces=[coil], gravity=(0.0, 0.0, -GRAVITY)))


def test_a_spring_of_zero_free_length_balances_a_pendulum():
    """Find a residual of rounding over the whole circle, and the weight without the spring."""
    found = pendulum().balance({"hinge": (-np.pi, np.pi)})
    assert found.q.shape == (61, 1) and found.axes == ("hinge",) and found.units == ("N m",)
    weight = MASS * GRAVITY * ARM
    assert_close(found.peak, [0.0], 1e-14 * weight, "residual of a balanced pendulum")
    assert_close(found.without[:, 0], -weight * np.cos(found.over[0][1]), 1e-13 * weight, "weight")
    assert_close(found.rms_without, [np.sqrt(np.mean((weight * np.cos(found.q)) ** 2))], 1e-12 * weight, "RMS")
    half = pendulum(0.5).balance({"hinge": [0.1, 0.4, 0.8]})
    assert_close(half.residual, half.without / 2, 1e-13 * weight, "half of the spring balances half of the weight")
    assert "pendulum: torques at rest over hinge" in str(found) and "RMS without" in str(found)


def test_a_closed_mechanism_is_balanced_by_its_actuator(tmp_path):
    """Compare the torque that holds a four-bar with the slope of its energy along the crank."""
    system = sprung(tmp_path)
    found = system.balance({"crank": (0.2, 1.4)}, samples=9, parameters={"rate": 90.0})
    assert found.axes == ("crank",) and found.q.shape == (9, 3)
    for q, forces, tau in ((found.q[4], True, found.residual[4]), (found.q[4], False, found.without[4])):
        G = system.independent(q, prefer="crank", parameters={"rate": 90.0}).G[:, 0]
        need = system.gravity_torque(q, forces=forces, parameters={"rate": 90.0})
        assert_close(tau, [G @ need], 1e-11 * np.abs(need).max(), "torque along the motion of the crank")
    other = system.balance({"output": (1.1, 1.3)}, actuated="crank", samples=5)
    assert other.axes == ("crank",)


def test_two_joints_span_a_map():
    """Compute the torques of an arm over two joints, and find those of single positions."""
    arm = kt.load("planar_2r")
    found = arm.balance({"joint1": (-1.0, 1.0), "joint2": [0.1, 0.7, 1.3]}, samples=5)
    assert found.residual.shape == (5, 3, 2) and found.q[4, 1].tolist() == [1.0, 0.7]
    assert_close(found.residual[4, 1], arm.gravity_torque([1.0, 0.7]), 1e-13, "gravity torque")
    assert (found.residual == found.without).all()


def test_unsuitable_ranges_are_refused():
    """Check the messages of missing joints, bounds in the wrong order, and joints that the loops determine."""
    arm = kt.load("planar_2r")
    with pytest.raises(kt.InputError, match="over is {}; give the range of one joint or two"):
        arm.balance({})
    with pytest.raises(kt.InputError, match=r"over: 'joint1' is \(1.0, -1.0\); give the lower bound first"):
        arm.balance({"joint1": (1.0, -1.0)})
    with pytest.raises(kt.InputError, match="over: 'joint1' is 3.0; give two bounds"):
        arm.balance({"joint1": 3.0})
    with pytest.raises(kt.UnknownNameError, match="no joint 'joint3'"):
        arm.balance({"joint3": (0.0, 1.0)})
    with pytest.raises(kt.InputError, match="over: the loops determine 'output'; choose among crank"):
        kt.load("four_bar").balance({"crank": (0.0, 1.0), "output": (0.9, 1.0)})


@pytest.mark.slow
def test_legs_hold_a_platform_on_a_quaternion():
    """Hold a Stewart platform by its legs: the force of one is the change of potential energy with its length."""
    platform = kt.load("stewart")
    held = platform.balance({"leg1": (0.7487, 0.7493)}, samples=3)
    assert held.axes == tuple(f"leg{k}" for k in range(1, 7))
    below, _, above = platform.potential_energy(held.q)
    assert_close(held.without[1, 0], (above - below) / 6e-4, 1e-4, "force of a leg by differences")  # measured: 1.2e-5


def test_shaking_is_the_rate_of_momentum():
    """Compare shaking forces and moments of a mechanism with differences of its momentum, and about another point."""
    bar = kt.load("four_bar")
    run = bar.cycle("crank", speed=10.0)
    found = bar.shaking(run.q, run.qd, run["qdd"])
    rate = np.gradient(np.asarray(run["momentum"]), run.t, axis=0, edge_order=2)
    inner = slice(5, -5)
    assert_close(found.force[inner], -rate[inner, 3:], 1e-3 * found.peaks[0], "force")
    assert_close(found.moment[inner], -rate[inner, :3], 1e-3 * found.peaks[1], "moment")
    about = np.array([0.3, -0.2, 0.1])
    other = bar.shaking(run.q, run.qd, run["qdd"], about=about)
    assert_close(other.moment, found.moment - np.cross(about, found.force), 1e-12 * found.peaks[1], "another point")
    text = str(other)
    assert text.startswith("four_bar: shaking force, and shaking moment about (0.3, -0.2, 0.1)")
    with pytest.raises(InputError, match=r"about is \(1, 2\); give a point"):
        bar.shaking(run.q, run.qd, run["qdd"], about=(1, 2))


def test_shaking_is_what_the_ground_feels():
    """Add up the reactions at the ground of a floating and of a fixed arm: inertia, and the weight."""
    arm = kt.load("puma560")
    q, qd = arm.random_state(4, 20)
    qdd = np.random.default_rng(5).normal(size=qd.shape)
    found = arm.shaking(q, qd, qdd)
    wrench = arm.reactions(q, qd, qdd)[:, 0]  # on the first link, at its origin, which is that of the ground
    T = np.asarray(arm.pose(q, arm.bodies[0].name))
    force = np.einsum("nij,nj->ni", T[:, :3, :3], wrench[:, 3:])
    moment = np.einsum("nij,nj->ni", T[:, :3, :3], wrench[:, :3]) + np.cross(T[:, :3, 3], force)
    mass = sum(b.mass for b in arm.bodies)
    weight = mass * np.array(arm.mechanism.gravity)
    assert_close(-found.force, force + weight, 1e-11 * np.abs(force).max(), "force")
    center = np.asarray(arm.center_of_mass(q))
    assert_close(-found.moment, moment + np.cross(center, weight), 1e-10 * np.abs(moment).max(), "moment")


def test_the_four_bar_that_does_not_shake():
    """Place counterweights by an optimization and find those of [Berkof1969]: m1 r1 = m2 (1 - r2/a2) a1, and so on."""
    bar = kt.with_free(kt.load("four_bar"), "com.crank.x", "com.output.x")
    best = kt.optimize(
        bar, over={"com.crank.x": (-0.2, 0.1), "com.output.x": (-0.2, 0.1)}, minimize="force",
        measures={"force": kt.rms("shaking_force"), "moment": kt.peak("shaking_moment.z")},
        motion={"crank": kt.Hold(speed=10.0)}, duration=0.2 * np.pi, progress=False,
    )  # fmt: skip
    assert best.measures["force"] < 1e-8
    assert_close(best.values["com.crank.x"], -5.0 * 0.5 * 0.038 / 1.5, 1e-9, "counterweight of the crank")
    assert_close(best.values["com.output.x"], -5.0 * 0.5 * 0.1152 / 3.0, 1e-9, "counterweight of the output")
    with pytest.raises(kt.UnknownNameError, match="axis of 'shaking_force'"):
        kt.optimize(bar, over={"com.crank.x": (-0.2, 0.1)}, minimize=kt.rms("shaking_force.w"),
                    motion={"crank": kt.Hold(speed=10.0)}, duration=0.5)  # fmt: skip
