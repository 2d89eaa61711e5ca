"""Measurements that can be trusted: one core, one thread, a warm-up, contenders in turn, medians with their spread."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import quantiles

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
SLICE = 0.008
"""Seconds that one contender runs in one round."""


@dataclass(frozen=True)
class Figure:
    """A median with the quartiles beside it."""

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

    def text(self, digits: int = 3) -> str:
        """Return `median (low-high)`."""
        return f"{_short(self.median, digits)} ({_short(self.low, digits)}-{_short(self.high, digits)})"


@dataclass(frozen=True)
class Contender:
    """Something to time: a call that does `count` evaluations."""

    call: Callable[[], object]
    count: int


def one_thread() -> None:
    """Keep libraries to one thread; must come before they are imported."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))


def pin_to_one_core() -> str:
    """Stay on the last core that this process may use, where the system can do that; return what was done."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"pinned to core {core}"


def interleaved(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Return the nanoseconds an evaluation of each contender in each round; all run in turn within a round."""
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
