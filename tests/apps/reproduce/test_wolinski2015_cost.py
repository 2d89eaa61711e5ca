"""Cost of the controlled motion of [Wolinski2015]: its time over simulated time, by two programs."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import everyday
from kinetree import load
from kinetree.apps import reproduce
from kinetree.apps.reproduce import wolinski2015
from kinetree.apps.reproduce.wolinski2015 import Course, compiled_rates, course, faster, interpreted_rates


@pytest.mark.slow
def test_figures_12_and_13_hold(tmp_path, monkeypatch):
    """Time a short piece of the motion: all counted statements hold, and each curve rises from the start."""
    monkeypatch.setattr(wolinski2015, "TIMED", 1.7)
    monkeypatch.setattr(wolinski2015, "SAMPLES", 35)
    (entry,) = reproduce.select_entries(["wolinski2015-figures-12-13"])
    outcome = entry.run(tmp_path)
    timed, *counted = outcome.checks
    assert timed.states.startswith("a compiled program is always more than four times faster")
    assert all(check.holds for check in counted), counted
    assert [file.name for file in outcome.files] == [
        "wolinski2015_figure_12.png", "wolinski2015_figure_13.png", "wolinski2015_figures_12_13.csv",
    ]  # fmt: skip
    with outcome.files[-1].open() as file:
        heads, *rows = csv.reader(file)
    assert heads == ["t", "interpreted 1e-6", "interpreted 1e-3", "compiled 1e-6", "compiled 1e-3"]
    clocks = np.array(rows, dtype=float)[:, 1:]
    assert (np.diff(clocks, axis=0) >= 0).all() and (clocks > 0).all()
    ((_, (_, *table)),) = outcome.tables
    assert len(table) == 6 and all(int(row[2]) > 0 for row in table)


@everyday.long
def test_both_programs_ask_for_as_much():
    """Simulate the arm briefly by both programs, and find the same states and numbers of right-hand sides."""
    arm, times = load("kuka_lwr4"), np.linspace(0.0, 0.05, 4)
    slow, fast = (course(program(arm), times, 1e-5) for program in (interpreted_rates, compiled_rates))
    assert np.abs(slow.q - fast.q).max() <= 1e-7
    assert len(slow.t) == pytest.approx(len(fast.t), rel=0.2)
    assert (np.diff(slow.seconds) > 0).all() and slow.t[0] == 0.0 and slow.t[-1] >= times[-1]


def test_a_clock_waits_for_steps_that_are_taken_again():
    """Read the clock where a run first reached a time, also where it went back, and beyond its end."""
    run = Course(np.array([0.0, 0.3, 0.1, 0.2, 0.7, 0.5]), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.zeros((1, 7)))
    assert run.clock(np.array([0.0, 0.25, 0.31, 0.7, 0.8])).tolist() == [1.0, 2.0, 5.0, 5.0, 6.0]


def test_the_steepest_piece_is_found():
    """Find the tenth of the time with the most right-hand sides, wherever it is."""
    t = np.array([0.0, 2.0, 5.01, 5.02, 5.5, 5.9, 6.2, 10.0])
    run = Course(t, np.arange(8.0), np.zeros((1, 7)))
    assert run.steepest(0.1) == 4 / 8
    assert run.steepest(0.0) == 1 / 8


def test_a_slow_stretch_is_told():
    """Report a program that is not four times faster throughout."""
    assert faster({"1e-6": np.array([4.1, 90.0]), "1e-3": np.array([70.0, 80.0])}).holds
    check = faster({"1e-6": np.array([60.0, 90.0]), "1e-3": np.array([3.9, 80.0])})
    assert not check.holds and check.found == "at 1e-6 60 to 90 times; at 1e-3 4 to 80 times"


def test_a_smooth_curve_and_another_motion_are_told():
    """Report curves without a steep piece, too many right-hand sides, and different motions."""
    t = np.linspace(0.0, 14.0, 5000)
    even = Course(t, t, np.zeros((2, 7)))
    other = Course(t, t, np.full((2, 7), 6e-4))
    words = wolinski2015.TOLERANCES
    runs, others = dict.fromkeys(words, even), dict.fromkeys(words, other)
    assert not wolinski2015._steep(runs).holds
    assert not wolinski2015._fewer(runs, runs).holds
    assert wolinski2015._alike(runs, runs).holds and not wolinski2015._alike(runs, others).holds
