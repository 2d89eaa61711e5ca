"""Assembly: closed positions with joints held, assembly modes, and the errors of loops that do not close."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import kinetree as kt
import strategies
from closed_mechanisms import closed_mechanisms
from kinetree import joints
from kinetree.errors import AssemblyError, InputError, UnknownNameError
from kinetree.model import GROUND
from kinetree.model.mechanism import resolve_parts
from planar_loops import CRANK_ROCKER, at, chain, free_rod, pin, rod, two_bars
from tolerance import assert_close

CLOSED = ("four_bar", "hoeken", "slider_crank", "spatial_slider_crank", "five_bar", "three_rrr", "parallelogram")


def gap(system: kt.System, q) -> float:
    """Return the largest residual."""
    return float(np.abs(system.closure_residual(q)).max())


@pytest.mark.parametrize("name", CLOSED)
def test_closes_with_a_joint_exactly_in_place(name):
    """Close library mechanisms with their first joint slightly off the guess, and find its value bit for bit."""
    system = kt.load(name)
    first = system.joints[0].name
    start = system.assemble()
    q = system.assemble(start, {first: start[0] + 0.0371})
    assert q[0] == start[0] + 0.0371
    assert_close(system.closure_residual(q), np.zeros(len(system.closures)), 1e-12, name)


def test_hold_by_name_keeps_what_the_guess_has():
    """Hold the crank of the published four-bar by name, and find the angles of the hand calculation: 130.54 degrees."""
    system = kt.load("crank_rocker")
    q = system.assemble(CRANK_ROCKER, "crank")
    assert q[0] == 0.0
    # rocker and coupler of 0.13 and 0.1 m over a base of 0.1 m, by the law of cosines
    angle = math.pi - math.acos((0.13**2 + 0.1**2 - 0.1**2) / (2 * 0.13 * 0.1))
    assert_close(np.degrees(q[1:]), [math.degrees(angle)] * 2, 1e-9, "angles")
    assert_close(math.degrees(angle), 130.54, 5e-3, "as published")


def test_quaternions_stay_as_they_are_given():
    """Hold the platform of a Stewart platform, a free body, and find its seven coordinates unchanged."""
    system = kt.load("stewart")
    start = system.assemble()
    turn = np.array([0.07, -0.04, 0.05, 0.0])
    turn[3] = math.sqrt(1 - turn @ turn)
    pose = [0.031, -0.022, 0.717, *(1.37 * turn)]  # of any length but zero
    q = system.assemble(start, {"platform": pose})
    assert_close(q[:7], pose, 0.0, "held")
    assert gap(system, q) < 1e-12
    free = system.assemble(system.integrate(start, np.full(system.nv, 0.03)))
    assert gap(system, free) < 1e-12
    assert_close(np.linalg.norm(free[3:7]), 1.0, 1e-14, "unit quaternion")


def test_one_axis_of_a_joint_can_be_held():
    """Hold one angle of a universal joint and let the other close."""
    system = kt.load("spatial_slider_crank")
    start = system.assemble()
    q = system.assemble(start, {"rod.angle1": start[2] - 0.02})
    assert q[2] == start[2] - 0.02 and q[3] != start[3]
    assert gap(system, q) < 1e-12


def test_the_way_of_the_guess_is_kept():
    """Move the first of two rhombic four-bars far, where other branches are near, and find all rockers parallel."""
    system = kt.n_four_bars(2)
    for angle in (-1.1, -1.52, 1.3, 7.7):
        q = system.assemble(hold={"rocker0": angle})
        assert_close(q, [angle, -angle, angle, -angle, angle], 1e-12, f"{angle}")


def test_far_guesses_are_tried_again():
    """Start a slider-crank where Newton's method stalls, at a gap that does not decrease, and still close it."""
    system = two_bars(pin(0.43, 0.21))
    q = system.assemble([math.atan2(0.21, 0.43), 0.0])  # stretched toward the pin: no step turns the knee
    assert gap(system, q) < 1e-12


