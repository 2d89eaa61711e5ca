"""The command `kinetree lesson`."""

from __future__ import annotations

from command_line import run, words
from kinetree.apps.lessons import names


def test_lessons_are_listed_and_written(tmp_path, capsys):
    """List all lessons with their titles, write one, and refuse an unknown name."""
    assert run("lesson") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in names()) and "The four-bar linkage" in listed
    out = tmp_path / "first.html"
    assert run("lesson", "pendulum", "-o", str(out)) == 0
    assert "first.html" in capsys.readouterr().out and "<title>The pendulum</title>" in out.read_text()
    assert run("lesson", "pendulums") == 2
    assert "no lesson 'pendulums'; did you mean 'pendulum'?" in words(capsys.readouterr().err)
