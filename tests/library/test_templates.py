"""Templates of new robots: they run as they are, and nothing is overwritten."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import everyday
import kinetree as kt
from command_line import run, words
from kinetree.experiments import read_experiment
from kinetree.library.templates import KINDS, new_robot

COMMANDS = re.compile(r"`kinetree ([^`]+)`")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_command_of_the_guide_works(kind, tmp_path, monkeypatch, capsys):
    """Make a robot, and run every command of its README in its folder."""
    monkeypatch.chdir(tmp_path)
    assert run("new", "Rover_2", "--kind", kind) == 0
    assert words(capsys.readouterr().out).endswith("Next: cd Rover_2 && kinetree show Rover_2.toml")
    monkeypatch.chdir(tmp_path / "Rover_2")
    guide = (tmp_path / "Rover_2" / "README.md").read_text()
    commands = COMMANDS.findall(guide)
    assert [c.split()[0] for c in commands] == ["show", "show", "inverse", "doctor", "simulate", "verify", "run"]
    for command in commands:
        more = ["--states", "1", "--route", "denoc"] if command.startswith("verify") else []
        assert run(*shlex.split(command), *more) == 0, command
    for word in ("ROBOT", "STEP", "INVERSE", "START"):
        assert not any(word in file.read_text() for file in (tmp_path / "Rover_2").glob("*.*"))
    assert sorted(f.name for f in (tmp_path / "Rover_2" / "out").iterdir()) == [
        "Rover_2.png", "Rover_2_inverse.csv", "experiment.png", "run.html", "run.npz",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", everyday.without(list(KINDS), ["arm", "tree"]))
def test_every_template_is_sound(kind, tmp_path):
    """Load a template without suspect entries, check that its loops close, and simulate its experiment to the end."""
    model, experiment, _ = new_robot("robot", kind, tmp_path / "a" / "b")
    system = kt.load(model)
    assert not system.report.of("suspect") and not system.report.of("dropped")
    assert system.doctor().ok
    found = read_experiment(experiment).simulate()
    assert found.finished and not kt.limit_violations(found)


@everyday.long
def test_the_closed_template_is_balanced(tmp_path):
    """Hold the boom with a small share of the force that it takes without its spring."""
    system = kt.load(new_robot("robot", "closed", tmp_path)[0])
    q = system.assemble(hold={"actuator": 0.1, "wrist": 0.0})
    rest = system.neutral() * 0.0
    drives = ["actuator", "wrist"]
    alone = system.inverse_dynamics(q, rest, rest, actuated=drives, forces=False)[-1]
    with_spring = system.inverse_dynamics(q, rest, rest, actuated=drives, forces=True)[-1]
    assert abs(with_spring) < 0.3 * abs(alone)


def test_the_next_command_works(tmp_path, monkeypatch, capsys):
    """Make a robot by the command line, and show it as the last line proposes."""
    monkeypatch.chdir(tmp_path)
    assert run("new", "crane", "--kind", "closed") == 0
    assert words(capsys.readouterr().out).endswith("Next: cd crane && kinetree show crane.toml")
    monkeypatch.chdir(tmp_path / "crane")
    assert run("show", "crane.toml") == 0
    assert "crane.toml:99: pair 'rod_pin' is cut in the ring rod - cylinder" in words(capsys.readouterr().out)


def test_nothing_is_overwritten(tmp_path, monkeypatch, capsys):
    """Refuse a folder that has one of the files, and leave the folder as it was."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot").mkdir()
    (tmp_path / "robot" / "README.md").write_text("mine")
    assert run("new", "robot") == 2
    message = "robot/README.md: exists, and is not overwritten; choose another name or another folder with --output"
    assert message in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "robot").iterdir()] == ["README.md"]
    assert run("new", "robot", "-o", "other") == 0
    assert run("new", "robot", "-o", "robot/README.md") == 2
    assert "--output 'robot/README.md': give a folder, without .md; files are named" in capsys.readouterr().err
    (tmp_path / "robot" / "file").write_text("")
    assert run("new", "robot", "-o", "robot/file") == 74
    assert "robot/file: cannot be made (File exists); choose another folder with --output" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["../robot"], "the name '../robot' cannot be used for files and models; give letters, digits, _ and -, a letter"),
    (["a b"], "the name 'a b' cannot be used"),
    (["robot", "--kind", "leg"], "no kind of template 'leg'; available: arm, tree, closed"),
])  # fmt: skip
def test_wrong_names_are_refused(arguments, message, tmp_path, monkeypatch, capsys):
    """Refuse names that lead elsewhere, and kinds that do not exist."""
    monkeypatch.chdir(tmp_path)
    assert run("new", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_guide_quotes_the_template(tmp_path):
    """Find the tables of a file in the guide to the seven steps unchanged in the template."""
    guide = (Path(__file__).parents[2] / "docs" / "seven-steps.md").read_text()
    model = new_robot("crane", "closed", tmp_path)[0].read_text()
    quoted = re.findall(r"^```toml\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    assert len(quoted) == 3 and all(text in model for text in quoted)
