"""The commands ik and workspace, and inverse along a path."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from command_line import run, words
from tolerance import assert_close


def test_ik_lists_solutions(capsys):
    """List all solutions of a planar arm, and find one solution of a point."""
    arm = kt.load("planar_3r")
    x, y, z = arm.pose([0.4, -1.1, 2.3], "tool")[:3, 3].tolist()
    pose = f"{x!r},{y!r},{z!r},0,0,1.6"
    assert run("ik", "planar_3r", "--frame", "tool", "--at", pose, "--all") == 0
    out = capsys.readouterr().out
    assert "planar_3r: positions with the given pose of tool" in out and "2 solutions by closed form, planar arm" in out
    assert any(
        line.split()[:3] == ["joint2", "-1.1", "1.1"] or line.split()[:3] == ["joint2", "1.1", "-1.1"]
        for line in out.splitlines()
    )
    assert run("ik", "planar_3r", "--frame", "tool", "--at", f"{x!r},{y!r},{z!r}", "--q0", "0.4,-1.1,2.3") == 0
    assert "1 search, " in capsys.readouterr().out


def test_ik_without_a_solution_fails(capsys):
    """Exit with 1 for a target out of reach, and with 2 for a wrong input."""
    assert run("ik", "planar_2r", "--frame", "tool", "--at", "9,0,0") == 1
    out = words(capsys.readouterr().out)
    assert "the target of 'tool' is not reached" in out and "on_failure" not in out
    assert "give --weights of zero for errors that do not matter, or --at x,y,z for the position alone" in out
    assert run("ik", "planar_2r", "--frame", "tool", "--at", "9,0,0", "--all") == 1
    assert run("ik", "planar_2r", "--frame", "tool", "--at", "0.1,0.2") == 2
    assert "--at has 2 numbers; give 3: x, y, z" in capsys.readouterr().err
    assert run("ik", "planar_2r", "--frame", "tool", "--at", "0.1,0.2,0", "-o", "x.png") == 2
    assert "--output is for a picture of all solutions; add --all" in capsys.readouterr().err


@pytest.mark.slow
def test_workspace_prints_its_extent(tmp_path, capsys):
    """Print the extent of the points and write a picture, also of solutions."""
    picture = tmp_path / "reach.png"
    assert run("workspace", "planar_2r", "--frame", "tool", "--samples", "500", "-o", str(picture)) == 0
    assert "planar_2r: 500 points that tool reaches" in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    point = ",".join(map(repr, kt.load("planar_2r").pose([0.3, 0.8], "tool")[:3, 3].tolist()))
    two = tmp_path / "two.png"
    assert run("ik", "planar_2r", "--frame", "tool", "--at", point, "--all", "-o", str(two)) == 0
    assert two.stat().st_size > 1000


def test_inverse_along_a_path(tmp_path, capsys):
    """Compute the torques of an arm whose tool moves through the points of a CSV file."""
    arm = kt.load("planar_2r")
    points = arm.pose([[0.3, 0.8], [0.5, 0.9], [0.8, 0.7]], "tool")[:, :3, 3]
    file = tmp_path / "path.csv"
    rows = [f"{t},{','.join(map(repr, p.tolist()))}" for t, p in zip((0.0, 0.4, 1.0), points, strict=True)]
    file.write_text("t,x,y,z\n" + "\n".join(rows) + "\n")
    way = (
        "inverse",
        "planar_2r",
        "--path",
        str(file),
        "--frame",
        "tool",
        "--q0",
        "0.3,0.8",
        "--samples",
        "11",
        "--out",
    )
    assert run(*way, str(tmp_path)) == 0
    capsys.readouterr()
    saved = kt.read_trajectory(tmp_path / "planar_2r_inverse.csv")
    expected = arm.cartesian_motion(points, "tool", times=[0.0, 0.4, 1.0], samples=11, q0=[0.3, 0.8])
    assert_close(saved.q, expected.q, 1e-12, "positions along the path")
    assert_close(saved["tau"], arm.inverse_dynamics(expected.q, expected.qd, expected.qdd), 1e-9, "torques")
    assert np.abs(arm.pose(saved.q[-1], "tool")[:3, 3] - points[-1]).max() < 1e-12


def test_inverse_refuses_incomplete_paths(tmp_path, capsys):
    """Refuse a path without a frame, or without all columns of a pose."""
    file = tmp_path / "path.csv"
    file.write_text("t,x,y,roll\n0,0,0,0\n1,1,1,0\n")
    assert run("inverse", "planar_2r", "--path", str(file)) == 2
    assert "--path requires --frame" in capsys.readouterr().err
    assert run("inverse", "planar_2r", "--path", str(file), "--frame", "tool", "--out", str(tmp_path)) == 2
    assert "has the columns x, y, roll of x, y, z, roll, pitch, yaw; give x, y, z or all" in capsys.readouterr().err
