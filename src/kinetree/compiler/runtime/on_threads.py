"""Calls of a compiled function on a number of threads."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np

from ...errors import InputError
from . import crew
from .divided import divided
from .samples_last import SampleVectors
from .shared import shared


def on_threads(function: Any, arguments: tuple, out: Any, threads: int) -> Any:
    """Run a batch on threads, 0 for all cores, if that shortens its time; no bit of the results depends on them."""
    if type(threads) is not int or threads < 0:
        threads = _number(threads)
    threads = threads or _cores()
    call = function.shares.get(threads)
    if call is None or threads > crew.THREADS.size:
        if not _is_native(function):
            return divided(function, arguments, out, threads)
        crew.THREADS.start(threads)
        call = function.shares[threads] = call or shared(function, threads)
    return call(*arguments) if out is None else call(*arguments, out=out)


def _is_native(function: Any) -> bool:
    """Return whether native code runs all samples of a batch, and can share them with threads."""
    gufunc = function.gufunc.gufunc if isinstance(function.gufunc, SampleVectors) else function.gufunc
    return crew.SUPPORTED and isinstance(gufunc, np.ufunc)


def _number(threads: Any) -> int:
    """Return a number of threads as an integer of Python; InputError for anything else."""
    if not isinstance(threads, int | np.integer) or threads < 0:
        raise InputError(f"threads is {threads!r}; expected 1 or more, or 0 for all cores")
    return int(threads)


@cache
def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
