"""Reproduced figures of CHARMIE: each against the paper's formulas, Pinocchio and closed loops."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps import reproduce
from kinetree.apps.reproduce import goncalves2023_motion
from kinetree.apps.reproduce.entry import Verdict
from kinetree.apps.reproduce.goncalves2023_motion import closed_motion, validation_motion
from kinetree.errors import AssemblyError
from tolerance import assert_close

NAMES = [f"goncalves2023-figure-{k}" for k in (6, 8, 12, 13)]


@pytest.fixture
def short(monkeypatch):
    """Use few instants, among them that of figure 11b."""
    monkeypatch.setattr(goncalves2023_motion, "SAMPLES", 51)
    monkeypatch.setattr(goncalves2023_motion, "FEW", 3)


@everyday.long
@pytest.mark.parametrize("name", everyday.without(NAMES, NAMES[:3]))
def test_the_paper_holds(name, tmp_path, short):
    """Reproduce a figure, with all statements true and files that are not empty."""
    (entry,) = reproduce.select_entries([name])
    outcome = entry.run(tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason
    assert len(outcome.checks) >= 2
    assert all(file.stat().st_size > 0 for file in outcome.files)
    assert {file.suffix for file in outcome.files} == {".png", ".csv"}


@everyday.long
def test_force_is_the_weight_at_first(tmp_path, short):
    """Read the force of body 2 on body 3 from the table of figure 13: nearly the weight, along the accelerations."""
    goncalves2023_motion.figure_13(tmp_path)
    with (tmp_path / "goncalves2023_figure_13.csv").open() as file:
        rows = [[float(x) for x in row] for row in list(csv.reader(file))[1:]]
    assert len(rows) == 51
    weight = 62.4 * 9.81
    assert abs(rows[0][3] / weight - 1) < 0.01 and rows[0][1] < 0 and rows[0][2] < 0 < rows[-1][1]


@pytest.mark.slow
def test_errors_are_found(tmp_path, short, monkeypatch):
    """Find statements that do not hold if the formulas have another mass of body 8c."""
    honest = goncalves2023_motion.inverse_dynamics

    def heavier(mechanism, motion, **options):
        bodies = [replace(b, mass=b.mass * (1 + 1e-6)) if b.name == "body_8c" else b for b in mechanism.bodies]
        return honest(replace(mechanism, bodies=tuple(bodies)), motion, **options)

    monkeypatch.setattr(goncalves2023_motion, "inverse_dynamics", heavier)
    goncalves2023_motion.validation.cache_clear()
    try:
        outcome = goncalves2023_motion.figure_13(tmp_path)
    finally:
        goncalves2023_motion.validation.cache_clear()
    assert [check.states for check in outcome.checks if not check.holds] == [
        "the same force by (28)-(43)",
        "(35)-(43) are closed loops with shared loads",
    ]


def test_motion_is_that_of_the_paper():
    """Accelerate for 2.5 s and slow down for 2.5 s, to rest, with velocities and positions that are their integrals."""
    t = np.linspace(0.0, 5.0, 5001)
    for name, (x, xd, xdd) in validation_motion(t).items():
        rate = {"joint_1": 0.03, "joint_2": 0.03, "actuator_4": 0.003, "actuator_5": 0.003}.get(name, np.pi / 9)
        assert (xdd[t < 2.5] == -rate).all() and (xdd[t >= 2.5] == rate).all()
        assert_close(np.diff(xd) / 1e-3, np.where(t[:-1] < 2.5, -rate, rate), 1e-11, "velocity")
        assert_close((x[1:] - x[:-1]) / 1e-3, (xd[1:] + xd[:-1]) / 2, 1e-11, "position")
        assert x[0] == (0.4 if name.startswith("actuator") else 0.0) and xd[-1] == 0


@everyday.long
def test_motion_that_loops_forbid_is_refused():
    """Refuse an actuator that is shorter than the geometry allows."""
    motion = validation_motion([0.0, 1.0])
    x, xd, xdd = motion["actuator_4"]
    with pytest.raises(
        AssemblyError, match="actuator_4 = 0.0985 m held, loop 'head_4d' stays open by 13.* mm"
    ) as caught:
        closed_motion(kt.load("charmie_complete"), motion | {"actuator_4": (x - [0.0, 0.3], xd, xdd)})
    assert "sample [1]" in str(caught.value) and "nearest: hold actuator_4 = 0.112 m instead of" in str(caught.value)
    assert "joint_7a" not in str(caught.value)  # an arm has no part in it
