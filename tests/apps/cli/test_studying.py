"""The command `study`."""

from __future__ import annotations

import sys

import numpy as np

import kinetree as kt
from command_line import run
from press import TURN

FILE = (
    """
[study]
mechanism = "press"
[over]
r = { values = [0.05, 0.4] }
m_c = { grid = [0, 6, 3] }
"""
    + TURN
)


def test_study_writes_results_table_and_picture(tmp_path, capsys):
    """Evaluate a file, print best runs and failures, and write everything."""
    (tmp_path / "s.toml").write_text(FILE)
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out")) == 0
    out = capsys.readouterr().out
    assert "press: 6 of 6 runs in" in out
    assert "3 runs failed:" in out
    assert "run 3 (r = 0.4, m_c = 0): the loops do not close with the driven joints 'main_bearing' at t = " in out
    found = kt.read_study(tmp_path / "out" / "s.npz")
    assert np.isfinite(found["peak"][0]).all()
    assert len((tmp_path / "out" / "s.csv").read_text().splitlines()) == 7
    assert (tmp_path / "out" / "s.png").stat().st_size > 5000


def test_without_matplotlib_a_study_is_whole(tmp_path, capsys, monkeypatch):
    """Evaluate a study in a base installation: all but the picture, which is an error only where it is asked for."""
    (tmp_path / "s.toml").write_text(FILE)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("kinetree.plots.")]:
        monkeypatch.delitem(sys.modules, name)
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out")) == 0
    files = [str(tmp_path / "out" / name) for name in ("s.npz", "s.csv")]
    need = "Figures need the package matplotlib: pip install 'kinetree[plots]'"
    assert capsys.readouterr().out.rstrip().endswith("\n".join(["Files", *files, need]))
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), "--plot") == 2
    text = capsys.readouterr()
    assert text.out.rstrip().endswith("\n".join(["Files", *files])) and "Figures need the package" in text.err


def test_study_goes_on_in_a_store(tmp_path, capsys):
    """Write a store, and find everything done the second time."""
    (tmp_path / "s.toml").write_text(FILE)
    way = ("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), "--no-plot", "--no-table", "--workers", "1")
    for _ in range(2):
        assert run(*way) == 0
        assert str(tmp_path / "out" / "s.zarr") in capsys.readouterr().out
    (tmp_path / "s.toml").write_text(FILE.replace("speed = 20", "speed = 21"))
    assert run(*way) == 2
    assert (
        "is the store of another study: the motion or the options of the simulation differ" in capsys.readouterr().err
    )


def test_study_ends_with_a_status(tmp_path, capsys):
    """End with 1 if no run finished, and with 2 for a wrong file."""
    (tmp_path / "s.toml").write_text(FILE.replace("[0.05, 0.4]", "[0.4]"))
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), "--no-table") == 1
    (tmp_path / "s.toml").write_text(FILE.replace("m_c", "mc"))
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out")) == 2
    assert "no free parameter or initial state 'mc'; did you mean 'm_c'?" in capsys.readouterr().err


def test_an_interrupted_study_keeps_its_runs(tmp_path, capsys, monkeypatch):
    """Interrupt a study before its last runs: status 130, and the others are written."""
    from kinetree.studies import study

    real = study.evaluate

    def cut(plan, start, stop, *, progress):
        real(plan, start, stop - 2, progress=progress)
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "evaluate", cut)
    (tmp_path / "s.toml").write_text(FILE)
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), "--no-plot", "--no-table") == 130
    assert "press: 4 of 6 runs in" in capsys.readouterr().out
    assert np.isnan(kt.read_study(tmp_path / "out" / "s.npz")["peak"].ravel()[-2:]).all()
