"""Pages and animations of modes."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt


def modes():
    """Return the mode of a damped pendulum."""
    bob = kt.Body("bob", 1.3, (0.7, 0.0, 0.0))
    hinge = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 0.0, 1.0), damping=(0.4,))
    return kt.System(kt.build_mechanism("pendulum", [bob], [hinge], gravity=(9.81, 0.0, 0.0))).modes(np.zeros(1))


def test_a_page_has_the_mode_as_its_title(tmp_path):
    """Write a page with the frequency and damping of the mode."""
    page = modes().page(1, tmp_path / "mode.html", amplitude=0.1, kernel=False)
    assert "pendulum: mode 1, 0.5958 Hz, damping 0.0839" in page.text
    assert (tmp_path / "mode.html").read_text() == page.text


@pytest.mark.slow
def test_an_animation_shows_one_period(tmp_path):
    """Write an animation of one period."""
    path = modes().animate(1, tmp_path / "mode.gif", fps=5.0)
    assert path.read_bytes()[:3] == b"GIF"
