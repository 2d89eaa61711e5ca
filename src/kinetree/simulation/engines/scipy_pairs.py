"""SciPy's embedded pairs on rates that Python functions return, one run of a batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...errors import InputError
from ..events import Watch
from ..motion_problem import Problem
from ..run_states import REASONS, Run, Settings, blank_run, of_run
from .engine import Progress

Rate = Callable[[float, np.ndarray], np.ndarray]
"""(t, y) -> dy/dt of one run."""

Samples = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], Iterator[tuple[np.ndarray, np.ndarray]]]
"""(q0, qd0, times, parameters) -> q and qd of one run at the times, the start first."""


def dense_states(
    pair: str, rate: Rate, start: np.ndarray, times: np.ndarray, settings: Settings
) -> Iterator[np.ndarray]:
    """Yield the states at the times after the first; raise an InputError if the steps end early."""
    from scipy import integrate

    with np.errstate(all="ignore"):  # states that are not finite are reported in the status
        solver = getattr(integrate, pair)(rate, times[0], start, times[-1], rtol=settings.rtol, atol=settings.atol)
        steps, k = 0, 1
        while k < len(times):
            if solver.status == "failed" or steps >= settings.most:
                reason = REASONS[2 if steps >= settings.most else 1]
                raise InputError(f"{reason}; the last good state is at t = {solver.t:.9g} s")
            solver.step()
            steps += 1
            if solver.status == "failed":
                continue
            between = solver.dense_output()
            while k < len(times) and times[k] <= solver.t:
                yield between(times[k]) if times[k] < solver.t else solver.y.copy()
                k += 1


def run_each(
    problem: Problem,
    samples: Samples,
    evaluated: Callable[[], int],
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Run:
    """Integrate every run of a batch; `evaluated` returns the number of evaluations since its last call."""
    result, lead = blank_run(problem.start, problem.times), problem.lead
    count = len(problem.times)
    for flat, index in enumerate(np.ndindex(*lead)):
        own = None if problem.parameters is None else of_run(problem.parameters, index)
        k = -1
        try:
            for k, (q, qd) in enumerate(samples(problem.start[0][index], problem.start[1][index], problem.times, own)):
                result.q[(*index, k)], result.qd[(*index, k)] = q, qd
                result.reached = count if lead else k + 1  # runs of a batch end at different times
                if progress is not None:
                    progress((flat + k / (count - 1)) / result.evaluations.size)
                if watch and not lead and watch.stops(result):
                    break
        except InputError as error:
            if k < 0 and not lead:
                raise
            result.failures[flat] = str(error)
        except KeyboardInterrupt:
            result.interrupted = True
        result.evaluations[index] = evaluated()
        if result.interrupted:
            break
    return result
