"""The command `balance`."""

from __future__ import annotations

from command_line import run


def test_balance_prints_and_draws(tmp_path, capsys):
    """Print peak and RMS torques over a joint, and write a picture."""
    picture = tmp_path / "held.png"
    way = ("balance", "planar_2r", "--over", "joint1=-pi/2:pi/2", "--samples", "11", "-o", str(picture))
    assert run(*way) == 0
    out = capsys.readouterr().out
    assert "planar_2r: torques at rest over joint1" in out and "RMS without" in out
    assert picture.stat().st_size > 1000


def test_balance_refuses_ranges_that_are_none(capsys):
    """Leave out a bound, and name a joint that does not exist."""
    assert run("balance", "planar_2r", "--over", "joint1=1") == 2
    assert "write joint=low:high, such as --over elbow=-1.5:1.5" in capsys.readouterr().err
    assert run("balance", "planar_2r", "--over", "jont1=0:1") == 2
    assert "no joint 'jont1'" in capsys.readouterr().err
