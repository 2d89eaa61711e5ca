"""Progress on standard error of computations that may take long, and of compilations."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""The time after which a compilation is shown [s]: from its start, or from that of the first in a row."""


@contextmanager
def show_progress(
    progress: bool | Callable[[float], None] | None, doing: str = "simulating"
) -> Iterator[Callable[[float], None] | None]:
    """Show a progress bar with the remaining time, by default if standard error is a terminal; or call a function.

    Compilations are shown in the bar, and not without one.
    """
    if callable(progress):
        yield progress
        return
    if not (on_terminal() if progress is None else progress):
        with _SCREEN.of(None):
            yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=1.0)

        def told(what: str | None) -> None:
            bar.update(task, description=doing if what is None else f"compiling {what}", total=None if what else 1.0)

        with _SCREEN.of(told):
            yield lambda part: bar.update(task, completed=part)


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """Show what is compiled once that takes longer than PATIENCE: in the bar that is shown, or else on a terminal.

    Of compilations inside others, and of several at the same time, only the first is shown. Several in a row, each of
    which is short, count together.
    """
    with _SCREEN.lock:
        first, _SCREEN.busy = not _SCREEN.busy, True
    if not first:
        yield
        return
    timer = threading.Timer(_SCREEN.patience(), _SCREEN.begin, [what])
    timer.daemon = True
    try:
        try:
            timer.start()
        except RuntimeError:  # no further threads, as at the end of the interpreter: nothing is shown
            pass
        yield
    finally:
        timer.cancel()
        _SCREEN.end()


class _TerminalLine:
    """A line with the elapsed time, on a terminal."""

    bar: Any = None

    def __call__(self, what: str | None) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        if what is None or not on_terminal():
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.bar.add_task(f"compiling {what}", total=None)
        self.bar.start()


class _Screen:
    """What is shown of compilations: by a function of the bar that is open, or in a line of its own on a terminal."""

    def __init__(self) -> None:
        self.lock, self.busy = threading.RLock(), False
        self._began = self._ended = -math.inf
        self._tell: Callable[[str | None], None] | None = _TerminalLine()
        self._told: Callable[[str | None], None] | None = None

    @contextmanager
    def of(self, tell: Callable[[str | None], None] | None) -> Iterator[None]:
        """Show compilations by a function of what is compiled, None for their end; or not at all."""
        before, self._tell = self._tell, tell
        try:
            yield
        finally:
            self._tell = before

    def patience(self) -> float:
        """Return the time after which a compilation that begins now is shown [s]; a tenth of PATIENCE at least."""
        now = time.monotonic()
        if now - self._ended > 0.25 * PATIENCE:
            self._began = now
        return max(PATIENCE - (now - self._began), 0.1 * PATIENCE)

    def begin(self, what: str) -> None:
        """Show a compilation that has not ended."""
        with self.lock:
            if self.busy and self._tell is not None:
                self._told = self._tell
                self._told(what)

    def end(self) -> None:
        """Show that the compilation has ended."""
        with self.lock:
            self.busy, told, self._told = False, self._told, None
            self._ended = time.monotonic()
            if told is not None:
                told(None)


_SCREEN = _Screen()


def on_terminal() -> bool:
    """Return whether standard error is a terminal; a process without a console, such as a service, may have none."""
    return sys.stderr is not None and sys.stderr.isatty()
