"""The progress bar of long computations, and processes without a standard error."""

from __future__ import annotations

import io
import sys
import time

import kinetree as kt
from kinetree._support import progress
from kinetree._support.progress import compiling, on_terminal, show_progress


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def terminal_of(monkeypatch) -> Terminal:
    """Let standard error be a terminal, on which compilations are shown after a moment."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setenv("TERM", "xterm")
    return found


def written(terminal: Terminal, text: str) -> bool:
    """Wait until a text is on the terminal, for at most ten seconds."""
    end = time.monotonic() + 10.0
    while text not in terminal.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    return text in terminal.getvalue()


def test_a_long_compilation_is_shown(monkeypatch):
    """Compile for longer than a moment: the outermost compilation is on the terminal, a short one is not."""
    terminal = terminal_of(monkeypatch)
    with compiling("a short one"):
        pass
    with compiling("runs of 'anymal'"), compiling("moreau"):
        assert written(terminal, "compiling runs of 'anymal'")
    time.sleep(0.1)
    assert "moreau" not in terminal.getvalue() and "a short one" not in terminal.getvalue()


def test_short_compilations_in_a_row_are_shown(monkeypatch):
    """Compile one part after the other, each too short to be shown, until one is on the terminal."""
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 1.0)
    for k in range(20):
        with compiling(f"part {k}"):
            time.sleep(0.3)
        if "compiling part" in terminal.getvalue():
            break
    else:
        raise AssertionError("nothing was shown within 6 s")


def test_a_compilation_is_shown_in_the_bar_of_a_run(monkeypatch):
    """Compile while a bar is shown: it has the name of what is compiled, then that of the run again."""
    terminal = terminal_of(monkeypatch)
    with show_progress(None) as show:
        assert show is not None
        with compiling("runs of 'anymal'"):
            assert written(terminal, "compiling runs of 'anymal'")
        before = len(terminal.getvalue())
        show(0.5)
        time.sleep(0.3)
        assert "simulating" in terminal.getvalue()[before:]


def test_runs_without_progress_show_no_compilation(monkeypatch):
    """Compile in a run with progress=False, and find nothing on the terminal."""
    terminal = terminal_of(monkeypatch)
    with show_progress(False), compiling("runs of 'anymal'"):
        time.sleep(0.2)
    assert not terminal.getvalue()


def test_a_process_without_standard_error(monkeypatch):
    """Compute without a bar where standard error was closed, as in services and windows without a console."""
    monkeypatch.setattr(sys, "stderr", None)
    assert not on_terminal()
    assert kt.simulate(kt.load("pendulum"), [0.3], duration=0.1, dt=0.05, method="rk4").status == "finished"
    with show_progress(None) as show:
        assert show is None


def test_functions_are_called_with_the_part(monkeypatch):
    """Hand a function of the caller on, whatever standard error is."""
    monkeypatch.setattr(sys, "stderr", None)
    parts: list[float] = []
    with show_progress(parts.append) as show:
        assert show is not None
        show(0.25)
    assert parts == [0.25]
