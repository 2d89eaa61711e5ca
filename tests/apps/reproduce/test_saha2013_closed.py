"""The reproduced four-bar of [Saha2013]: torque over one revolution, and the fall."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.apps import reproduce
from kinetree.apps.reproduce import saha2013_closed
from kinetree.apps.reproduce.entry import Verdict


@pytest.mark.parametrize("name", everyday.only(["saha2013-figure-17", "saha2013-figure-18"], ["saha2013-figure-17"]))
def test_the_paper_holds(name, tmp_path, monkeypatch):
    """Reproduce a figure with few samples, part of a revolution for the fall, and find that all statements hold."""
    monkeypatch.setattr(saha2013_closed, "SAMPLES", 21)
    if name.endswith("18"):
        monkeypatch.setattr(saha2013_closed, "TURN", 0.3)
    (entry,) = reproduce.select_entries([name])
    outcome = entry.run(tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason
    assert [file.suffix for file in outcome.files] == [".png", ".csv"]
    with outcome.files[1].open() as file:
        heads, *rows = csv.reader(file)
    assert len(rows) == 21 and heads[:2] == ["t", "theta_1"] and float(rows[0][1]) == pytest.approx(0.0, abs=1e-12)


def test_the_crank_turns_steadily():
    """Find the angles of the driven crank, closed loops, and velocities equal to the rates of the angles."""
    arm = kt.load("four_bar")
    t = np.linspace(0.2, 0.2001, 3)
    q, qd, qdd = saha2013_closed.crank_motion(arm, t)
    assert np.allclose(q[:, 0], saha2013_closed.SPEED * t, rtol=1e-14)
    assert np.abs(arm.closure_residual(q)).max() < 1e-12
    h = t[1] - t[0]
    assert np.allclose((q[2] - q[0]) / (2 * h), qd[1], rtol=1e-6)
    assert np.allclose((qd[2] - qd[0]) / (2 * h), qdd[1], rtol=1e-5, atol=1e-5)


def test_another_four_bar_is_told():
    """Report lengths and masses that are not the printed ones."""
    check = saha2013_closed._as_printed(kt.load("crank_rocker"))
    assert not check.holds and "masses 1.5, 5, 3 kg" in check.found
