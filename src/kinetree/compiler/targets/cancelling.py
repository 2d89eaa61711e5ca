"""Cancelling of compilations by the caller, where Ctrl-C does not reach: in threads of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("kinetree_cancelling", default=None)


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Let a function cancel the compilations of this thread: it is called repeatedly, and raises an error to do so."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def check_cancelled() -> None:
    """Raise the error of the caller if it cancelled."""
    check = _check.get()
    if check is not None:
        check()
