"""The option --output: one rule for where every command writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer

import everyday
import kinetree as kt
from command_line import run
from kinetree.apps import cli
from kinetree.apps.cli.console import OUT
from press import TURN

STUDY = (
    """
[study]
mechanism = "press"
[over]
r = { values = [0.05, 0.06] }
"""
    + TURN
)
EXPERIMENT = """
[experiment]
mechanism = "planar_2r"
[run]
duration = 0.1
[output]
save = "fall.csv"
"""
FILES = {
    "simulate": ("simulate planar_2r --duration 0.1", "way.npz", "way.npz"),
    "inverse": ("inverse planar_2r --cycloid --q1 1,2 --duration 0.1 --samples 5", "planar_2r_inverse.csv", "way.csv"),
    "cycle": ("cycle four_bar --drive crank --speed 3 --samples 5", "four_bar_cycle.csv", "turn.npz"),
    "balance": ("balance planar_2r --over joint1=0:1 --samples 3", "planar_2r_balance.png", "rest.svg"),
    "workspace": ("workspace planar_2r --frame tool --samples 50", "planar_2r_workspace.png", "reach.png"),
    "ik": ("ik planar_2r --frame tool --at 0.3,0.1,0 --all", "planar_2r_ik.png", "both.png"),
    "plot": ("plot run.csv", "run.png", "q.pdf"),
    "replay": ("replay run.csv", "run.html", "page.html"),
    "loads": ("loads run.csv", "run_loads.html", "report.html"),
    "page": ("page pendulum", "pendulum.html", "swing.html"),
    "teach": ("teach pendulum --no-browser", "pendulum_teach.html", "sliders.html"),
    "lesson": ("lesson pendulum", "pendulum.html", "first.html"),
    "report": ("report study.npz", "study_report.html", "all.html"),
}
"""Commands with one main file: its name in a folder, and another name for it."""
FOLDERS = {
    "run": ("run fall.toml", "fall.csv"),
    "study": ("study press.toml --no-plot", "press.npz"),
    "export": ("export pendulum --functions gravity_torque", "gravity_torque.c"),
    "reproduce": ("reproduce gupta2013-masses", "gupta2013_masses.csv"),
    "identify": ("identify log.csv --model planar_2r --no-delays --method ols", "planar_2r_identified.toml"),
    "demo": ("demo", "stanford_torques.png"),
    "new": ("new robot", "robot.toml"),
}
"""Commands with several files, and one of them."""
QUIET = ("list", "show", "doctor", "verify", "cost", "bench", "equations", "studio")
"""Commands that write no files of results."""


def commands() -> dict:
    """Return all commands of the command line by name."""
    return typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]


def written(folder: Path) -> set[str]:
    """Return the files below a folder that a command may have made, without those of `place`."""
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()} - GIVEN


GIVEN = {"run.csv", "log.csv", "study.npz", "press.toml", "fall.toml"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with a run, an experiment, a study and its results, as the current one."""
    monkeypatch.chdir(tmp_path)
    arm = kt.load("planar_2r")
    kt.simulate(arm, duration=0.1, method="rk4", dt=0.01).save("run.csv")
    t = np.arange(0.0, 6.0, 0.02)
    rate, size = np.array((1.7, 2.9)), np.array((1.0, 0.7))
    angle = t[:, None] * rate
    q, qd, qdd = size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)
    tau = arm.inverse_dynamics(q, qd, qdd)
    log = np.column_stack([t, q, tau])
    np.savetxt("log.csv", log, delimiter=",", header="time,q1,q2,tau1,tau2", comments="")
    Path("fall.toml").write_text(EXPERIMENT)
    Path("press.toml").write_text(STUDY)
    cycle = {"drive": "main_bearing", "speed": 20.0}
    over, measures = {"r": [0.05, 0.06]}, {"peak": "peak control.main_bearing"}
    kt.study(kt.load("press"), over=over, cycle=cycle, steps=12, measures=measures).save("study.npz")
    return tmp_path


