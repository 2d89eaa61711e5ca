"""A run at other times: exact at samples, of known order between them, with unit quaternions."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from closed_form_runs import batch, swinging
from kinetree.results import Trajectory
from tolerance import assert_close

FINE = np.linspace(0.0, 2.0, 397)


@pytest.mark.parametrize("name", ["stanford", "biped", "spatial_pendulum"])
def test_samples_come_back(name):
    """Resample at the times of the samples and find the states, quaternions to rounding."""
    run = swinging(name)
    again = run.at(run.t)
    assert_close(again.q, run.q, 5e-16, "q")  # measured 1e-16
    assert_close(again.qd, run.qd, 2e-15, "qd")  # measured 4e-16


@pytest.mark.parametrize("name", ["stanford", "biped"])
def test_errors_fall_with_the_power_of_the_step(name):
    """Halve the step four times and find slopes of four for q, three for qd, and four with accelerations."""
    exact = swinging(name, FINE)
    errors = []
    for count in (11, 21, 41, 81, 161):
        t = np.linspace(0.0, 2.0, count)
        run = swinging(name, t)
        step = 1e-5
        a = (swinging(name, t + step).qd - swinging(name, t - step).qd) / (2.0 * step)
        known = swinging(name, t, accelerations=a)
        there = run.at(FINE)
        errors.append([np.abs(x).max() for x in (there.q - exact.q, there.qd - exact.qd, known.at(FINE).qd - exact.qd)])
    slopes = -np.polyfit(np.arange(5), np.log2(errors), 1)[0]
    assert_close(slopes, [4.0, 3.0, 4.0], 0.25, "orders")


def test_quaternions_stay_unit_whatever_their_sign():
    """Flip the sign of every other quaternion and get the same rotations at other times, of unit length."""
    run = swinging("biped")
    q = np.array(run.q)
    q[1::2, 3:7] *= -1.0
    flipped = Trajectory(run.system, run.t, q, run.qd).at(FINE)
    assert_close(np.linalg.norm(flipped.q[:, 3:7], axis=1), np.ones(len(FINE)), 1e-15, "length")
    assert_close(flipped["poses"], run.at(FINE)["poses"], 1e-14, "poses")
    assert_close(flipped.qd, run.at(FINE).qd, 1e-14, "qd")


def test_batches_and_torques_follow():
    """Resample a batch and find the results of single runs, with torques linear between samples."""
    runs = batch("biped")
    there = runs.at(FINE)
    assert np.array_equal(there.run(2).q, runs.run(2).at(FINE).q)
    middle = runs.at(0.5 * (runs.t[3] + runs.t[4]))
    assert len(middle) == 1
    assert_close(middle.torque[:, 0], 0.5 * (runs.torque[:, 3] + runs.torque[:, 4]), 1e-15, "torque")


def test_wrenches_follow():
    """Resample external wrenches and find them linear between samples."""
    w = np.arange(41.0)[:, None, None] * np.ones((6, 6))
    run = swinging(wrenches=w)
    assert_close(run.at([0.025, 0.5])["wrenches"][:, 1, 4], [0.5, 10.0], 1e-13, "wrenches")


def test_a_single_sample_has_one_time():
    """Resample a run of one sample at its own time, and at another one."""
    run = swinging()[:1]
    assert np.array_equal(run.at(0.0).q, run.q)
    with pytest.raises(kt.InputError, match="times must be within 0 to 0 s"):
        run.at(0.1)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([-0.1, 1.0], "times must be within 0 to 2 s, the times of the run"),
        ([1.0, 2.5], "times must be within"),
        ([np.nan], "times must be within"),
        ([], "times must be within"),
        ([1.0, 0.5], "expected one or more finite times"),
        ("soon", "times is not an array of real numbers"),
    ],
)
def test_other_times_are_refused(times, message):
    """Give times outside the run, out of order and NaN, and read what is possible."""
    with pytest.raises(kt.InputError, match=message):
        swinging().at(times)
