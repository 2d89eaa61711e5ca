"""Batches on several threads: by the crew, or in parts by Python where native code cannot share them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..compiler.ir.program import Array
from ..errors import InputError
from . import crew
from .arguments import places_of, returned
from .crew import share_on_threads

if TYPE_CHECKING:
    from .function import Function

T = TypeVar("T")


def in_parts(count: int, parts: int, run: Callable[[slice], T], *, grain: int = 1) -> list[T]:
    """Run a function on equal parts of a number of samples, the first in this thread; return the results in order.

    Parts begin at multiples of `grain`. The other threads end with the call: they take 0.1 ms to start, and parts take
    a millisecond or more.
    """
    cuts = [count * k // parts // grain * grain for k in range(parts)] + [count]
    slices = [slice(cuts[k], cuts[k + 1]) for k in range(parts)]
    if parts == 1:
        return [run(slices[0])]
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and rarely needed

    with ThreadPoolExecutor(parts - 1, thread_name_prefix="kinetree part") as threads:
        others = [threads.submit(run, one) for one in slices[1:]]
        first = run(slices[0])
    return [first, *(other.result() for other in others)]


# --- Division of a batch among threads of Python, as many as shorten its time, which is measured in the calls.
#
# This is for functions in Python around native code, and for systems on which threads cannot wait in native code.

LEAST = 1e-3
"""The least time that each thread computes [s]: on an idle machine, another thread begins up to 0.8 ms later."""

BRIEF = 5e-5
"""The longest call from which the time of a sample is not estimated [s]: most of it may be the call itself."""

FEWEST, GROWTH = 8, 8
"""The samples that are not worth a measurement, which fill a vector, and the factor by which a trial is longer."""

WHOLE = 16
"""Parts begin at multiples of this number of samples: whole vectors, whose results are whole lines."""


class Pace:
    """The shortest time per sample that a function took so far [s], None before the first measurement.

    `few` is the largest number of samples whose call was brief.
    """

    def __init__(self) -> None:
        """Begin without a measurement."""
        self.seconds: float | None = None
        self.few = FEWEST

    def timed(self, samples: int, run: Callable[[], Any]) -> Any:
        """Return the result of a call on some samples, and note the time that it takes unless it is brief."""
        start = time.perf_counter()
        result = run()
        taken = time.perf_counter() - start
        if taken <= BRIEF:
            self.few = max(self.few, samples)
        elif samples:
            self.seconds = min(taken / samples, self.seconds or taken)
        return result

    def parts(self, samples: int, threads: int) -> int:
        """Return the number of threads that are worth their start, at most `threads`."""
        work = samples * (self.seconds or 0.0)
        return max(1, min(threads, int(work / LEAST)))


def divide_batch(function: Function, arguments: tuple, out: Any, threads: int) -> Any:
    """Run a batch of a compiled function on threads; no bit of the results depends on them."""
    pace = function.pace
    count = _count(function.inputs, arguments)
    if count is not None and count <= pace.few:
        return function.alone(arguments, out)
    if count is not None and pace.seconds is not None and pace.parts(count, threads) == 1:
        return pace.timed(count, lambda: function.alone(arguments, out))
    arrays = [np.asarray(a) for a in arguments]
    leads = [a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, function.inputs, strict=True)]
    lead = np.broadcast_shapes(*leads)
    samples, rows = prod(lead), lead[0] if lead else 1
    places = places_of(out, len(function.outputs))
    if samples <= pace.few or rows == 1 or _overlap(arrays, places) or not _fit(places, function.outputs, lead):
        return function.alone(arguments, out)
    results = [
        np.empty(lead + a.shape, function.request.dtype) if place is None else place
        for a, place in zip(function.outputs, places, strict=True)
    ]
    cores = [a.shape[len(mine) :] for a, mine in zip(arrays, leads, strict=True)]
    arrays = [np.broadcast_to(a, lead + core) for a, core in zip(arrays, cores, strict=True)]
    inner = samples // rows
    grain = WHOLE if inner == 1 else 1

    def run(begin: int, end: int) -> None:
        given, places = [a[begin:end] for a in arrays], tuple(x[begin:end] for x in results)
        pace.timed((end - begin) * inner, lambda: function.gufunc(*given, out=places))

    done = _tried(pace, rows, inner, run)
    if done < rows:
        parts = min(pace.parts((rows - done) * inner, threads), max(1, (rows - done) // grain))
        in_parts(rows - done, parts, lambda part: run(done + part.start, done + part.stop), grain=grain)
    return returned(results)


def _tried(pace: Pace, rows: int, inner: int, run: Callable[[int, int], None]) -> int:
    """Run the first samples of a batch until their time is known, at most all; return the number of finished rows."""
    done = 0
    while pace.seconds is None and done < rows:
        end = min(rows, done + max(WHOLE if inner == 1 else 1, -(-pace.few * GROWTH // inner)))
        run(done, end)
        done = end
    return done


def _count(inputs: Sequence[Array], arguments: tuple) -> int | None:
    """Return the number of samples of plain arrays with the same leading shape; None for others."""
    lead = None
    for a, x in zip(inputs, arguments, strict=False):
        if not isinstance(x, np.ndarray):
            return None
        own = x.shape[: x.ndim - len(a.shape)]
        if own != (own if lead is None else lead):
            return None
        lead = own
    return prod(lead or ())


def _overlap(arrays: Sequence[np.ndarray], places: Sequence[Any]) -> bool:
    """Return whether results may be written to the memory of arguments, which only one call for all samples permits."""
    return any(x is not None and np.may_share_memory(a, x) for a in arrays for x in places)


def _fit(places: Sequence[Any], outputs: Sequence[Array], lead: tuple[int, ...]) -> bool:
    """Return whether every array for results has exactly one row per row of the batch; NumPy decides on all others."""
    return len(places) == len(outputs) and all(
        x is None or np.shape(x) == lead + a.shape for x, a in zip(places, outputs, strict=True)
    )


# --- Calls of a compiled function on a number of threads ---


def on_threads(function: Function, arguments: tuple, out: Any, threads: int) -> Any:
    """Run a batch on threads, 0 for all cores, if that shortens its time; no bit of the results depends on them."""
    if type(threads) is not int or threads < 0:
        threads = _number(threads)
    threads = threads or _cores()
    call = function.shares.get(threads)
    if call is None or threads > crew.THREADS.size:
        if not _is_native(function):
            return divide_batch(function, arguments, out, threads)
        crew.THREADS.start(threads)
        call = function.shares[threads] = call or share_on_threads(function, threads)
    return call(*arguments) if out is None else call(*arguments, out=out)


def _is_native(function: Function) -> bool:
    """Return whether native code runs all samples of a batch, and can share them with threads."""
    return crew.SUPPORTED and isinstance(function.gufunc, np.ufunc)


def _number(threads: Any) -> int:
    """Return a number of threads as an integer of Python; InputError for anything else."""
    if not isinstance(threads, int | np.integer) or threads < 0:
        raise InputError(f"threads is {threads!r}; expected 1 or more, or 0 for all cores")
    return int(threads)


@cache
def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
