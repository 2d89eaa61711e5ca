"""The end of commands: closed pipes, full disks and interruptions each give one line and their own exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import everyday
import kinetree as kt
from kinetree._support.interruption import keep_in_interrupt
from kinetree.apps import cli
from kinetree.errors import WriteError
from kinetree.simulation.outcomes import Ending, Endings, Outcome

FALL = ("simulate", "planar_2r", "--duration", "0.1", "--save", "p.npz")


def ended(*arguments: str, stdout, folder: Path, first=None) -> tuple[int, str]:
    """Run the command line in a process of its own, after the function `first`; return its exit status and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "kinetree", *arguments],
        stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=folder, preexec_fn=first,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
@pytest.mark.parametrize(
    "arguments", everyday.only([FALL, ("list",), ("equations", "planar_2r"), ("simulate", "--help")], [FALL])
)
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
@pytest.mark.parametrize("arguments", everyday.some([pytest.param(("list",)), pytest.param(FALL)]))
def test_a_full_disk_is_one_line(arguments, tmp_path):
    """Print to a full disk: one line, status 74, and the files elsewhere exist."""
    with open("/dev/full", "w") as full:
        status, complaint = ended(*arguments, stdout=full, folder=tmp_path)
    reason = "cannot be written (No space left on device); choose another path or free disk space"
    assert complaint == f"kinetree: the output: {reason}\n"
    assert status == 74
    if arguments == FALL:
        assert len(kt.read_trajectory(tmp_path / "out" / "p.npz")) == 1001


@everyday.long
@pytest.mark.skipif(os.name == "nt", reason="descriptors are closed otherwise on Windows")
@pytest.mark.parametrize("arguments", everyday.only([FALL, ("list",)], [FALL]))
def test_a_closed_output_is_one_line(arguments, tmp_path):
    """Close stdout before the start: one line, status 74, and the files exist."""
    status, complaint = ended(*arguments, stdout=None, folder=tmp_path, first=lambda: os.close(1))
    reason = "cannot be written (Bad file descriptor); choose another path or free disk space"
    assert (status, complaint) == (74, f"kinetree: the output: {reason}\n")
    if arguments == FALL:
        assert len(kt.read_trajectory(tmp_path / "out" / "p.npz")) == 1001


@pytest.mark.parametrize(
    ("arguments", "file"),
    everyday.some(
        [
            (FALL, "out/p.npz"),
            ((*FALL[:-2], "--plot"), "out/planar_2r.png"),
            ((*FALL[:-2], "--replay", "p.html"), "out/p.html"),
            (("inverse", "planar_2r", "--cycloid", "--q1", "1,2"), "out/planar_2r_inverse.csv"),
            (("run", "fall.toml"), "out/fall.csv"),
            (("plot", "saved.csv"), "out/saved.png"),
            (("replay", "saved.csv"), "out/saved.html"),
            (("reproduce", "saha1999-figure-5"), "out/saha1999_figure_5.png"),
        ]
    ),
)
def test_files_that_cannot_be_written_are_one_line(arguments, file, monkeypatch, capsys, tmp_path):
    """Put a folder where each file belongs: one line that names the file, status 74, and no partial file."""
    monkeypatch.chdir(tmp_path)
    kt.simulate(kt.load("planar_2r"), duration=0.1).save("saved.csv")
    Path("fall.toml").write_text(
        '[experiment]\nmechanism = "planar_2r"\n[run]\nduration = 0.1\n[output]\nsave = "fall.csv"\n'
    )
    Path(file).mkdir(parents=True)
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    reason = "cannot be written (Is a directory); choose another path or free disk space"
    assert (stop.value.code, capsys.readouterr().err) == (74, f"kinetree: {file}: {reason}\n")
    assert {path.name for path in Path(file).parent.iterdir()} <= {Path(file).name, "saved.csv", "fall.toml"}


