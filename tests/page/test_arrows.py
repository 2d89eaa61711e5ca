"""Arrows of a replay: reactions of a resting and of a rotating mass, drives, springs, and the data of the page."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.page.data import run_data
from kinetree.page.run import LONGEST, arrows_of, at_times, lengths
from loaded_runs import reaction, spinning
from tolerance import assert_close


def test_reactions_are_forces_in_the_axes_of_the_ground():
    """Find the force on a rotating mass at its hinge, whichever frame the body has."""
    run = spinning(37, angles=(0.4, 1.2, -0.8))
    force, drive = arrows_of(run, True)
    n, f = reaction(run.t)
    assert (force.name, force.unit, drive.name, drive.unit) == ("hinge", "N", "drive of hinge", "N m")
    assert_close(force.vector, f, 1e-12 * np.abs(f).max(), "reaction")
    assert_close(force.origin, np.tile([0.2, 0.1, -0.3], (37, 1)), 1e-15, "hinge")
    assert_close(drive.vector, n * [0.0, 0.0, 1.0], 1e-12 * np.abs(n).max(), "torque of the drive")


def test_loops_have_arrows_at_their_joint():
    """Find the reaction of a loop at the origin of its frame b, with the reaction of the crank's end."""
    arm = kt.load("four_bar")
    run = arm.cycle("crank", speed=7.0, samples=25)
    pin = next(a for a in arrows_of(run, "reactions") if a.name == "pin")
    end = run["poses.coupler"] @ [0.1152, 0.0, 0.0, 1.0]
    assert_close(pin.origin, end[:, :3], 1e-12, "place of the pin")
    wrench = arm.loads(run.q, run.qd, tau=run["tau"]).at("pin", axes="world")
    assert_close(pin.vector, wrench[:, 3:], 1e-11, "force of the pin")


def test_forces_on_bodies_lie_on_their_lines_of_action():
    """Push a body beside its origin, and find the arrow on the line through the point of attack."""
    run = spinning(11)
    f, point = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -0.2])
    wrench = np.tile(np.concatenate([np.cross(point, f), f]), (11, 1, 1))
    pushed = kt.Trajectory(run.system, run.t, run.q, run.qd, wrenches=wrench)
    (arrow,) = arrows_of(pushed, "wrenches")
    poses = run["poses"][:, 0]
    attack = poses[:, :3, :3] @ point + poses[:, :3, 3]
    assert_close(np.cross(attack - arrow.origin, arrow.vector), np.zeros((11, 3)), 1e-13, "distance to the line")


def test_the_page_has_arrows_of_given_length():
    """Decode the arrows of a page: the longest is a fixed part of the drawing, and its rows are those of the run."""
    run = spinning(61)
    data = run_data(run, 20.0, "reactions")
    (arrow,) = data["arrows"]
    origin, vector = at_times(arrows_of(run, "reactions")[0], run.t, data["run"]["t"])
    assert_close(arrow["rows"].astype(float), np.concatenate([origin, vector], axis=1), 1e-5, "rows")
    largest = np.linalg.norm(reaction(run.t)[1], axis=-1).max()
    assert_close(arrow["length"], LONGEST * data["scene"]["size"] / largest, 1e-9, "length")
    assert lengths([], 1.0) == {}


def test_unknown_groups_are_refused(tmp_path):
    """Ask for arrows that do not exist."""
    with pytest.raises(kt.UnknownNameError, match="no group of arrows 'reaction'; did you mean 'reactions'"):
        spinning(5).replay(tmp_path / "run.html", arrows="reaction")
    assert run_data(spinning(5))["arrows"] == []
