"""The figures of the demonstration: their files."""

from __future__ import annotations

import numpy as np
import pytest

from closed_form_runs import swinging
from kinetree.apps.cli.demonstration import draw_demo
from kinetree.apps.demo import Check, Demo, History, Links, Timing, turning


def result() -> Demo:
    """Return a small result: waves for torques."""
    t = np.linspace(0.0, 10.0, 21)
    waves = np.sin(t[:, None] + np.arange(7))
    return Demo(
        History(t, waves[:, :6], ("N m", "N m", "N", "N m", "N m", "N m")),
        History(t, waves[:, :3], ("N m",) * 3),
        History(t, waves, ("N m",) * 7),
        1.0,
        1.0,
        (Check("nothing", 0.0, 1e-12),),
        Timing("arm", 1, 1.0, True, True),
        swinging("stanford"),
        swinging("kuka_lwr4", torque=np.ones((41, 7))),
        turning(0.1),
        Links(7, 1.0, 0.0),
    )


@pytest.mark.slow
def test_figures_are_written(tmp_path):
    """Draw the six figures as PNG files of a size for print, and write one page per run."""
    files = draw_demo(result(), tmp_path)
    names = ["stanford_torques.png", "kuka_torques.png", "planar_3r_torques.png", "stanford_fall.png"]
    names += ["kuka_tracking.png", "four_bar.png", "stanford_fall.html", "kuka_tracking.html", "four_bar.html"]
    assert [file.name for file in files] == names
    assert all("<html" in file.read_text() for file in files[6:])
    for file in files[:6]:
        data = file.read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = (int.from_bytes(data[k : k + 4], "big") for k in (16, 20))
        assert width >= 1000
        assert height >= 600
