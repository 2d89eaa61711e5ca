"""Runs with control by a Python function at every stage of every step: SciPy's pairs on the compiled rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ...errors import InputError
from ...model.axes import quaternion_places
from ...runtime.native import native
from ..acting.rates import rates
from ..acting.sampled import Law
from ..events import Watch
from ..outcomes import Ending, Outcome, RunStopped, ending_of
from ..problem import Problem
from ..run_states import Run, Settings, blank_run, of_run
from ..stabilization import Baumgarte
from .engine import Motion, Progress
from .held_torques import complete_run, join_columns, refuse_outside, with_held_torques

# --- SciPy's integrators on rates that Python functions return, one run of a batch after the other ---

Rate = Callable[[float, np.ndarray], np.ndarray]
"""(t, y) -> dy/dt of one run."""

Samples = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], Iterator[tuple[np.ndarray, np.ndarray]]]
"""(q0, qd0, times, parameters) -> q and qd of one run at the times, the start first."""


def dense_states(
    pair: str, rate: Rate, start: np.ndarray, times: np.ndarray, settings: Settings, *, batches: bool = False
) -> Iterator[np.ndarray]:
    """Yield the states at the times after the first; raise an InputError if the steps end early.

    With `batches`, the rate takes many states at once, y [ny, n], as implicit methods evaluate them for a Jacobian.
    """
    from scipy import integrate

    more = {"vectorized": True} if batches else {}
    with np.errstate(all="ignore"):  # states that are not finite are reported in the status
        make = getattr(integrate, pair)
        solver = make(rate, times[0], start, times[-1], rtol=settings.rtol, atol=settings.atol, **more)
        steps, k = 0, 1
        while k < len(times):
            if solver.status == "failed" or steps >= settings.most:
                why = Outcome.TOO_MANY if steps >= settings.most else Outcome.TOO_SHORT
                raise RunStopped(Ending(why, last=float(solver.t)))
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
            result.failures[flat] = ending_of(error)
        except KeyboardInterrupt:
            result.interrupted = True
        result.evaluations[index] = evaluated()
        if result.interrupted:
            break
    return result


PAIRS = {"dop853": "DOP853", "dopri5": "RK45"}
"""The methods for control without a rate, and their names in SciPy."""


def run_python_stages(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs controlled by a Python function without a rate, one run after the other.

    Gaps of loops decay between the output times, and are closed at these times.
    """
    refuse_outside(problem)
    if problem.method.name not in PAIRS:
        known, name = " or ".join(PAIRS), problem.method.name
        raise InputError(f"a PythonControl without a rate runs by {known}, not {name}; give it a rate")
    stages = _Stages(problem)
    torques: list[np.ndarray] = []

    def samples(*given) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        torques.append(np.full((len(problem.times), problem.mechanism.nv), np.nan))
        for k, (q, qd, tau) in enumerate(stages.samples(*given)):
            torques[-1][k] = tau
            yield q, qd

    done = run_each(problem, samples, stages.evaluated, watch, progress)
    torque = np.full((*problem.lead, len(problem.times), problem.mechanism.nv), np.nan)
    torque.reshape(-1, *torque.shape[-2:])[: len(torques)] = torques

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if problem.parameters is None else of_run(problem.parameters, index)
        state = done.q[(*index, k)], done.qd[(*index, k)]
        *_, (q, qd, _) = stages.samples(*state, np.array([problem.times[k], t]), own)
        return q, qd

    return Motion(done, onward, lambda ended: complete_run(problem, done, ended, torque))


class _Stages:
    """Single runs of a mechanism under a Python function."""

    def __init__(self, problem: Problem) -> None:
        p, closed = problem, bool(problem.system.closures)
        kept = partial(rates, loops=Baumgarte()) if closed else rates
        self._rates = p.kept.part(
            ("held rates", p.acting_key), lambda: native(with_held_torques(kept, p.mechanism, p.forces))
        )
        self._closer = p.closer if closed else None
        self._pair = PAIRS[p.method.name]
        self._law, self._settings, self._nq = Law(p.mechanism, p.control, p.parameters), p.settings, p.mechanism.nq
        self._quaternions = quaternion_places(p.mechanism)
        self._evaluations = 0

    def evaluated(self) -> int:
        """Return the number of evaluations of the rates since the last call of this method."""
        count, self._evaluations = self._evaluations, 0
        return count

    def samples(self, q0, qd0, times: np.ndarray, parameters: np.ndarray | None):
        """Yield q, qd and tau at the times; raise an InputError if the control or a step fails."""
        yield q0, qd0, self._torque(float(times[0]), q0, qd0)

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            q, qd = y[: self._nq], y[self._nq :]
            tau = self._torque(t, q, qd)
            self._evaluations += 1
            with np.errstate(all="ignore"):
                return np.concatenate(self._rates(np.array([t]), q, qd, join_columns(parameters, tau)))

        states = dense_states(self._pair, rate, np.concatenate([q0, qd0]), times, self._settings)
        for t, y in zip(times[1:], map(self._unit, states), strict=True):
            q, qd = y[: self._nq], y[self._nq :]
            if self._closer:
                q, qd = self._closer.close(q, qd, parameters)
            yield q, qd, self._torque(float(t), q, qd)

    def _torque(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = self._law.torques(t, q, qd)
        if not np.isfinite(tau).all():
            raise RunStopped(self._law.not_finite(t))
        return tau

    def _unit(self, y: np.ndarray) -> np.ndarray:
        for at in self._quaternions:
            y[at : at + 4] /= np.linalg.norm(y[at : at + 4])
        return y
