"""The progress of a study in a terminal or a notebook: runs, rate and remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._support.progress import on_terminal

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
