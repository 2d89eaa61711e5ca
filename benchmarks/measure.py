"""Repeatable measurements: one core, one thread, a warm-up, contenders in turn, medians with quartiles."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
SLICE = 0.008
"""Duration of one contender in one round [s], long compared with the clock's resolution."""
CORES: set[int] = set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()
"""The cores that this process may use, as of its start."""


class Disagreement(Exception):
    """Contenders gave different results, so that their times are not comparable."""


class NotMeasured(Exception):
    """A requirement of a case is missing on this machine; its section of the page is kept."""


@dataclass(frozen=True)
class Figure:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Figure:
        """Return the median and the quartiles of the rounds."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def times(self, factor: float) -> Figure:
        """Return the figure in another unit."""
        return Figure(self.median * factor, self.low * factor, self.high * factor)

    def text(self, digits: int = 3) -> str:
        """Return `median (low-high)`."""
        return f"{_short(self.median, digits)} ({_short(self.low, digits)}-{_short(self.high, digits)})"


@dataclass(frozen=True)
class Contender:
    """Something to time: a call that does `count` evaluations."""

    call: Callable[[], object]
    count: int


def one_thread() -> None:
    """Limit libraries to one thread by default; must be called before they are imported."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    os.environ["OMP_WAIT_POLICY"] = "passive"  # a peer's idle threads must not spin during the next contender's turn


def pin_to_one_core() -> str:
    """Pin the process to the last core that it may use, if the system supports that; return a description."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned"
    core = max(CORES)
    os.sched_setaffinity(0, {core})
    return f"pinned to core {core}"


@contextmanager
def all_cores() -> Iterator[int]:
    """Allow threads that start inside the block to use every core; yield the number of cores."""
    if not CORES:
        yield os.cpu_count() or 1
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        yield len(CORES)
    finally:
        os.sched_setaffinity(0, before)


def agree(what: str, found: Any, expected: Any, tolerance: Any) -> float:
    """Return the largest difference relative to each sample's largest entry; raise Disagreement if too large.

    Results are [..., n]. The tolerance is a number, or one number per sample [...].
    """
    import numpy as np

    found, expected = np.asarray(found), np.asarray(expected)
    difference = np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
    bad = np.argwhere(~(difference <= tolerance))
    if len(bad):
        at = tuple(bad[0])
        most = np.broadcast_to(tolerance, difference.shape)[at]
        raise Disagreement(f"{what}: answers of a sample differ by {difference[at]:.1e} relative, more than {most:.1e}")
    return float(difference.max())


def ratio(slow: list[float], fast: list[float], less: list[float] | None = None) -> Figure:
    """Return the ratio round by round; `less`, the cost of an empty call, is subtracted from the slow one."""
    bare = slow if less is None else [s - c for s, c in zip(slow, less, strict=True)]
    return Figure.of([s / f for s, f in zip(bare, fast, strict=True)])


def interleaved(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Return nanoseconds per evaluation of each contender in each round; all run in turn within a round."""
    repeats = {}
    for name, contender in contenders.items():
        _time(contender, 1)  # warm-up
        repeats[name] = max(1, round(SLICE / _time(contender, 1)))
    out: dict[str, list[float]] = {name: [] for name in contenders}
    was_on = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, contender in contenders.items():
                taken = _time(contender, repeats[name])
                out[name].append(taken / (repeats[name] * contender.count) * 1e9)
    finally:
        if was_on:
            gc.enable()
    return out


def _time(contender: Contender, repeats: int) -> float:
    call = contender.call
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - start


def _short(x: float, digits: int) -> str:
    return f"{x:,.0f}" if abs(x) >= 10**digits else f"{x:.{digits}g}"
