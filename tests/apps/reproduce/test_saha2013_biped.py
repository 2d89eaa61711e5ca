"""The reproduced biped of [Saha2013]: its designed walk, torques against Pinocchio, and the forced motion."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps import reproduce
from kinetree.apps.reproduce import saha2013_biped, saha2013_forced
from kinetree.apps.reproduce.entry import Verdict
from kinetree.simulation.acting.references import sampled
from tolerance import assert_close

eps = np.finfo(float).eps


@pytest.mark.parametrize("number", everyday.only([12, 13, 14], [12]))
def test_the_paper_holds(number, tmp_path, monkeypatch):
    """Reproduce a figure with few samples, and find that all statements hold, and its table."""
    monkeypatch.setattr(saha2013_biped, "SAMPLES", 21)
    (entry,) = reproduce.select_entries([f"saha2013-figure-{number}"])
    outcome = entry.run(tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason
    assert outcome.verdict is Verdict.STATEMENT_HOLDS and "that comes with ReDySim" in outcome.reason
    with outcome.files[1].open() as file:
        heads, *rows = csv.reader(file)
    assert len(rows) == 21 and heads[0] == "t" and len(heads) == {12: 7, 13: 37, 14: 13}[number]


@pytest.mark.slow
def test_the_forced_biped_diverges_and_the_controlled_one_does_not(tmp_path):
    """Reproduce figure 15, and find the growth of the linearized motion in the run and by another route."""
    (entry,) = reproduce.select_entries(["saha2013-figure-15"])
    outcome = entry.run(tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason
    ((_, (heads, *rows)),) = outcome.tables
    assert len(heads) == 5 and [row[-1] for row in rows] == ["0.24", "0.46", "never", "never", "never", "never"]


@pytest.mark.slow
def test_a_deviation_grows_as_in_the_linearized_motion():
    """Start off the designed motion by 1e-9 rad, and find the deviation of the linearized one after 0.2 s."""
    biped, motion, t = kt.load("spatial_biped"), saha2013_biped.reference(), np.linspace(0.0, 0.2, 41)
    along, _ = saha2013_forced.transition(biped, t, motion)
    away = 1e-9 * np.random.default_rng(5).normal(size=24)
    run, other = (
        saha2013_forced.simulate_forced(biped, motion, t, away=s * away, **saha2013_forced.TIGHT) for s in (1, -1)
    )
    found = 0.5 * np.concatenate([run.q[-1] - other.q[-1], run.qd[-1] - other.qd[-1]])
    expected = along @ away
    assert np.linalg.norm(expected) > 20 * np.linalg.norm(away)
    assert_close(found, expected, 1e-4 * np.abs(expected).max(), "deviation after 0.2 s")


@pytest.mark.slow
def test_eigenvalues_are_zero_without_gravity():
    """Find the zero-eigenvalue effect itself: at rest and without gravity, no deviation has an acceleration."""
    biped = kt.load("spatial_biped")
    free = kt.System(replace(biped.mechanism, gravity=(0.0, 0.0, 0.0)))
    q = np.array(saha2013_biped.reference()(0.2)[0])
    A = free.linearize(q, np.zeros(12), np.zeros(12)).A
    assert_close(A[12:], np.zeros((12, 24)), 1e-12, "accelerations of deviations")


def test_sampled_torques_are_joined_by_straight_lines():
    """Hold the biped's samples at their times, and half of the sum between two of them."""
    tau = np.random.default_rng(2).normal(size=(4, 12))
    control = saha2013_forced.SampledTorques(tau, 0.1)

    class Now:
        t = 0.1

    for t, expected in ((0.1, tau[1]), (0.25, 0.5 * (tau[2] + tau[3])), (0.0, tau[0])):
        Now.t = t
        assert_close(np.array(control.torque(Now)), expected, 50 * eps, f"torque at {t}")


@everyday.long
def test_torques_and_accelerations_are_pinocchios():
    """Compare inverse and forward dynamics of the walk with rnea and aba of the same biped."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_peer import peer

    biped = kt.load("spatial_biped")
    t = np.linspace(0.0, saha2013_biped.STEP, 17)
    q, qd, qdd = saha2013_biped.walk(biped, t)
    tau = biped.inverse_dynamics(q, qd, qdd)
    other = peer(biped.mechanism)
    expected = np.array([pin.rnea(other.model, other.data, *x) for x in zip(q, qd, qdd, strict=True)])
    assert_close(tau, expected, 200 * eps * np.abs(tau).max(), "torques against rnea")
    back = np.array([pin.aba(other.model, other.data, *x) for x in zip(q, qd, expected, strict=True)])
    assert_close(back, biped.forward_dynamics(q, qd, tau), 1e-9 * np.abs(qdd).max(), "accelerations against aba")


@everyday.long
def test_the_series_is_the_walk():
    """Find angles, velocities and accelerations of the polynomial between its nodes."""
    biped, t = kt.load("spatial_biped"), np.array([0.0, 0.0137, 0.211, 0.5])
    for series, direct, bound in zip(
        sampled(saha2013_biped.reference(), t), saha2013_biped.walk(biped, t), (1e-10, 1e-8, 1e-4), strict=True
    ):
        assert_close(series, direct, bound, "series against the walk")
