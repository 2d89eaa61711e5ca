"""Pauses of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector.

    Compiling makes many small objects but hardly any cycles. The collector would search all objects of the process
    again and again, which are many where torch or JAX is imported.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
