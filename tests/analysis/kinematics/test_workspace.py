"""Workspaces: points that frames reach, against exact shapes."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from tolerance import assert_close


def test_a_planar_arm_fills_a_ring():
    """Return points between the smallest and the largest reach, with the manipulability of the cosine theorem."""
    arm = kt.load("planar_2r")
    found = arm.workspace("tool", samples=4000)
    base = arm.pose([0.0, 0.0], "link1")[:3, 3]
    l1 = np.linalg.norm(arm.pose([0.0, 0.0], "link2")[:3, 3] - base)
    l2 = np.linalg.norm(arm.pose([0.0, 0.0], "tool")[:3, 3] - arm.pose([0.0, 0.0], "link2")[:3, 3])
    reach = np.linalg.norm(found.points - base, axis=-1)
    assert (
        abs(l1 - l2) - 1e-12 <= reach.min() < 1.05 * abs(l1 - l2) + 0.01
        and 0.99 * (l1 + l2) < reach.max() <= l1 + l2 + 1e-12
    )
    length = kt.load("planar_2r").mechanism.lengths
    expected = l1 * l2 * np.abs(np.sin(found.q[:, 1])) / np.mean(length) ** 2
    assert_close(found.manipulability, expected, 1e-12, "manipulability |l1 l2 sin q2|")
    assert_close(found.lower, found.points.min(axis=0), 0.0, "least coordinates")
    assert_close(found.upper, found.points.max(axis=0), 0.0, "largest coordinates")


@pytest.mark.slow
def test_loops_are_closed_at_every_point(tmp_path):
    """Return only points of closed positions, and draw them in their plane."""
    found = kt.load("five_bar").workspace("tool", samples=300)
    assert len(found.points) > 200
    assert np.abs(found.system.closure_residual(found.q)).max() < 1e-11
    assert found.plot(tmp_path / "five.png").stat().st_size > 5_000


@pytest.mark.slow
def test_pictures_are_written(tmp_path):
    """Draw solutions in space and in a plane, and a spatial workspace."""
    puma, planar = kt.load("puma560"), kt.load("planar_2r")
    T = puma.pose([0.4, -0.6, 0.5, 0.7, 0.9, -0.3], "link6")
    figures = [puma.inverse_kinematics(T, "link6", all=True).plot(), puma.workspace("link6", samples=500).plot()]
    point = planar.pose([0.3, 0.8], "tool")[:3, 3]
    figures.append(planar.inverse_kinematics(point, "tool", all=True).plot())
    assert [len(figure.axes) for figure in figures] == [8, 4, 2]
    T[:3, 3] += 5.0
    with pytest.raises(kt.InputError, match="there is no solution of 'link6' to draw"):
        puma.inverse_kinematics(T, "link6", all=True).plot()


def test_parts_give_the_same_bits(monkeypatch):
    """Compute the manipulability part by part, with a rest, and find the bits of one part."""
    from kinetree.analysis.kinematics import workspace

    arm = kt.load("planar_3r")
    whole = arm.workspace("tool", samples=101)
    monkeypatch.setattr(workspace, "PART", 37)
    assert np.array_equal(arm.workspace("tool", samples=101).manipulability, whole.manipulability)
