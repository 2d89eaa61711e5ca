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


def test_teach_writes_a_page_and_opens_it(tmp_path, capsys, monkeypatch):
    """Write the page of sliders, open it only where a browser is wanted, and print its path."""
    seen = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    file = tmp_path / "arm.html"
    assert run("teach", "planar_2r", "-o", str(file), "--no-browser") == 0 and not seen
    assert run("teach", "planar_2r", "-o", str(file)) == 0
    assert seen == [file.as_uri()] and capsys.readouterr().out == f"{file}\n" * 2
    assert "#mode=Move" in file.read_text()


def test_dh_prints_a_table(capsys):
    """Print the table of an arm, and read why a walker has none."""
    assert run("dh", "puma560", "--convention", "standard") == 0
    assert ["link3", "revolute", "link2", "q", "-0.0934", "-0.0203", "90"] in [
        x.split() for x in capsys.readouterr().out.splitlines()
    ]
    assert run("dh", "biped") != 0
    assert "Denavit-Hartenberg tables are of revolute, prismatic and fixed joints" in capsys.readouterr().err