def test_restarts_are_near_the_guess_first():
    """Start stretched toward a pin, and find the chain closed less than half a rotation from there."""
    loop = kt.Loop("pin", "revolute", GROUND, "b3", at(1.31, 0.4), at(0.3))
    system = chain(0.7, 0.5, 0.4, 0.3, loops=[loop])
    start = np.array([math.atan2(0.4, 1.31), 0.0, 0.0, 0.0])
    q = system.assemble(start)
    assert gap(system, q) < 1e-12
    assert np.abs(q - start).max() < math.pi


def test_free_parameters_can_be_given():
    """Assemble for a length other than the nominal one."""
    system = free_rod()
    q = system.assemble(hold={"j0": 0.4}, parameters=[0.45])
    tip = np.array([0.7 * math.cos(0.4), 0.7 * math.sin(0.4)]) + 0.5 * np.array([math.cos(q.sum()), math.sin(q.sum())])
    assert_close(np.linalg.norm(tip - [0.31, 0.12]), 0.45, 1e-12, "rod")
    with pytest.raises(InputError, match=r"parameters have shape \(3, 1\); expected one set, \[1\]"):
        system.assembly_modes(parameters=[[0.45], [0.5], [0.55]])


def test_a_tree_is_closed_already():
    """Return the guess of a mechanism without loops, with held joints at their values."""
    assert_close(kt.load("planar_2r").assemble(hold={"joint2": 0.4}), [0.0, 0.4], 0.0)


def test_the_two_modes_of_a_four_bar():
    """Find both modes of a four-bar, mirror images in the diagonal, that of the guess first; always the same."""
    system = kt.load("four_bar")
    modes = system.assembly_modes(hold={"crank": 0.7})
    assert len(modes) == 2
    assert_close(modes[0], system.assemble(hold={"crank": 0.7}), 0.0, "first")
    tip = 0.038 * np.array([math.cos(0.7), math.sin(0.7)]) + [0.0895, 0.0]
    slope = math.atan2(tip[1], tip[0])
    assert_close(modes[0][1] + modes[1][1], 2 * slope, 1e-9, "mirrored")
    for one, other in zip(modes, system.assembly_modes(hold={"crank": 0.7}), strict=True):
        assert_close(one, other, 0.0, "again")
        assert gap(system, one) < 1e-12 and one[0] == 0.7


@everyday.long
def test_modes_of_parallel_robots():
    """Find more modes for robots with more loops, all different, with the independent joints held."""
    five = kt.load("five_bar")
    q = five.assemble()
    assert len(five.assembly_modes()) == 2, "two circles meet in two points"
    assert len(five.assembly_modes(hold=("left_forearm", "right_forearm"))) >= 2
    robot = kt.load("three_rrr")
    modes = robot.assembly_modes(hold=("joint1", "joint4", "joint6"), tries=200)
    assert 2 <= len(modes) <= 6, "a planar three-legged platform has at most six"
    for k, one in enumerate(modes):
        assert gap(robot, one) < 1e-12
        assert np.abs(one - modes[0]).max() < 2 * math.pi
        for other in modes[:k]:
            assert np.abs(robot.poses(one) - robot.poses(other)).max() > 1e-4
    assert_close(five.assembly_modes()[0], q, 1e-12, "the guess's own")


def test_modes_need_enough_held():
    """Compute modes with nothing held and read what to hold."""
    with pytest.raises(InputError, match="with nothing held, 1 degree of freedom can still move, .* such as crank"):
        kt.load("four_bar").assembly_modes(hold=())


def test_a_rod_longer_than_the_reach():
    """Read the gap in mm, the distance of its ends, and that no held joint is the cause."""
    with pytest.raises(AssemblyError) as error:
        two_bars(rod("strut", 1.9)).assemble()
    reach = 1.2 + math.hypot(0.31, 0.12)
    text = str(error.value)
    assert text.startswith(f"chain: at best, loop 'strut' stays open by {1e3 * (1.9 - reach):.3g} mm")
    assert f"(its ends are {reach:.6g} m apart, its length is 1.9 m); check lengths" in text
    with pytest.raises(AssemblyError, match="at best, even with nothing held, loop 'strut' stays open by 368 mm"):
        two_bars(rod("strut", 1.9)).assemble(hold={"j0": 0.2})


