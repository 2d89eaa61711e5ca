"""Monitors of balance in runs with hard contact: the zero-moment point is the center of pressure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close
from touching_bodies import ball, box_on_slope


def test_a_sliding_box_has_its_zero_moment_point_at_the_center_of_pressure() -> None:
    """Compare both points of a box that slides to rest, with its closed form, and its support with its corners."""
    system, q, corners = box_on_slope(0.0, 0.4)
    times = [0.0, 0.1, 0.2, 0.6]
    run = kt.simulate(system, q, [0, 0, 0, 1.2, 0.0, 0], times=times, contacts=corners, rtol=1e-10, atol=1e-12)
    found = kt.ground_balance(run)
    assert_close(found.zero_moment_point, found.center_of_pressure, 1e-9, "zero-moment point and center of pressure")
    ahead = np.where(run.qd[:, 3] > 1e-6, 0.4 * 0.05, 0.0)  # friction at the base brakes the center of mass
    assert_close(found.zero_moment_point[:, 0] - run.q[:, 0], ahead, 1e-9, "distance ahead of the center")
    assert_close(found.margin, np.minimum(0.15 - ahead, 0.1), 1e-9, "margin")
    assert found.support[0].shape == (4, 2)
    assert_close(found.capture_point[-1], [*run.q[-1, :2], 0.0], 1e-9, "capture point at rest")
    assert "least margin 0.1 m" in str(found) and "on the ground at 4 of 4 samples" in str(found)


@pytest.mark.slow
def test_springs_to_the_ground_are_no_ground_forces() -> None:
    """Leave out other forces: a spring that pulls the box changes both points alike."""
    system, q, corners = box_on_slope(0.0, 0.9)
    spring = kt.SpringDamper("box", kt.GROUND, (0.1, 0.02, 0.05), (0.5, 0.1, 0.3), stiffness=20.0, free_length=0.1)
    run = kt.simulate(system, q, times=[0.0, 0.1], contacts=corners, forces=spring)
    found = kt.ground_balance(run)
    assert_close(found.zero_moment_point, found.center_of_pressure, 1e-9, "both points")
    assert abs(found.zero_moment_point[0, 0]) > 1e-3


def test_own_springs_to_the_ground_count_once() -> None:
    """Let the mechanism itself describe the spring: both points agree in the run, and with those of its motion."""
    system, q, corners = box_on_slope(0.0, 0.9)
    rates = (("stiffness", 20.0), ("free_length", 0.1))
    coil = kt.ForceElement("coil", "spring_damper", kt.GROUND, "box", (0.5, 0.1, 0.3), (0.1, 0.02, 0.05), rates)
    sprung = kt.System(replace(system.mechanism, forces=(coil,)))
    run = kt.simulate(sprung, q, times=[0.0, 0.1], contacts=corners)
    found = kt.ground_balance(run)
    assert_close(found.zero_moment_point, found.center_of_pressure, 1e-9, "both points")
    assert abs(found.zero_moment_point[0, 0]) > 1e-3
    alone = sprung.zero_moment_point(run.q, run.qd, run["qdd"], plane=corners.surface)
    assert_close(alone, found.zero_moment_point, 1e-9, "zero-moment point of the motion")


def test_flights_have_no_zero_moment_point() -> None:
    """Return NaN in flight, and refuse runs without contacts."""
    system, q, ground = ball(0.3, restitution=0.5)
    run = kt.simulate(system, q, times=[0.0, 0.1], contacts=ground)
    found = kt.ground_balance(run)
    assert np.isnan(found.zero_moment_point).all() and np.isnan(found.margin).all()
    assert str(found) == "ground balance: nothing presses on the ground"
    with pytest.raises(InputError, match="the run has no contacts; give simulate"):
        kt.ground_balance(kt.simulate(system, q, duration=0.1))
