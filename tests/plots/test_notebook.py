"""Systems and runs in notebooks: a picture, a table, and names that stay text."""

from __future__ import annotations

import re

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import batch, swinging
from kinetree.simulation.outcomes import Ending, Endings, Outcome

EVIL = "<img src=x onerror=alert(1)>&amp;"


@pytest.mark.parametrize("name", ["stanford", "four_bar", "biped"])
def test_a_system_is_a_picture_and_a_table(name):
    """Show open, closed and floating mechanisms, with every joint in the table and no external resources."""
    system = kt.load(name)
    page = system._repr_html_()
    assert page.count('<img alt="" width="360" height="270" src="data:image/png;base64,') == 1
    for joint in system.joints:
        assert f">{joint.name}</td>" in page and f">{joint.kind}</td>" in page
    assert not re.search(r"https?:|<script|url\(", page)


def test_a_run_is_a_picture_its_summary_and_a_table():
    """Show a run, and a batch of runs, with their status and the coordinates."""
    for run in (swinging(), batch()):
        page = run._repr_html_()
        assert page.count("<img") == 1
        assert "status: finished" in page
        assert ">q.joint3</td>" in page
    assert "3 runs of 41 samples" in page


def test_names_stay_text():
    """Show a System and a run whose names are HTML elements, and find them escaped."""
    body = kt.Body(EVIL, mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism(EVIL, [body], [kt.Joint(EVIL, "revolute", kt.GROUND, EVIL)]))
    run = kt.Trajectory(
        system, [0.0, 0.1], [[0.1], [0.2]], [[1.0], [1.0]], endings=Endings(whole=Ending(Outcome.STOPPED, EVIL))
    )
    for page in (system._repr_html_(), run._repr_html_()):
        assert EVIL not in page
        assert page.count("<img") == 1
        assert "&lt;img src=x onerror=alert(1)&gt;&amp;amp;" in page


def test_long_mechanisms_are_tables_alone():
    """Show a chain of more bodies than are drawn, and read how many joints are left out."""
    page = kt.chain(120)._repr_html_()
    assert "<img" not in page
    assert "... and 80 more rows" in page


@everyday.long
def test_a_saved_run_is_drawn(tmp_path):
    """Read a run from a file, and plot, replay and show it without the System it was made with."""
    run = kt.simulate(kt.load("planar_2r"), [0.1, 0.2], duration=0.1, control=kt.PD(3.0, 0.5, kt.Hold([0.4, -0.3])))
    again = kt.read_trajectory(run.save(tmp_path / "run.npz"))
    figure = again.plot(path=tmp_path / "run.png")
    assert "reference" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert again.replay(tmp_path / "run.html").read_text() == run.replay(tmp_path / "other.html").read_text()
    assert again._repr_html_() == run._repr_html_()
    assert np.array_equal(again["control"], run["control"])
