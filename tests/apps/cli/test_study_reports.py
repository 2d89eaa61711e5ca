"""The command `report`, and the reports of the command `study`."""

from __future__ import annotations

import re

import pytest

import everyday
from command_line import run, words
from press import TURN

FILE = (
    """
[study]
mechanism = "press"
samples = 30
[over]
r = { uniform = [0.05, 0.4] }
"""
    + TURN
)


@everyday.long
def test_reports_of_studies_are_written(tmp_path, capsys):
    """Write the page of a study with its results, and that of its store with limits."""
    pytest.importorskip("zarr")
    (tmp_path / "s.toml").write_text(FILE)
    given = ("study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), "--no-plot", "--no-table")
    assert run(*given, "--store", str(tmp_path / "s.zarr"), "--report", str(tmp_path / "s.html")) == 0
    assert "<h2>The worst case</h2>" in (tmp_path / "s.html").read_text()
    capsys.readouterr()
    limits = ("--limit", "peak < 20.5", "--limit", "peak > 1")
    assert run("report", str(tmp_path / "s.zarr"), "-o", str(tmp_path), *limits) == 0
    printed = capsys.readouterr().out
    out = words(printed)
    assert "press: 30 of 30 runs" in out and "of 30 runs failed: probability" in out and "\\n" not in printed
    assert re.search(
        r"^Failed runs\nreason +runs\n(.*\n)*peak below 1 N m or above 20.5 N m +\d+\n", printed, re.MULTILINE
    )
    assert "peak below 1 N m or above 20.5 N m" in (tmp_path / "s_report.html").read_text()


@everyday.long
def test_a_file_gives_sensitivity_indices(tmp_path, capsys):
    """Evaluate the scheme of a file into a store, and report indices and bands from the store alone."""
    pytest.importorskip("zarr")
    pytest.importorskip("SALib")
    planned = FILE.replace("samples = 30", 'samples = 64\nkeep = ["control"]').replace("0.05, 0.4", "0.05, 0.1")
    both = 'r = { uniform = [0.05, 0.1] }\nm_c = { uniform = [0, 6] }\n[sensitivity]\nmethod = "sobol"\n'
    (tmp_path / "s.toml").write_text(planned.replace("r = { uniform = [0.05, 0.1] }\n", both))
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path), "--no-plot", "--no-table", "--shard", "99") == 0
    capsys.readouterr()
    assert run("report", str(tmp_path / "s.zarr"), "-o", str(tmp_path)) == 0
    out = words(capsys.readouterr().out)
    assert "press: 256 of 256 runs" in out
    assert "The most important quantity is r: it has" in out and "% of the variance of peak, with interactions" in out
    page = (tmp_path / "s_report.html").read_text()
    assert "control" in page and "m_c" in page


WRONG = {
    "--limit peak": "--limit 'peak': give a measure, < or >, and a number: 'peak < 50'",
    "--limit torque<3": "no measure 'torque'",
    "-o page.pdf": "page.pdf: is not the name of a page; use one that ends with .html",
    "--column q": "this study has no store",
}


def test_wrong_options_are_refused(tmp_path, capsys):
    """Name the option that is wrong."""
    (tmp_path / "s.toml").write_text(FILE)
    assert run("study", str(tmp_path / "s.toml"), "-o", str(tmp_path), "--no-plot", "--no-table") == 0
    capsys.readouterr()
    for arguments, message in WRONG.items():
        assert run("report", str(tmp_path / "s.npz"), *arguments.split()) == 2
        assert message in words(capsys.readouterr().err)


def test_other_files_are_refused(tmp_path, capsys):
    """Name a file or folder that is not a study."""
    assert run("report", str(tmp_path)) == 2
    assert "is not the store of a study" in words(capsys.readouterr().err)
    assert run("report", str(tmp_path / "nothing.zarr")) == 2
    assert "nothing.zarr: does not exist; give the store of a study" in words(capsys.readouterr().err)