def test_a_folder_that_cannot_be_made_is_one_line(capsys, tmp_path):
    """Give a file as the folder for results: every command that writes there ends with one line and status 74."""
    (tmp_path / "file").write_text("")
    for arguments in (FALL, ("inverse", "planar_2r", "--cycloid", "--q1", "1,2"), ("reproduce", "all"), ("demo",)):
        with pytest.raises(SystemExit) as stop:
            cli.main([*arguments, "--out", str(tmp_path / "file")])
        reason = "cannot be used as the folder for results (File exists); give another with --output"
        assert (stop.value.code, capsys.readouterr()) == (74, ("", f"kinetree: {tmp_path / 'file'}: {reason}\n"))


def test_an_unknown_format_of_pictures_is_refused(capsys, tmp_path):
    """Give a figure a name that no picture has: one line with the known endings, and status 2."""
    run = kt.simulate(kt.load("planar_2r"), duration=0.1).save(tmp_path / "saved.csv")
    with pytest.raises(SystemExit) as stop:
        cli.main(["plot", str(run), "-o", str(tmp_path / "figure.doc")])
    start = f"kinetree: {tmp_path / 'figure.doc'}: is not the name of a picture; use one that ends with ."
    assert (stop.value.code, capsys.readouterr().err[: len(start)]) == (2, start)


def test_an_interruption_is_one_line(monkeypatch, capsys):
    """Interrupt a command before it has results: one line and status 130."""

    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("kinetree.loading.load", pressed)
    with pytest.raises(SystemExit) as stop:
        cli.main(["cost", "stanford"])
    assert stop.value.code == 130
    assert capsys.readouterr() == ("", "kinetree: interrupted\n")


def test_a_run_that_is_interrupted_is_kept(monkeypatch, capsys, tmp_path):
    """Interrupt a run: its samples are written and printed, and the status is 130."""
    real = kt.simulate

    def cut(*arguments, **options):
        run = replace(
            real(*arguments, **options), endings=Endings(whole=Ending(Outcome.INTERRUPTED, "interrupted at t = 0.05 s"))
        )
        raise keep_in_interrupt("simulate was interrupted; the states are `run`", run=run)

    monkeypatch.setattr("kinetree.simulation.simulate.simulate", cut)
    with pytest.raises(SystemExit) as stop:
        cli.main([*FALL, "--out", str(tmp_path)])
    assert stop.value.code == 130
    assert "status: stopped: interrupted" in capsys.readouterr().out
    assert (tmp_path / "p.npz").exists()


def test_an_interruption_that_a_package_reports_is_one_line(monkeypatch, capsys):
    """Interrupt the import of a package that raises an error of its own: one line and status 130."""

    def pressed(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("the extension modules cannot be imported") from None

    monkeypatch.setattr("kinetree.loading.load", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's processes in the background ignore it
    try:
        with pytest.raises(SystemExit) as stop:
            cli.main(["cost", "stanford"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (stop.value.code, capsys.readouterr().err) == (130, "kinetree: interrupted\n")


def test_errors_of_packages_stay_errors(monkeypatch):
    """Fail in a package without an interruption: its error is raised."""

    def broken(*_, **__):
        raise ImportError("the extension modules cannot be imported")

    monkeypatch.setattr("kinetree.loading.load", broken)
    with pytest.raises(ImportError, match="the extension modules cannot be imported"):
        cli.main(["cost", "stanford"])


def test_what_cannot_be_written_is_still_printed(monkeypatch, capsys, tmp_path):
    """Fail to write a run: its summary is still printed, and one line gives the reason."""

    def full(self, path, **options):
        raise WriteError(f"{path}: cannot be written (No space left on device); make room")

    monkeypatch.setattr("kinetree.results.trajectory.Trajectory.save", full)
    with pytest.raises(SystemExit) as stop:
        cli.main([*FALL, "--out", str(tmp_path)])
    out, complaint = capsys.readouterr()
    assert stop.value.code == 74
    assert "status: finished" in out
    assert complaint == f"kinetree: {tmp_path / 'p.npz'}: cannot be written (No space left on device); make room\n"
