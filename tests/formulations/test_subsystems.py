"""Inverse dynamics subsystem by subsystem, against the whole system at once."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, closed, library_state, motion
from kinetree.errors import InputError, UnknownNameError
from kinetree.formulations.subsystems import inverse_dynamics, subsystems
from kinetree.model import GROUND
from strategies import random_mechanism
from tolerance import assert_close

NAMES = ("four_bar", "slider_crank", "five_bar", "three_rrr", "stewart", "spatial_slider_crank", "gear_train")


@pytest.mark.parametrize("name", everyday.some(NAMES))
def test_subsystems_agree_with_the_system(name):
    """Find the torques and multipliers of the whole system to rounding, with external wrenches."""
    arm, q, qd, qdd = library_state(name)
    w = np.random.default_rng(3).normal(size=(len(arm.bodies), 6))
    found = inverse_dynamics(arm.mechanism, q, qd, qdd, DRIVES[name], w)
    whole = arm.actuation(q, qd, qdd, DRIVES[name], wrenches=w)
    scale = max(1.0, np.abs(whole.multipliers).max(), np.abs(whole.tau).max())
    assert_close(found.tau, whole.tau, 1e-11 * scale, "tau")
    settled = whole.unique_multipliers
    assert_close(found.multipliers[settled], whole.multipliers[settled], 1e-11 * scale, "multipliers")


def test_the_four_bar_is_solved_as_in_the_paper():
    """Solve the two links first, which are determinate, then the crank with their multipliers.   [Saha2013] 4"""
    arm, q, qd, qdd = library_state("four_bar")
    crank, other = subsystems(arm.mechanism)
    assert (crank.name, crank.bodies, crank.dofs) == ("crank", ("crank",), (0,))
    assert (other.name, other.bodies, other.dofs) == ("output", ("output", "coupler"), (1, 2))
    first, second = inverse_dynamics(arm.mechanism, q, qd, qdd, ["crank"]).steps
    assert (first.subsystems, first.equations, first.known) == (("output",), 2, ())
    assert set(first.found) == {"pin position x", "pin position y"}
    assert second.subsystems == ("crank",) and second.found == ("tau crank",) and "pin position y" in second.known
    assert str(first) == "output: 2 equations for pin position x, pin position y"
    assert str(second).startswith("crank: 1 equation for tau crank, with pin position")


@everyday.long
def test_a_row_of_four_bars_is_solved_from_its_end():
    """Solve seven bars loop by loop, the far end first: no step has more than two equations."""
    arm = kt.n_four_bars(3)
    q = arm.assemble(np.array([0.4, -0.4, 0.4, -0.4, 0.4, -0.4, 0.4]))
    qd, qdd = motion(arm.mechanism, q)
    found = inverse_dynamics(arm.mechanism, q, qd, qdd, ["rocker0"])
    assert [s.subsystems for s in found.steps] == [("rocker3",), ("rocker2",), ("rocker1",), ("rocker0",)]
    assert max(s.equations for s in found.steps) == 2
    assert_close(found.tau, arm.inverse_dynamics(q, qd, qdd, actuated=["rocker0"]), 1e-11, "tau")


def test_subsystems_that_need_each_other_are_joined():
    """Solve both arms of a five-bar together, and a slider-crank together or by parts, depending on its actuator."""
    arm, q, qd, qdd = library_state("five_bar")
    (step,) = inverse_dynamics(arm.mechanism, q, qd, qdd, DRIVES["five_bar"]).steps
    assert step.subsystems == ("left_crank", "right_crank") and step.equations == 4
    arm, q, qd, qdd = library_state("slider_crank")
    assert len(inverse_dynamics(arm.mechanism, q, qd, qdd, ["crank"]).steps) == 1
    by_parts = inverse_dynamics(arm.mechanism, q, qd, qdd, ["slider"])
    assert [s.subsystems for s in by_parts.steps] == [("crank",), ("slider",)]


@everyday.long
def test_loops_inside_one_subsystem():
    """Close a loop inside a branch and one between branches, and solve the rest after it."""
    kinds = ["revolute", "revolute", "prismatic", "revolute", "universal", "revolute", "revolute"]
    tree = random_mechanism(kinds, [-1, 0, 1, -1, 3, -1, 4], 21)
    mechanism, q = closed(tree, [("rod", "b0", "b2"), ("spherical", "b6", GROUND), ("rod", "b5", "b2")], 22)
    qd, qdd = motion(mechanism, q)
    whole = kt.System(mechanism).actuation(q, qd, qdd, ["j0", "j1", "j3"])
    found = inverse_dynamics(mechanism, q, qd, qdd, ["j0", "j1", "j3"])
    scale = max(1.0, np.abs(whole.tau).max(), np.abs(whole.multipliers).max())
    assert whole.exact
    assert_close(found.tau, whole.tau, 1e-10 * scale, "tau")
    assert_close(found.multipliers, whole.multipliers, 1e-10 * scale, "multipliers")
    order = [s.subsystems for s in found.steps]
    assert sorted(order) == [("j0",), ("j3",), ("j5",)] and order.index(("j5",)) < order.index(("j0",))


def test_mismatched_actuators_are_told():
    """Reject too many actuators, and unknown ones."""
    arm, q, qd, qdd = library_state("four_bar")
    with pytest.raises(
        InputError, match="2 actuated degrees of freedom for 1 of the mechanism; the recursion requires"
    ):
        inverse_dynamics(arm.mechanism, q, qd, qdd, ["crank", "output"])
    with pytest.raises(UnknownNameError, match="actuated: no joint 'pin'; available: crank, output, coupler"):
        inverse_dynamics(arm.mechanism, q, qd, qdd, ["pin"])


def test_dead_centres_are_told():
    """Drive a stretched slider-crank by its slider and read that this cannot hold it; its crank can."""
    arm = kt.load("slider_crank")
    q, rest = np.array([-np.pi / 2, 0.0, 2.0]), np.zeros(3)
    assert np.abs(arm.closure_residual(q)).max() < 1e-15
    inverse_dynamics(arm.mechanism, q, rest, rest, ["crank"])
    with pytest.raises(
        InputError,
        match="do not hold the mechanism in this position: the equations of 'crank' are singular; actuate other joints",
    ):
        inverse_dynamics(arm.mechanism, q, rest, rest, ["slider"])


def test_trees_need_no_steps_between():
    """Find plain inverse dynamics for an arm, one subsystem that is determinate by itself."""
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(1)
    found = inverse_dynamics(arm.mechanism, q, qd, qd, [j.name for j in arm.joints])
    assert len(found.steps) == 1 and found.multipliers.shape == (0,)
    assert_close(found.tau, arm.inverse_dynamics(q, qd, qd), 1e-12, "tau")
