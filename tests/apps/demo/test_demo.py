"""The demonstration: its motions, its explicit expressions, and that its comparisons can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps import demo
from kinetree.apps import demo as mechanisms
from kinetree.simulation.outcomes import Ending, Endings, Outcome
from tolerance import assert_close

TIMES = np.linspace(0.0, 10.0, 41)


@pytest.fixture(scope="module")
def result():
    """Return a complete run with a smaller batch."""
    return demo.run(samples=20_000)


def test_every_agreement_holds(result):
    """Run the demonstration and find every residual within its bound."""
    assert len(result.checks) == 12
    for check in result.checks:
        assert_close(check.residual, 0.0, check.bound, check.what)
    assert result.smallest_eigenvalue > 0
    assert result.timing.same_split
    assert result.timing.same_threads
    assert result.timing.seconds > 0
    assert result.holds


def test_histories_have_their_units(result):
    """Find torques for revolute joints, a force for the prismatic one, and the gravity torques at the ends."""
    assert result.stanford.units == ("N m", "N m", "N", "N m", "N m", "N m")
    assert [h.tau.shape for h in (result.stanford, result.planar, result.kuka)] == [(1001, 6), (1001, 3), (1401, 7)]
    weight = 9.81 * (4 + 1 + 0.6 + 0.5)  # links 3 to 6 slide along an axis that ends at 60 deg to the vertical
    assert_close(result.stanford.tau[[0, -1], 2], [0.0, -weight / 2], 1e-13, "force of joint 3 at rest")


@everyday.long
def test_steps_are_said():
    """Report every step as it begins."""
    said: list[str] = []
    demo.run(say=said.append, samples=10_000)
    assert [text.split(":")[0] for text in said] == [
        "Stanford arm",
        "planar 3R arm",
        "KUKA LWR 4+",
        "Stanford arm",
        "KUKA LWR 4+",
        "four-bar",
        "chain of 10,000 links",
        "KUKA LWR 4+",
    ]


def test_a_failure_is_seen(result):
    """Break one agreement at a time and find that the demonstration fails."""
    wrong = demo.Check("wrong", 2e-12, 1e-12)
    assert not wrong.holds
    assert not demo.Check("not a number", float("nan"), 1e-12).holds
    assert not replace(result, checks=(*result.checks, wrong)).holds
    assert not replace(result, smallest_eigenvalue=-1e-9).holds
    assert not replace(result, timing=replace(result.timing, same_split=False)).holds
    assert not replace(result, timing=replace(result.timing, same_threads=False)).holds


@pytest.mark.parametrize("motion", [demo.stanford_motion, demo.planar_motion, demo.kuka_motion])
def test_motions_are_derivatives(motion):
    """Differentiate each motion by central differences and find its velocities and accelerations."""
    h = 1e-4
    (q0, qd0, _), (q1, qd1, _), (_, qd, qdd) = motion(TIMES - h), motion(TIMES + h), motion(TIMES)
    assert_close((q1 - q0) / (2 * h), qd, 1e-7, "speed")
    assert_close((qd1 - qd0) / (2 * h), qdd, 1e-7, "acceleration")


def test_motions_keep_the_ends_of_the_papers():
    """Start and end at the papers' positions, at rest."""
    q, qd, qdd = demo.stanford_motion(np.array([0.0, 10.0]))
    assert_close(q[0], np.radians([0, 90, 0, 0, 0, 0]), 1e-15, "Stanford start")
    assert_close(q[1], [*np.radians([60, 60]), 0.1, *np.radians([60, 60, 60])], 1e-15, "Stanford end")
    assert_close(np.stack([qd, qdd]), np.zeros((2, 2, 6)), 1e-15, "at rest")
    assert_close(demo.planar_motion(np.array([0.0, 10.0]))[0], [[0.0] * 3, [np.pi] * 3], 1e-15, "planar ends")
    q, qd, _ = demo.kuka_motion(np.array([0.0]))
    assert_close(q, np.full((1, 7), np.pi / 2), 0.0, "KUKA start, (30)")
    assert_close(qd, np.zeros((1, 7)), 0.0, "KUKA start, (31)")


def test_explicit_torques_hold_a_level_arm():
    """Hold the planar arm level at rest: the torques are the moments of the weights."""
    arm, zero = kt.load("planar_3r"), np.zeros(3)
    tau = demo.planar_torques(arm, zero, zero, zero)
    weights = 9.81 * np.array([0.5, 0.4, 0.3])
    at = np.array([0.15, 0.3 + 0.125, 0.3 + 0.25 + 0.11])
    expected = [weights @ at, weights[1:] @ (at[1:] - 0.3), weights[2] * (at[2] - 0.55)]
    assert_close(tau, expected, 1e-14, "moments of the weights")


def test_explicit_torques_agree_in_random_states():
    """Compare the explicit expressions with the recursion in states off every trajectory."""
    arm, rng = kt.load("planar_3r"), np.random.default_rng(3)
    q, qd, qdd = rng.normal(scale=3.0, size=(3, 500, 3))
    tau = arm.inverse_dynamics(q, qd, qdd)
    assert_close(demo.planar_torques(arm, q, qd, qdd), tau, 20 * np.finfo(float).eps * np.abs(tau).max(), "torques")


def test_power_check_sees_a_wrong_acceleration():
    """Give the power balance wrong accelerations of the motion and find that it fails."""
    arm = kt.load("stanford")

    def wrong(t):
        q, qd, qdd = demo.stanford_motion(t)
        return q, qd, qdd * (1 + 1e-9)

    assert demo._power_check(arm, demo.stanford_motion, TIMES).holds
    assert not demo._power_check(arm, wrong, TIMES).holds


def test_the_fall_turns_height_into_speed(result):
    """Let the Stanford arm fall and find the work of gravity in its kinetic energy."""
    given = -np.diff(result.fall["potential_energy"][[0, -1]])
    assert given > 100.0
    assert_close(result.fall["kinetic_energy"][-1], given[0], 1e-8 * given[0], "kinetic energy")
    wrong = replace(result.fall, qd=result.fall.qd * (1 + 1e-6))
    assert not mechanisms.energy_check(wrong).holds
    assert not mechanisms.energy_check(
        replace(result.fall, endings=Endings(whole=Ending(Outcome.STOPPED, "too early")))
    ).holds


def test_the_error_under_control_shrinks_as_it_should(result):
    """Start off the motion, end on it, and find that the comparison fails for another rate."""
    errors = mechanisms.tracking_errors(result.tracking)
    assert_close(errors[0], [mechanisms.START] * 7, 1e-15, "at the start")
    assert_close(errors[-1], [0.0] * 7, 1e-9, "at the end")
    late = replace(result.tracking, q=result.tracking.q + 1e-7)
    assert not mechanisms.tracking_check(late).holds
