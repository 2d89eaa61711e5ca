"""The command `loads`."""

from __future__ import annotations

from pathlib import Path

import everyday
import kinetree as kt
from command_line import run, words
from loaded_runs import spinning

ROOT = Path(__file__).resolve().parents[3]


def test_loads_writes_a_page_and_tables(tmp_path, capsys):
    """Report a saved run with a catalogue: summary on the terminal, a page and tables as files."""
    saved = spinning(61).save(tmp_path / "spin.npz")
    way = ("loads", str(saved), "--catalogue", str(ROOT / "examples" / "motors.csv"), "--csv", "tables")
    assert run(*way, "-o", str(tmp_path), "--safety", "1.5", "--thermal-time", "20") == 0
    out = words(capsys.readouterr().out)
    assert "spinner: loads" in out and "hinge needs" in out and "First choice of the catalogue" in out
    assert "In short" in (tmp_path / "spin_loads.html").read_text()
    assert {f.name for f in (tmp_path / "tables").iterdir()} >= {"drives.csv", "bearings.csv", "candidates.csv"}


@everyday.long
def test_loads_simulates_an_experiment(tmp_path, capsys):
    """Report the run of an experiment file, of one joint."""
    page = tmp_path / "report.html"
    assert run("loads", str(ROOT / "examples" / "planar_way.toml"), "--joint", "joint1", "-o", str(page)) == 0
    text = page.read_text()
    assert "Drive joint1" in text and "Drive joint2" not in text
    assert str(page) in words(capsys.readouterr().out)


def test_loads_refuses_wrong_input(tmp_path, capsys):
    """Name a joint, a catalogue and a page that cannot be used."""
    saved = str(spinning(11).save(tmp_path / "spin.npz"))
    assert run("loads", saved, "--joint", "hing") == 2
    assert "no joint or loop 'hing'; did you mean 'hinge'?" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("kind,name\nmotor,A\n")
    assert run("loads", saved, "--catalogue", str(tmp_path / "bad.csv")) == 2
    assert "bad.csv:2: motor 'A': the columns peak_torque [N m], continuous_torque" in capsys.readouterr().err
    assert run("loads", saved, "-o", str(tmp_path / "report.pdf")) == 2
    assert "report.pdf: is not the name of a page; use one that ends with .html" in capsys.readouterr().err
    assert list(tmp_path.glob("*.html")) == []


def test_loads_of_a_run_that_stopped_early(tmp_path, capsys):
    """Write the report of the part that exists, with status 1."""
    arm = kt.load("planar_2r")
    saved = kt.simulate(arm, [0.1, 0.2], duration=5.0, max_steps=20).save(tmp_path / "short.npz")
    assert run("loads", str(saved), "-o", str(tmp_path)) == 1
    assert "The run ended early (stopped:" in capsys.readouterr().out
    assert (tmp_path / "short_loads.html").exists()
