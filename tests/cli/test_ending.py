"""The end of commands: closed pipes, full disks and interruptions each give one line and their own exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import kinetree as kt
from kinetree import cli

FALL = ("simulate", "planar_2r", "--duration", "0.1", "--save", "p.npz")


def ended(*arguments: str, stdout, folder: Path) -> tuple[int, str]:
    """Run the command line in a process of its own and return its exit status and its stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "kinetree", *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
@pytest.mark.parametrize("arguments", [FALL, ("list",), ("equations", "planar_2r"), ("simulate", "--help")])
def test_a_closed_pipe_is_one_line(arguments, tmp_path):
    """Print into a pipe that the reader has closed: one line, status 141, and the files exist."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        status, complaint = ended(*arguments, stdout=writer, folder=tmp_path)
    finally:
        os.close(writer)
    assert complaint == "kinetree: the reader of the output closed the pipe; the rest is not printed\n"
    assert status == 141
    if arguments == FALL:
        assert len(kt.read_trajectory(tmp_path / "out" / "p.npz")) == 1001


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [FALL, ("list",)])
def test_a_full_disk_is_one_line(arguments, tmp_path):
    """Print to a full disk: one line, status 74, and the files elsewhere exist."""
    with open("/dev/full", "w") as full:
        status, complaint = ended(*arguments, stdout=full, folder=tmp_path)
    assert complaint == "kinetree: the output: No space left on device; free some disk space, or choose another path\n"
    assert status == 74
    if arguments == FALL:
        assert len(kt.read_trajectory(tmp_path / "out" / "p.npz")) == 1001


def test_an_interruption_is_one_line(monkeypatch, capsys):
    """Interrupt a command before it has results: one line and status 130."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("kinetree.loading.load", interrupted)
    with pytest.raises(SystemExit) as stop:
        cli.main(["cost", "stanford"])
    assert stop.value.code == 130
    assert capsys.readouterr() == ("", "kinetree: interrupted\n")


def test_a_run_that_is_interrupted_is_kept(monkeypatch, capsys, tmp_path):
    """Interrupt a run: its samples are written and printed, and the status is 130."""
    real = kt.simulate

    def cut(*arguments, **options):
        return replace(real(*arguments, **options), status="stopped: interrupted at t = 0.05 s")

    monkeypatch.setattr("kinetree.simulator.simulate", cut)
    with pytest.raises(SystemExit) as stop:
        cli.main([*FALL, "--out", str(tmp_path)])
    assert stop.value.code == 130
    assert "status: stopped: interrupted" in capsys.readouterr().out
    assert (tmp_path / "p.npz").exists()


def test_what_cannot_be_written_is_still_printed(monkeypatch, capsys, tmp_path):
    """Fail to write a run: its summary is still printed, and one line gives the reason."""

    def full(self, path, **options):
        raise kt.InputError(f"{path}: cannot be written (No space left on device); make room")

    monkeypatch.setattr("kinetree.results.trajectory.Trajectory.save", full)
    with pytest.raises(SystemExit) as stop:
        cli.main([*FALL, "--out", str(tmp_path)])
    out, complaint = capsys.readouterr()
    assert stop.value.code == 2
    assert "status: finished" in out
    assert complaint == f"kinetree: {tmp_path / 'p.npz'}: cannot be written (No space left on device); make room\n"
