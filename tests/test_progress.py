"""The progress bar of long computations, and processes without a standard error."""

from __future__ import annotations

import sys

import kinetree as kt
from kinetree.progress import on_terminal, shown


def test_a_process_without_standard_error(monkeypatch):
    """Compute without a bar where standard error was closed, as in services and windows without a console."""
    monkeypatch.setattr(sys, "stderr", None)
    assert not on_terminal()
    assert kt.simulate(kt.load("pendulum"), [0.3], duration=0.1, dt=0.05, method="rk4").status == "finished"
    with shown(None) as show:
        assert show is None


def test_functions_are_called_with_the_part(monkeypatch):
    """Hand a function of the caller on, whatever standard error is."""
    monkeypatch.setattr(sys, "stderr", None)
    parts: list[float] = []
    with shown(parts.append) as show:
        assert show is not None
        show(0.25)
    assert parts == [0.25]
