"""The command `cycle`."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from command_line import run
from tolerance import assert_close


def test_cycle_writes_torques_and_reactions(tmp_path, capsys):
    """Turn the crank of a four-bar once, and find the torque and the reactions of the library in the file."""
    way = ("cycle", "four_bar", "--drive", "crank", "--speed", "10", "--out", str(tmp_path))
    assert run(*way, "--samples", "37", "--save", "c.npz", "--plot") == 0
    assert "four_bar: one revolution of crank in 0.628319 s" in capsys.readouterr().out
    assert (tmp_path / "four_bar_cycle.png").stat().st_size > 1000
    found, turn = kt.read_trajectory(tmp_path / "c.npz"), kt.load("four_bar").cycle("crank", speed=10.0, samples=37)
    assert_close(found["control"], turn["control"], 1e-12 * np.abs(turn["control"]).max(), "torque")
    assert run(*way) == 0
    header = (tmp_path / "four_bar_cycle.csv").read_text().splitlines()
    assert any("loop_reactions.pin.fx" in line for line in header[:40])


def test_cycle_refuses_drives_without_a_cycle(tmp_path, capsys):
    """Drive a slider, and a joint that does not exist."""
    assert run("cycle", "slider_crank", "--drive", "slider", "--speed", "1", "--out", str(tmp_path)) == 2
    assert "'slider' is prismatic: name a revolute joint" in capsys.readouterr().err
    assert run("cycle", "four_bar", "--drive", "crnk", "--speed", "1", "--out", str(tmp_path)) == 2
    assert "no joint 'crnk'; did you mean 'crank'?" in capsys.readouterr().err
