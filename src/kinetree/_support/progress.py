"""Progress of computations that may take long, of compilations and of the runs of studies."""

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


# --- The progress of a study in a terminal or a notebook: runs, rate and remaining time ---

PERIOD = 0.2
"""The least time between two changes of a notebook's page [s]: more would make a large notebook slow."""

LINES = 10.0
"""The least time between two lines of a log [s]."""


@contextmanager
def show_runs(progress: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function of the number of finished runs.

    By default it is shown in a notebook, and if standard error is a terminal. If asked for, files get a line now and
    then.
    """
    notebook = in_notebook()
    if not ((notebook or on_terminal()) if progress is None else progress):
        yield lambda done: None
        return
    way = _on_page if notebook else _in_terminal if on_terminal() else _in_log
    with way(total) as show:
        yield show


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)  # a kernel has imported it
    return get is not None and hasattr(get(), "kernel")


@contextmanager
def _in_terminal(total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("study"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} runs/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("study", total=total, rate="?")

        def show(done: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, rate=f"{speed:,.0f}" if speed else "?")

        yield show


@contextmanager
def _on_page(total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that changes one line of the page, in HTML and in plain text; widgets are not needed."""
    from IPython.display import display  # type: ignore[import-not-found]

    line = None

    def change(done: int, text: str) -> None:
        nonlocal line
        both = {"text/plain": text, "text/html": f'<progress value="{done}" max="{total}"></progress> {text}'}
        if line is None:
            line = display(both, raw=True, display_id=True)
        else:
            line.update(both, raw=True)

    yield _seldom(change, PERIOD, total)


@contextmanager
def _in_log(total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that writes lines to standard error."""
    yield _seldom(lambda done, text: print(text, file=sys.stderr, flush=True), LINES, total)


def _seldom(change: Callable[[int, str], None], period: float, total: int) -> Callable[[int], None]:
    """Return a function of the finished runs that calls another with a text: at first, periodically, and at the end."""
    began = time.monotonic()
    first: int | None = None
    last = began - period

    def show(done: int) -> None:
        nonlocal first, last
        now = time.monotonic()
        if first is None:
            first = done
        if now - last >= period or done == total:
            last = now
            change(done, line_of(done, total, done - first, now - began))

    return show


def line_of(done: int, total: int, since: int, seconds: float) -> str:
    """Return finished runs, the rate of those since the start, and the remaining time."""
    text = f"study: {done:,} of {total:,} runs"
    if not since or seconds <= 0.0:
        return text
    rate = since / seconds
    minutes, left = divmod(round((total - done) / rate), 60)
    return f"{text}, {rate:,.0f} runs/s, {minutes // 60}:{minutes % 60:02}:{left:02} left"
