"""A progress bar on standard error for computations that may take long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(
    progress: bool | Callable[[float], None] | None, doing: str = "simulating"
) -> Iterator[Callable[[float], None] | None]:
    """Show a progress bar with the remaining time, by default if standard error is a terminal; or call a function."""
    if callable(progress):
        yield progress
        return
    if not (on_terminal() if progress is None else progress):
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=1.0)
        yield lambda part: bar.update(task, completed=part)


def on_terminal() -> bool:
    """Return whether standard error is a terminal; a process without a console, such as a service, may have none."""
    return sys.stderr is not None and sys.stderr.isatty()
