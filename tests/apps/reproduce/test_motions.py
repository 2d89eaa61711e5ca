"""Reproduced motions of the papers: each against the paper's statements and an independent computation."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest

import everyday
from kinetree import load
from kinetree.apps import reproduce
from kinetree.apps.reproduce import entry as second_route
from kinetree.apps.reproduce import (
    goncalves2023,
    gupta2013,
    saha1999,
    saha2013,
    stanford,
    wolinski2015,
)
from kinetree.apps.reproduce.entry import Source, Verdict

NAMES = (
    "saha1999-figure-6",
    "saha1999-figure-8",
    "saha1999-figure-9",
    "saha2013-figure-5",
    "gupta2013-figure-4",
    "gupta2013-figure-5",
    "wolinski2015-figure-5",
    "wolinski2015-table-1",
    "goncalves2023-table-5",
)
SLOW = ("saha1999-figure-6", "saha1999-figure-9", "gupta2013-figure-4", "gupta2013-figure-5")


def made(name, folder):
    """Return the outcome of an entry, after a check of its files."""
    (entry,) = reproduce.select_entries([name])
    outcome = entry.run(folder)
    assert outcome.files and all(file.stat().st_size > 0 for file in outcome.files)
    return outcome


@pytest.fixture
def short(monkeypatch):
    """Use short motions and few steps."""
    monkeypatch.setattr(saha1999, "PLANAR_FALL", 1.0)
    monkeypatch.setattr(saha1999, "STANFORD_FALL", 1.0)
    monkeypatch.setattr(saha2013, "FALL", 1.0)
    monkeypatch.setattr(gupta2013, "FALL", 0.8)
    monkeypatch.setattr(goncalves2023, "STEPS", 20)


@pytest.mark.parametrize(
    "name",
    everyday.some(everyday.without(NAMES, ("saha1999-figure-9", "goncalves2023-table-5", "gupta2013-figure-5"))),
)
def test_the_paper_holds(name, tmp_path, short):
    """Reproduce a short motion, and find that all statements of the paper hold."""
    outcome = made(name, tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SLOW, "wolinski2015-figures-6-11"])
def test_the_paper_holds_all_the_way(name, tmp_path):
    """Reproduce a motion with the full duration of `kinetree reproduce`."""
    outcome = made(name, tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason


def test_the_planar_arm_is_a_triple_pendulum():
    """Find the accelerations of forward dynamics by the explicit expressions of the torques."""
    arm = load("planar_3r")
    q, qd = np.random.default_rng(3).normal(size=(2, 3))
    assert np.allclose(saha1999._lagrange(arm, q, qd), arm.forward_dynamics(q, qd, np.zeros(3)), rtol=1e-12)


@everyday.long
def test_torques_of_both_papers_end_alike():
    """Find the same torques at the end, where both papers have the same pose, and different ones at the start."""
    first, second = (stanford.torques(module.START)[2] for module in (saha1999, saha2013))
    assert np.allclose(first[-1], second[-1], atol=1e-12)
    assert abs(first[0, 2] - second[0, 2]) > 50.0


@everyday.long
def test_exact_pendulum_begins_at_rest():
    """Start from 90 degrees, and return there after the period given by quadrature."""
    from scipy.special import ellipk

    pendulum = load("spatial_pendulum")
    m, a, d = 2.512, 1.0, 0.02
    w = np.sqrt(m * 9.81 * a / 2 / (m * a**2 / 3 + m * d**2 / 16))
    t = np.array([0.0, 2.0, 4.0]) * ellipk(0.5) / w
    angle, rate = gupta2013.exact_pendulum(SimpleNamespace(system=pendulum, t=t))
    assert np.allclose(angle, [np.pi / 2, -np.pi / 2, np.pi / 2], atol=1e-7)
    assert np.allclose(rate, 0.0, atol=1e-12)


@everyday.long
def test_the_controlled_arm_starts_as_the_second_route_says():
    """Simulate the KUKA arm for a twentieth of a second by both computations, and find the same state."""
    arm, times = load("kuka_lwr4"), np.linspace(0.0, 0.05, 6)
    run, other = wolinski2015.controlled_motion(arm, times, 1e-8), wolinski2015.independent(arm, times)
    assert np.abs(run.q - other["q"]).max() <= 1e-6
    assert np.abs(run["qdd"] - other["qdd"]).max() <= wolinski2015.BOUNDS["qdd"]


def test_a_wrong_route_is_told():
    """Report a different motion, and a drift of energy, as failed."""
    arm = load("planar_3r")
    run = stanford.fall(arm, np.zeros(3), np.linspace(0.0, 0.2, 11))
    check = second_route.same_motion(run, lambda t, q, qd: np.zeros(3), 1e-6, by="rest")
    assert not check.holds and check.states == "the same motion by rest"
    assert second_route.keeps_energy(run).holds
    assert not second_route.keeps_energy(run, bound=0.0).holds


def test_an_integrator_that_stops_says_so():
    """Name the integrator and the time where a solution ends."""
    start = (np.ones(1), np.ones(1))
    with pytest.raises(RuntimeError, match=r"SciPy's DOP853 stopped at t = 0\.\d+ s"):
        second_route.follow(lambda t, q, qd: 10.0 * qd**2, start, np.linspace(0.0, 1.0, 101))


@everyday.long
def test_a_fall_in_which_only_one_joint_moves_is_no_figure(tmp_path, short):
    """Fall from the printed start of figure 6: only joint 3 moves, which is not reproduced; draw a fall beside it."""
    outcome = made("saha2013-figure-6", tmp_path)
    assert outcome.verdict is Verdict.NOT_REPRODUCED
    assert [check.source for check in outcome.failed] == [Source.STATED]
    assert "from there the arm points down and only joint 3 moves, without end" in outcome.reason
    with outcome.files[1].open() as file:
        rows = np.array(list(csv.reader(file))[1:], dtype=float)
    level, printed = np.ptp(rows[:, 1:7], axis=0), np.ptp(rows[:, 7:], axis=0)
    assert (level > 1e-3).all() and printed[2] > 1.0 and np.delete(printed, 2).max() < 1e-12


@pytest.mark.slow
def test_times_are_told_beside_the_printed(tmp_path, short):
    """Write a row per model and analysis of the table, with the paper's number."""
    outcome = made("goncalves2023-table-5", tmp_path)
    with outcome.files[0].open() as file:
        _, *rows = csv.reader(file)
    assert [(row[0], row[2]) for row in rows[::2]] == [
        ("2-DOF arm", "0.211"), ("4-DOF arm", "0.269"), ("6-DOF arm", "0.325"), ("CHARMIE", "2.409"),
    ]  # fmt: skip
    assert all(float(row[3]) > float(row[6]) > 0 for row in rows), "a program takes longer than its steps"


@everyday.long
def test_steps_of_charmie_close_its_loops(monkeypatch):
    """Compute steps from the actuators alone, and find the torques of states that Newton's method closed at once."""
    monkeypatch.setattr(goncalves2023, "STEPS", 4)
    case = goncalves2023.model("CHARMIE")
    assert case.steps[0].shape == (4, 21), "motions of the actuators, not of all 37 joints"
    found = np.array(case.run(goncalves2023.DYNAMICS))
    assert goncalves2023._actuator_difference(found) < 1e-7
