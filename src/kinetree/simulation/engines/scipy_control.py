"""Runs with control by a Python function at every stage of every step: SciPy's pairs on the compiled rates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...compiler.runtime.native import native
from ...errors import InputError
from ...model.axes import quaternion_places
from ..control.sampled import Law
from ..events import Watch
from ..motion_problem import Problem
from ..rates import rates
from ..run_states import of_run
from ..stabilization import Baumgarte
from .engine import Motion, Progress
from .held_torques import completed, held, joined, refuse_outside
from .scipy_pairs import dense_states, run_each

PAIRS = {"dop853": "DOP853", "dopri5": "RK45"}
"""The methods for control without a rate, and their names in SciPy."""


class PythonStages:
    """The engine for control by a Python function without a rate."""

    def takes(self, problem: Problem) -> bool:
        """Return whether a Python function is called at every stage."""
        return problem.outside and problem.control.rate is None

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate every run of a batch, one after the other.

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

        return Motion(done, onward, lambda ended: completed(problem, done, ended, torque))


class _Stages:
    """Single runs of a mechanism under a Python function."""

    def __init__(self, problem: Problem) -> None:
        p, closed = problem, bool(problem.system.closures)
        kept = partial(rates, loops=Baumgarte()) if closed else rates
        self._rates = p.kept.part(("held rates", p.acting_key), lambda: native(held(kept, p.mechanism, p.forces)))
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
                return np.concatenate(self._rates(np.array([t]), q, qd, joined(parameters, tau)))

        states = dense_states(self._pair, rate, np.concatenate([q0, qd0]), times, self._settings)
        for t, y in zip(times[1:], map(self._unit, states), strict=True):
            q, qd = y[: self._nq], y[self._nq :]
            if self._closer:
                q, qd = self._closer.close(q, qd, parameters)
            yield q, qd, self._torque(float(t), q, qd)

    def _torque(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = self._law.torques(t, q, qd)
        if not np.isfinite(tau).all():
            raise InputError(self._law.not_finite(t))
        return tau

    def _unit(self, y: np.ndarray) -> np.ndarray:
        for at in self._quaternions:
            y[at : at + 4] /= np.linalg.norm(y[at : at + 4])
        return y