def test_all_commands_have_the_same_option():
    """Find --output, --out and -o in every command that writes, with the folder out as its default."""
    found = {}
    for name, command in commands().items():
        for option in command.params:
            if "-o" in option.opts:
                assert set(option.opts) == {"--output", "--out", "-o"}, name
                found[name] = option.default
    assert set(found) == {*FILES, *FOLDERS} and not set(found) & set(QUIET)
    others = {"ik": None, "simulate": None, "new": None}  # nothing unless it is asked for; the folder of the robot
    assert found == {name: others.get(name, OUT) for name in found} and str(OUT) == "out"


@pytest.mark.parametrize("name", everyday.some(list(FILES)))
def test_a_main_file_is_in_the_folder_or_where_it_is_named(name, place):
    """Write the main file into out, into another folder, and to a path with another name."""
    line, usual, other = FILES[name]
    more = ["--save", usual] if name == "simulate" else []
    asked = ["-o", "out"] if name == "ik" else []
    assert run(*line.split(), *more, *asked) == 0
    assert written(place) == {f"out/{usual}"}
    assert run(*line.split(), *more, "-o", "deep/folder") == 0
    assert written(place) == {f"out/{usual}", f"deep/folder/{usual}"}
    assert run(*line.split(), "--output", f"named/{other}") == 0
    assert written(place) == {f"out/{usual}", f"deep/folder/{usual}", f"named/{other}"}


@pytest.mark.parametrize("name", everyday.some([name for name in FOLDERS if name != "demo"]))
def test_several_files_are_in_the_folder(name, place, capsys):
    """Write into out (new: into a folder of the robot's name) and into another folder; refuse the name of a file."""
    line, one = FOLDERS[name]
    assert run(*line.split()) == 0
    top = "robot" if name == "new" else "out"
    assert f"{top}/{one}" in written(place) and all(file.startswith(f"{top}/") for file in written(place))
    before = written(place)
    assert run(*line.split(), "-o", "else/where") == 0
    made = written(place) - before
    assert f"else/where/{one}" in made and all(file.startswith("else/where/") for file in made)
    capsys.readouterr()
    before = written(place)
    assert run(*line.split(), "--output", "results.png") == 2
    assert "--output 'results.png': give a folder, without .png; files are named" in capsys.readouterr().err
    assert written(place) == before


def test_a_run_has_one_name(place, capsys):
    """Name the file of a run twice, or by an ending that no run has, and read one line each."""
    line = "simulate planar_2r --duration 0.1".split()
    assert run(*line, "-o", "a.csv", "--save", "b.csv") == 2
    assert "--output 'a.csv' names the file of the run; leave out --save, or give a folder" in capsys.readouterr().err
    assert run(*line, "-o", "a.png") == 2
    assert "a file for the run that ends with .csv, .npz, .parquet, .zarr" in capsys.readouterr().err
    assert written(place) == set()


def test_a_folder_alone_asks_for_the_run(place):
    """Simulate with -o FOLDER and no other file: the run is saved there; with --plot, the picture alone is written."""
    assert run("simulate", "planar_2r", "--duration", "0.1", "-o", "kept") == 0
    assert written(place) == {"kept/planar_2r.npz"}
    assert kt.read_trajectory("kept/planar_2r.npz").finished
    assert run("simulate", "planar_2r", "--duration", "0.1", "-o", "drawn", "--plot") == 0
    assert written(place) == {"kept/planar_2r.npz", "drawn/planar_2r.png"}


def test_a_folder_may_look_like_a_file(place):
    """Write into an existing folder whose name ends like that of a file."""
    (place / "made.html").mkdir()
    assert run("replay", "run.csv", "-o", "made.html") == 0
    assert written(place) == {"made.html/run.html"}


def test_a_study_file_is_run(place, capsys):
    """Run a study by `run` and by `study`, and find the same results in the folder."""
    assert run("run", "press.toml", "-o", "a") == 0
    assert "press: 2 of 2 runs" in capsys.readouterr().out
    assert run("study", "press.toml", "-o", "b") == 0
    a, b = (kt.read_study(f"{folder}/press.npz") for folder in "ab")
    assert a.measures["peak"].tolist() == b.measures["peak"].tolist()
    assert {file.removeprefix("a/") for file in written(place) if file.startswith("a/")} == {
        file.removeprefix("b/") for file in written(place) if file.startswith("b/")
    }
