"""The progress of a study on the terminal: runs, rate and remaining time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(progress: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function of the number of finished runs; by default it is shown if standard error is a terminal."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("study"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]} runs/s"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("study", total=total, rate="?")

        def show(done: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, rate=f"{speed:,.0f}" if speed else "?")

        yield show
