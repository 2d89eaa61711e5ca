"""Tests of src/kinetree/plots/analysis_plots.py."""

from __future__ import annotations

import numpy as np
from matplotlib.image import imread

import kinetree as kt


def test_curves_and_maps_are_drawn(tmp_path):
    """Draw the torques of an arm over one joint and over two, and find panels for both of its joints."""
    arm = kt.load("planar_2r")
    curves = arm.balance({"joint1": (-1.0, 1.0)}, samples=9)
    figure = curves.plot()
    assert [axes.get_ylabel() for axes in figure.axes] == ["joint1  [N m]", "joint2  [N m]"]
    assert figure.axes[-1].get_xlabel() == "joint1  [rad]"
    drawn = figure.axes[0].lines[0].get_ydata()
    assert np.array_equal(drawn, curves.residual[:, 0])
    maps = arm.balance({"joint1": (-1.0, 1.0), "joint2": (0.0, 2.0)}, samples=9)
    path = maps.plot(tmp_path / "map.png", heading="gravity")
    assert imread(path).std() > 0.05
