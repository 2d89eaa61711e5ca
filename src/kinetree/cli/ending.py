"""The end of a command: its exit status, and one line on stderr in place of a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from ..errors import KinetreeError, WriteError, unwritable
from ..interruption import INTERRUPTED, usual
from ..simulation.engines.interrupts import noted_interrupts
from .console import clean

WRONG = 2
"""Exit status if an option, a file or a model is wrong, so that nothing ran."""
UNWRITABLE = 74
"""Exit status if a file or the output could not be written, such as on a full disk: EX_IOERR of sysexits.h."""
CLOSED = 141
"""Exit status if the reader of the output closed the pipe: 128 + SIGPIPE, as shells report for other programs."""


def status_of(command: Callable[[], object]) -> int:
    """Run a command, flush its output, print its first error as one line on stderr, and return the exit status."""
    _occupy_output()
    status, text = _attempt(lambda: _interruptible(command))
    flushed, reason = _attempt(_flush)
    if flushed and not text:
        status, text = flushed, reason
    if text:
        with suppress(OSError, AttributeError):  # stderr may be closed as well
            print(f"kinetree: {clean(text)}", file=sys.stderr, flush=True)
    return status


def _interruptible(command: Callable[[], object]) -> None:
    """Run a command that Ctrl-C ends, also while it imports packages, which report it as an error of their own."""
    usual()
    with noted_interrupts() as interrupted:
        try:
            command()
        except (KinetreeError, OSError):
            raise
        except Exception as error:
            if interrupted():
                raise KeyboardInterrupt from error
            raise


def _attempt(step: Callable[[], object]) -> tuple[int, str]:
    """Run a step and return its exit status, with the text of its error."""
    try:
        try:
            step()
        except SystemExit as stop:
            hidden = _cause(stop)
            if hidden is None:
                return (stop.code if isinstance(stop.code, int) else int(stop.code is not None)), ""
            raise hidden from None
    except BrokenPipeError:
        _discard_output()
        return CLOSED, "the reader of the output closed the pipe; the rest is not printed"
    except WriteError as error:
        return UNWRITABLE, str(error)
    except OSError as error:
        _discard_output()
        named = f"{error.filename}: {error.strerror}" if error.filename else ""
        return UNWRITABLE, named or str(unwritable("the output", error))
    except KinetreeError as error:
        return WRONG, str(error)
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    return 0, ""


def _cause(stop: BaseException) -> BaseException | None:
    """Return the interruption or closed pipe behind an exit that a library raised in its place, or None."""
    found = stop.__cause__ or stop.__context__
    while found is not None and not isinstance(found, KeyboardInterrupt | BrokenPipeError):
        found = found.__cause__ or found.__context__
    return found


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _discard_output() -> None:
    """Discard buffered output, so that Python does not try to write it again at exit."""
    with suppress(OSError, ValueError, AttributeError):  # a stream without a descriptor has nothing to redirect
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


def _occupy_output() -> None:
    """Give a closed stdout a descriptor that refuses what is written, since Python would drop it silently."""
    if sys.stdout is None:
        sys.stdout = sys.__stdout__ = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
