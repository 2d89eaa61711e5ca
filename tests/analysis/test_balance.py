"""Tests of src/kinetree/analysis/balance.py: torques at rest over the workspace, with and without springs."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree import GROUND, Body, Joint
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
