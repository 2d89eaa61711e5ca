"""The command page: its file and its errors."""

from __future__ import annotations

from command_line import run


def test_page_writes_a_file(tmp_path, capsys):
    """Write the page of an arm, and read its size."""
    assert run("page", "planar_2r", "-o", str(tmp_path / "arm.html")) == 0
    size = (tmp_path / "arm.html").stat().st_size
    assert capsys.readouterr().out == f"{tmp_path / 'arm.html'} ({size / 1000:.0f} kB)\n"


def test_other_files_are_refused(tmp_path, capsys):
    """Ask for a page under a name that is none."""
    assert run("page", "planar_2r", "-o", str(tmp_path / "arm.pdf")) != 0
    assert "'arm.pdf' is not a web page; use a name that ends with .html" in capsys.readouterr().err
