"""`kinetree doctor`: its output and exit status."""

from __future__ import annotations

import json

import pytest

from command_line import run, words
from planar_loops import CRANK_ROCKER


def test_a_sound_mechanism(capsys):
    """Examine a four-bar and read mobility, findings and the verdict, with exit status 0."""
    assert run("doctor", "four_bar", "--drive", "crank") == 0
    out = words(capsys.readouterr().out)
    assert "four_bar: the loops" in out and "measured 1 (nv 3 - rank 2), counted 3 - 5 = -2" in out
    assert "3 equations hold by themselves." in out and "The drives hold the mechanism." in out
    assert out.endswith("four_bar: closed, mobility 1, nothing is wrong.")


def test_an_open_position_fails(capsys):
    """Give the published start of a four-bar that does not close, and get exit status 1 with the gap."""
    assert run("doctor", "crank_rocker", "--q", ", ".join(map(str, CRANK_ROCKER))) == 1
    out = words(capsys.readouterr().out)
    assert "wrong The position does not close." in out and "26.1 mm" in out
    assert out.endswith("crank_rocker: the position does not close.")


def test_joints_can_be_set(capsys):
    """Set the angle of the crank, assemble the rest, and print JSON."""
    assert run("doctor", "four_bar", "--set", "crank=pi/4", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and found["closed"] and found["q"][0] == pytest.approx(0.7853981633974483, abs=0)


def test_what_cannot_be_set_fails(capsys):
    """Set a rocker to an angle out of reach and read the nearest one, as text and as JSON, with exit status 1."""
    assert run("doctor", "crank_rocker", "--set", "rocker=0.9") == 1
    assert "nearest: hold rocker = " in capsys.readouterr().out
    assert run("doctor", "crank_rocker", "--set", "rocker=0.9", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"] and "nearest: hold rocker = " in found["verdict"]


def test_wrong_input_is_refused(capsys):
    """Mistype the value of an option and read the expected form, with exit status 2."""
    assert run("doctor", "four_bar", "--set", "crank") == 2
    assert "--set 'crank': write joint=value, such as --set crank=pi/4" in capsys.readouterr().err
    assert run("doctor", "four_bar", "--set", "cranc=1") == 2
    assert "no joint 'cranc'; did you mean 'crank'?" in capsys.readouterr().err
    assert run("doctor", "four_bar", "--q", "1, 2") == 2
    assert "--q has 2 numbers; give 3: crank, output, coupler" in capsys.readouterr().err
