"""`kinetree studio`: its address, its end by Ctrl-C, and options that are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from command_line import run

COMMAND = [sys.executable, "-m", "kinetree", "studio", "planar_2r", "--no-browser"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_studio_starts_and_ends(tmp_path):
    """Start it, request the page at the printed address, and end it by Ctrl-C without an error."""
    with subprocess.Popen(
        [*COMMAND, "--folder", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line, next_line = process.stdout.readline(), process.stdout.readline()
        assert line.startswith("The studio is at http://127.0.0.1:")
        with urlopen(line.split()[-1], timeout=120) as page:
            assert b"<title>planar_2r</title>" in page.read()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and next_line == "Ctrl-C ends it.\n" and (rest, errors) == ("", "")


def test_wrong_options_are_refused(tmp_path, capsys):
    """Choose a folder that does not exist, a mechanism that does not, and a port that is none."""
    assert run("studio", "planar_2r", "--no-browser", "--folder", str(tmp_path / "none")) == 2
    assert "no such folder; create it, or choose another one" in capsys.readouterr().err
    assert run("studio", "planar_r2", "--no-browser") == 2
    assert "no library mechanism 'planar_r2'" in capsys.readouterr().err
    assert run("studio", "planar_2r", "--no-browser", "--port", "70000") == 2


def test_roots_are_those_of_later_files(tmp_path, monkeypatch):
    """Give a folder of packages with the mechanism of the library that the studio begins with: it starts."""
    asked: list[tuple] = []
    made = SimpleNamespace(address="http://127.0.0.1:1/", run=lambda: None)
    monkeypatch.setattr("kinetree.apps.studio.server.listen", lambda *given: asked.append(given) or made)
    command = ("studio", "--no-browser", "--folder", str(tmp_path), "--root", str(tmp_path))
    assert run(*command) == 0
    first, folder, port = asked[0]
    assert first().mechanism.name == "puma560" and folder.packages == (tmp_path.resolve(),) and port is None