def test_rods_that_contradict_each_other():
    """Put two rods of different lengths between the same points and read both names."""
    with pytest.raises(AssemblyError) as error:
        two_bars(rod("long", 0.64), rod("short", 0.6), rod("other", 0.9, 0.0, 0.5)).assemble()
    text = str(error.value)
    assert "loop 'long' and loop 'short' contradict each other: without any one of them the rest closes" in text
    assert "loop 'long' stays open by 20 mm" in text and "loop 'short' stays open by 20 mm" in text


def test_an_angle_that_cannot_close():
    """Rotate a loop against the only axis of the mechanism, and read the gap in degrees."""
    tilt = strategies.nested([[1, 0, 0], [0, math.cos(0.1), -math.sin(0.1)], [0, math.sin(0.1), math.cos(0.1)]])
    loop = kt.Loop("tilted", "revolute", GROUND, "b1", kt.Placement((0.4, 0.3, 0.0), tilt), at(0.5))
    with pytest.raises(AssemblyError, match="at best, loop 'tilted' stays open by 5.73 deg; check lengths"):
        two_bars(loop).assemble()


def test_what_is_held_is_the_cause():
    """Hold a rocker beyond its limit position and read the nearest angle, which then closes."""
    system = kt.load("crank_rocker")
    with pytest.raises(AssemblyError) as error:
        system.assemble(hold={"rocker": 0.9})
    text = str(error.value)
    assert text.startswith("crank_rocker: with rocker = 0.9 rad held, loop 'pin' stays open by ")
    assert "with nothing held the loops close; nearest: hold rocker = " in text and text.endswith(" instead of 0.9")
    nearest = float(text.split("hold rocker = ")[1].split()[0])
    # where crank and coupler are stretched out: triangle of 0.15, 0.13 and 0.05 + 0.1 m
    limit = math.pi - math.acos((0.15**2 + 0.13**2 - 0.15**2) / (2 * 0.15 * 0.13))
    assert_close(nearest, limit, 2e-3, "limit position")
    assert gap(system, system.assemble(hold={"rocker": nearest})) < 1e-12


def test_too_many_are_held():
    """Hold two joints of a four-bar and read that one is enough, and the resulting value of the other."""
    system = kt.load("four_bar")
    with pytest.raises(AssemblyError) as error:
        system.assemble(hold={"crank": 0.2, "output": 0.3})
    there = system.assemble(hold={"crank": 0.2})[1]
    text = str(error.value)
    assert "with crank = 0.2 rad, output = 0.3 rad held, loop 'pin' stays open by " in text
    assert "2 degrees of freedom are held and the mechanism has 1; hold only crank: then output = " in text
    assert_close(float(text.split("then output = ")[1].split()[0]), there, 1e-5, "output")


def test_a_locked_mechanism_has_nothing_to_hold():
    """Pin the tip of two bars: the loop closes with nothing held, and otherwise the error gives the reason."""
    system = two_bars(pin(0.43, 0.21), guess={"j0": 0.9, "j1": -1.7})
    assert gap(system, system.assemble()) < 1e-12
    with pytest.raises(AssemblyError, match="but only where they lock the mechanism: its mobility is 0; hold nothing"):
        system.assemble(hold={"j0": 0.1})


def test_names_and_numbers_are_checked():
    """Mistype a joint, give a bad shape, hold an axis of a quaternion, and read what is expected."""
    system = kt.load("four_bar")
    with pytest.raises(UnknownNameError, match="no joint 'cranc'; did you mean 'crank'"):
        system.assemble(hold="cranc")
    with pytest.raises(InputError, match=r"q has shape \(2,\); expected \[..., 3\]"):
        system.assemble([0.0, 1.0])
    with pytest.raises(InputError, match=r"q\[1\] is nan; give finite numbers"):
        system.assemble([0.0, math.nan, 1.0])
    with pytest.raises(InputError, match="'crank' is given nan; give finite numbers"):
        system.assemble(hold={"crank": math.nan})
    with pytest.raises(InputError, match="tolerance is 0; expected more than 0"):
        system.assemble(tolerance=0)
    with pytest.raises(InputError, match="hold 'platform.wx': joint 'platform' rotates by a quaternion; hold the"):
        kt.load("stewart").assemble(hold="platform.wx")
    with pytest.raises(InputError, match=r"'rod' is given shape \(\); expected 2 numbers"):
        kt.load("spatial_slider_crank").assemble(hold={"rod": 0.3})


