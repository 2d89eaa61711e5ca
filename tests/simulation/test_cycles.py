"""Closed cycles of mechanisms with one degree of freedom: torques and reactions of a full revolution."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.model import GROUND
from planar_loops import at, bar, chain, two_bars
from planar_loops import rod as rod_to_ground
from tolerance import assert_close


def crank_rocker() -> kt.System:
    """Return a crank-rocker whose crank makes full revolutions, with a massless rocker."""
    arm = chain(0.21, 0.5, loops=[rod_to_ground("rocker", 0.47, 0.52, 0.11)], guess=[("j0", 0.3), ("j1", 0.6)])
    return kt.System(arm.mechanism)


@pytest.mark.parametrize("speed", everyday.some([8.1, -6.3]))
def test_a_cycle_has_the_torque_and_the_loads_of_the_motion(speed, tmp_path):
    """Turn a crank once, and find angles, torques and reactions of the analyses; save and read the run."""
    arm = crank_rocker()
    run = arm.cycle("j0", speed=speed, samples=73, start=0.2)
    assert (run.method, len(run), run.status) == ("cycle", 73, "finished")
    assert_close(run.t[-1], 2 * np.pi / abs(speed), 1e-15, "the time of a revolution")
    assert_close(run.q[:, 0], 0.2 + speed * run.t, 1e-14, "the crank")
    assert_close(run.qd[:, 0], np.full(73, speed), 0.0, "constant speed")
    assert_close(run["poses"][-1], run["poses"][0], 1e-12, "the end is the start")
    found = arm.loads(run.q, run.qd, qdd=run["qdd"], actuated="j0")
    assert_close(run["control"], found.tau, 1e-10 * np.abs(found.tau).max(), "torque of the drive")
    assert_close(run["reactions"], found.joints, 1e-9 * np.abs(found.joints).max(), "reactions at joints")
    assert_close(run["loop_reactions"], found.cuts, 1e-9 * np.abs(found.cuts).max(), "force of the rocker")
    work = np.trapezoid(run["control"][:, 0] * run.qd[:, 0], run.t)
    assert_close(work, 0.0, 1e-6 * np.abs(run["control"]).max(), "no work in a closed cycle without friction")
    again = kt.read_trajectory(run.save(tmp_path / "cycle.npz"))
    assert np.array_equal(again["control"], run["control"])


@everyday.long
def test_passive_forces_are_part_of_the_cycle_unless_refused():
    """Turn a crank with a damper in its joint: the drive does the work that the damper takes."""
    arm = crank_rocker()
    damped = arm.cycle("j0", speed=4.0, forces=kt.JointDamper("j0", 0.05))
    plain = arm.cycle("j0", speed=4.0)
    assert_close(damped["control"] - plain["control"], np.tile([0.05 * 4.0, 0.0], (361, 1)), 1e-11, "the damper")


@everyday.long
def test_every_set_of_parameters_has_its_cycle():
    """Turn cranks with rods of three lengths in one batch, and find each alone."""
    from kinetree.model.parameters import parse

    loop = kt.Loop("rocker", "rod", GROUND, "b1", at(0.52, 0.11), at(0.5), length=parse("l"))
    joints = [kt.Joint("j0", "revolute", GROUND, "b0"), kt.Joint("j1", "revolute", "b0", "b1", at(0.21))]
    free = [kt.Parameter("l", 0.47, free=True)]
    bodies = [bar("b0", 0.21), bar("b1", 0.5)]
    arm = kt.System(
        kt.build_mechanism("m", bodies, joints, loops=[loop], parameters=free, guess=[("j0", 0.3), ("j1", 0.6)])
    )
    lengths = np.array([[0.44], [0.47], [0.5]])
    whole = arm.cycle("j0", speed=5.0, start=0.3, parameters=lengths, samples=37)
    for k, own in enumerate(lengths):
        one = arm.cycle("j0", speed=5.0, start=0.3, parameters=own, samples=37)
        assert_close(whole["control"][k], one["control"], 1e-9 * np.abs(one["control"]).max(), "torque")


def test_refuses_drives_without_a_cycle():
    """Read errors for a rocker, a slider, a mechanism that the drive does not determine, and no speed."""
    arm = crank_rocker()
    rocker = "'j0' does not make 1 revolution: stopped: the loops do not .*; a rocker turns back: drive the crank"
    with pytest.raises(kt.InputError, match=rocker):
        two_bars(rod_to_ground("rod", 0.45)).cycle("j0", speed=2.0)
    with pytest.raises(kt.InputError, match="'slider' is prismatic: name a revolute joint"):
        kt.load("slider_crank").cycle("slider", speed=2.0)
    with pytest.raises(
        kt.InputError, match="'five_bar' has 2 degrees of freedom; a cycle is that of a mechanism with one"
    ):
        kt.load("five_bar").cycle("left_crank", speed=2.0)
    with pytest.raises(kt.InputError, match="the speed of a cycle is 0"):
        arm.cycle("j0", speed=0.0)
    with pytest.raises(kt.UnknownNameError, match="no joint 'j7'"):
        arm.cycle("j7", speed=1.0)
    gears = kt.load("gear_train")
    with pytest.raises(kt.InputError, match=r"after 1 revolution of 'input' the body .* is not where it was"):
        gears.cycle("input", speed=1.0)
