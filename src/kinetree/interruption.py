"""Ctrl-C in the command line, from its first moment on: one line and the exit status 130 in place of a traceback.

The command line loads most of its modules before its first line runs, which may take seconds. The package therefore
imports this module before all others. A program that imports Kinetree keeps its own behavior.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from typing import Any

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 + SIGINT, as shells report it."""


def begin() -> None:
    """Let Ctrl-C end the process at once if it is the command line, until `usual` is called."""
    if is_command_line(sys.argv, sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def usual() -> None:
    """Give Ctrl-C its usual effect again, a KeyboardInterrupt: results may exist from now on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_command_line(program: list[str], given: list[str]) -> bool:
    """Return whether these arguments, of the program and of Python, are those of the command line."""
    if program[:1] == ["-m"]:  # while Python looks for the module
        return ("-m", "kinetree") in pairwise(given) or "-mkinetree" in given
    return os.path.splitext(os.path.basename("".join(program[:1])))[0] in ("kinetree", "kinetree-script")


def _end(*_: Any) -> None:
    # An exception would not do: extension modules report one during their import as errors of their own.
    os.write(2, b"kinetree: interrupted\n")
    os._exit(INTERRUPTED)


begin()
