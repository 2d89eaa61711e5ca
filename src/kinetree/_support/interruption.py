"""Ctrl-C: a KeyboardInterrupt with what was computed, and in the command line one line and the exit status 130.

Functions that take long raise `interrupted(...)`, so that Ctrl-C reaches their caller and ends loops around them.

The command line loads most of its modules before its first line runs, which may take seconds. The package therefore
imports this module before all others. A program that imports Kinetree keeps its own behavior.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 + SIGINT, as shells report it."""


def keep_in_interrupt(text: str, **computed: object) -> KeyboardInterrupt:
    """Return the KeyboardInterrupt of a function, with what it computed as an attribute: `run`, `study` or `optimum`.

    It is no subclass: only after KeyboardInterrupt itself does Python end a program as the signal does, so that loops
    of a shell end as well.
    """
    error = KeyboardInterrupt(f"{text} of this KeyboardInterrupt")
    vars(error).update(computed)
    return error


def begin() -> None:
    """Let Ctrl-C end the process at once if it is the command line, until `usual` is called."""
    if is_command_line(sys.argv, sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def usual() -> None:
    """Give Ctrl-C its usual effect again, a KeyboardInterrupt: results may exist from now on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_command_line(program: list[str], given: list[str]) -> bool:
    """Return whether these arguments, of the program and of Python, belong to the command line."""
    if program[:1] == ["-m"]:  # while Python looks for the module
        return ("-m", "kinetree") in pairwise(given) or "-mkinetree" in given
    return os.path.splitext(os.path.basename("".join(program[:1])))[0] in ("kinetree", "kinetree-script")


def _end(*_: object) -> None:
    # An exception would not do: extension modules report one during their import as errors of their own.
    os.write(2, b"kinetree: interrupted\n")
    os._exit(INTERRUPTED)


begin()

# --- Detection of Ctrl-C in native code of other packages, which report it as an error of their own ---


@contextmanager
def noted_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed; Ctrl-C keeps its usual effect.

    Only the main thread receives signals; in other threads the function returns False.
    """
    seen: list[bool] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: False
        return

    def note(*arguments: Any) -> Any:
        seen.append(True)
        return before(*arguments)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)


# --- Cancelling of compilations by the caller, where Ctrl-C does not reach: in threads of a server ---

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
