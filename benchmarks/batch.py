"""A million samples of a seven-joint arm in one call, and the same bits whatever way they are run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import kinetree as kt
from measure import Contender, Figure, interleaved

SAMPLES = 1_000_000
ARM = "kuka_lwr4"


@dataclass(frozen=True)
class Batch:
    """One function: nanoseconds a sample in one call, by number of threads, and what gave the same bits."""

    function: str
    times: dict[int, Figure]
    splits: int
    same_splits: bool
    same_threads: dict[int, bool]


def run_batch(function: str, rounds: int, splits: int) -> Batch:
    """Time the batch on one thread and on all cores; compare bits for random splits and thread counts."""
    system, rng = kt.load(ARM), np.random.default_rng(2)
    state = [rng.uniform(-3.0, 3.0, size=(SAMPLES, system.nv)) for _ in range(3)]
    compiled, method = system.function(function), getattr(system, function)
    whole, other = np.empty((SAMPLES, system.nv)), np.empty((SAMPLES, system.nv))
    compiled(*state, out=whole)
    same_splits = True
    for _ in range(splits):
        cuts = [0, *sorted(rng.integers(0, SAMPLES, size=rng.integers(1, 40))), SAMPLES]
        other.fill(np.nan)
        for first, last in pairwise(cuts):
            compiled(*(x[first:last] for x in state), out=other[first:last])
        same_splits &= _same(whole, other)
    same_threads = {}
    for threads in (2, 3, 8):
        other.fill(np.nan)
        method(*state, threads=threads, out=other)
        same_threads[threads] = _same(whole, other)
    counts = sorted({1, os.cpu_count() or 1})
    contenders = {str(n): Contender(lambda n=n: method(*state, threads=n, out=other), SAMPLES) for n in counts}
    times = interleaved(contenders, rounds)
    return Batch(function, {n: Figure.of(times[str(n)]) for n in counts}, splits, same_splits, same_threads)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether all bits are equal."""
    return bool(np.array_equal(a.view(np.uint64), b.view(np.uint64)))
