"""The progress of studies."""

from __future__ import annotations

import io
import sys
import types

import pytest

from kinetree._support import progress


class Page:
    """A stand-in for IPython: it keeps what a notebook shows."""

    def __init__(self, kernel: bool):
        self.lines: list[dict] = []
        self.shell = types.SimpleNamespace(kernel=object()) if kernel else types.SimpleNamespace()

    def modules(self) -> dict[str, types.ModuleType]:
        top, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        top.get_ipython = lambda: self.shell
        shown.display = self.display
        return {"IPython": top, "IPython.display": shown}

    def display(self, data, *, raw, display_id):
        assert raw and display_id
        self.update(data, raw=True)
        return self

    def update(self, data, *, raw):
        self.lines.append(data)


@pytest.mark.parametrize("kernel", [True, False])
def test_notebooks_show_one_line(kernel, monkeypatch):
    """Show and change one line in a notebook, as HTML and as text; a shell without a page has none."""
    page = Page(kernel)
    for name, module in page.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    with progress.show_runs(None, 700) as show:
        for done in (100, 300, 700):
            show(done)
    if not kernel:
        assert not page.lines
        return
    assert [line["text/html"].split(">")[0] for line in page.lines] == [
        f'<progress value="{done}" max="700"' for done in (100, 300, 700)
    ]
    assert page.lines[0]["text/plain"] == "study: 100 of 700 runs"
    assert page.lines[-1]["text/plain"].startswith("study: 700 of 700 runs, ")
    assert page.lines[-1]["text/plain"].endswith(" runs/s, 0:00:00 left")


def test_a_page_changes_seldom(monkeypatch):
    """Change a page for the first and the last of many quick shards only."""
    page = Page(kernel=True)
    for name, module in page.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(progress, "PERIOD", 1e9)
    with progress.show_runs(True, 50) as show:
        for done in range(1, 51):
            show(done)
    assert [line["text/plain"][:16] for line in page.lines] == ["study: 1 of 50 r", "study: 50 of 50 "]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0, 1000, 0, 3.0), "study: 0 of 1,000 runs"),
        ((250_000, 1_000_000, 200_000, 10.0), "study: 250,000 of 1,000,000 runs, 20,000 runs/s, 0:00:38 left"),
        ((10, 100_010, 10, 1.0), "study: 10 of 100,010 runs, 10 runs/s, 2:46:40 left"),
    ],
)
def test_rate_and_remaining_time(numbers, text):
    """Count the rate since the start, without the runs that the store had."""
    assert progress.line_of(*numbers) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminals_show_a_bar(monkeypatch):
    """Show runs and rate on a terminal."""
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setenv("TERM", "xterm")
    with progress.show_runs(None, 30) as show:
        show(30)
    assert "30/30" in err.getvalue()
    assert "runs/s" in err.getvalue()


def test_logs_get_lines(monkeypatch):
    """Write the first and the last line to a file if asked for, and nothing by default."""
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setitem(sys.modules, "IPython", None)
    for asked in (None, True):
        with progress.show_runs(asked, 30) as show:
            for done in (0, 10, 30):
                show(done)
    assert [line[:20] for line in err.getvalue().splitlines()] == ["study: 0 of 30 runs", "study: 30 of 30 runs"]