def test_a_tolerance_below_rounding_is_refused():
    """Require more digits than doubles have and read which tolerance is possible."""
    with pytest.raises(AssemblyError, match=r"the loops close to .* m\), and 1.0e-30 is required; give a tolerance of"):
        kt.load("three_rrr").assemble(hold={"joint1": 1.13}, tolerance=1e-30)


@strategies.examples(20)
@given(closed_mechanisms(), st.integers(0, 2**32 - 1))
def test_random_mechanisms_come_back(drawn, seed):
    """Displace closed positions of random joints and loops slightly, and close them again with unit quaternions."""
    mechanism, q = drawn
    system = kt.System(mechanism)
    nudge = 1e-3 * np.random.default_rng(seed).normal(size=system.nv)
    found = system.assemble(system.integrate(q, nudge))
    assert_close(system.closure_residual(found), np.zeros(len(system.closures)), 1e-12, "gap")
    held = system.joints[0].name
    again = system.assemble(q, held)
    count = joints.kind(system.joints[0].kind).NQ
    assert_close(again[:count], q[:count], 0.0, "held")


def test_nearly_redundant_loops_are_named_where_they_allow_no_less():
    """Name the loops that contradict each other if they close to a larger tolerance than required."""
    m = kt.load("parallelogram").mechanism
    longer = [
        replace(x, placement_a=kt.Placement((0.0, 0.5 + 1e-11, 0.0))) if x.name == "third_pin" else x
        for x in resolve_parts(m.loops, m.values())
    ]
    system = kt.System(replace(m, loops=tuple(longer)))
    with pytest.raises(
        AssemblyError, match=r"nearly redundant equations of 'second_pin' and 'third_pin' allow no less"
    ):
        system.assemble()
    assert np.isfinite(system.assemble(tolerance=1e-10)).all()


def test_random_starts_are_drawn_only_if_needed(monkeypatch):
    """Assemble from a guess that closes, without drawing any of the random starts."""

    def refused(*_):
        raise AssertionError("a random start was drawn")

    monkeypatch.setattr("kinetree.analysis.loops.samples.random_coordinates", refused)
    bars = kt.load("four_bar")
    assert_close(bars.closure_residual(bars.assemble()), np.zeros(5), 1e-12)


@pytest.mark.parametrize("sequence", ["zyx", "zxz"])
def test_loops_close_from_singular_euler_angles(sequence):
    """Close a loop of a floating mechanism whose root has Euler angles that are singular at zero, such as zxz."""
    bodies = [kt.Body(name, 1.0, (0.1, 0.02, -0.03), (0.02, 0.025, 0.03, 0.001, 0.002, 0.0)) for name in "abc"]
    joints = [
        kt.Joint("root", "free_euler", "ground", "a", sequence=sequence),
        kt.Joint("j", "revolute", "a", "b", kt.Placement((0.3, 0.0, 0.0))),
        kt.Joint("k", "revolute", "b", "c", kt.Placement((0.3, 0.1, 0.0)), axis="y"),
    ]
    places = kt.Placement((0.1, 0.5, 0.2)), kt.Placement((0.1, 0.2, 0.0))
    rod = kt.Loop("rod", "rod", "a", "c", *places, length=0.6)
    system = kt.System(kt.build_mechanism("euler", bodies, joints, loops=[rod]))
    q = system.assemble()
    assert_close(system.closure_residual(q), [0.0], 1e-12, "the rod")
    still = np.zeros(system.nv)
    falling = system.forward_dynamics(q, still, still)
    assert_close(falling, [0.0, 0.0, -9.81, *still[3:]], 1e-9, "free fall")
