"""Measured times of a mechanism's functions on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from ...compiled import CompiledMechanism
from ...dynamics import ALGORITHMS
from ...errors import unknown_name

DEFAULT = ("inverse_dynamics", "forward_dynamics", "inertia_matrix", "poses")
ROUNDS = 7
"""Measurements per figure, an odd number with a median that ignores a few disturbed ones."""


@dataclass(frozen=True)
class Timing:
    """Seconds until a function is ready, and nanoseconds per single call and per sample of a batch (medians)."""

    function: str
    ready: float
    single: float
    sample: float


def timings(system: CompiledMechanism, functions: tuple[str, ...] = DEFAULT, batch: int = 4096) -> list[Timing]:
    """Time functions on random states in one thread; `ready` is the time to compile, or to read the cache.

    Functions that require a frame are refused.
    """
    rng = np.random.default_rng(0)
    q, qd = system.random_state(rng, batch)
    given = {"q": q, "qd": qd, "qdd": rng.normal(size=qd.shape), "tau": rng.normal(size=qd.shape), "q2": q}
    out = []
    for name in functions:
        if name not in ALGORITHMS or ALGORITHMS[name].frame:
            raise unknown_name("function", name, [n for n, a in ALGORITHMS.items() if not a.frame])
        start = time.perf_counter()
        function = system.function(name)
        ready = time.perf_counter() - start
        arrays = [given[a] for a in ALGORITHMS[name].inputs]
        if system.mechanism.free_parameters:
            arrays.append(np.array([p.value for p in system.mechanism.free_parameters]))
        one = [a[0] if a.ndim > 1 else a for a in arrays]
        place = function(*arrays)
        single = _nanoseconds(lambda: function.gufunc(*one), 200)  # noqa: B023 - called at once
        whole = _nanoseconds(lambda: function.gufunc(*arrays, out=place), 3)  # noqa: B023
        out.append(Timing(name, ready, single, whole / batch))
    return out


def _nanoseconds(run: Callable[[], object], repeats: int) -> float:
    def once() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - start) / repeats * 1e9

    return median(once() for _ in range(ROUNDS))
