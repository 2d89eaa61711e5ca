"""Runs under a Python function that is asked at every stage of every step: SciPy's pairs around the compiled rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...compiler.runtime.native import native
from ...errors import InputError
from ...model.mechanism import Mechanism
from ..events import Watch, of_run
from ..integrators import Method
from ..rates import Force, rates
from ..stabilization import Baumgarte, ProgramCloser, closing_program
from .held_torques import HeldRun, blank_run, held, joined
from .runs import REASONS, Settings
from .steppers import quaternion_places

PAIRS = {"dop853": "DOP853", "dopri5": "RK45"}
"""The methods that there are without a rate, by SciPy's names."""


def run_python(
    mechanism: Mechanism,
    method: Method,
    forces: Sequence[Force],
    law: Any,
    start: tuple[np.ndarray, np.ndarray],
    times: np.ndarray,
    settings: Settings,
    *,
    parameters: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    watch: Watch | None = None,
) -> HeldRun:
    """Integrate every run of a batch, one after the other; `law` is a `sampled.Law`.

    Gaps of loops decay between the times, and are closed there.
    """
    if method.name not in PAIRS:
        known = " or ".join(PAIRS)
        raise InputError(f"a PythonControl without a rate runs by {known}, not {method.name}; give it a rate")
    motion = _Motion(mechanism, method, forces, law, settings)
    result = blank_run(start, times)
    lead = start[0].shape[:-1]
    torque = np.full((*lead, len(times), mechanism.nv), np.nan)
    reached = len(times) if lead else 1  # runs of a batch end at different times
    for flat, index in enumerate(np.ndindex(*lead)):
        own = None if parameters is None else of_run(parameters, index)
        samples = motion.samples(start[0][index], start[1][index], times, own)
        try:
            for k, (q, qd, tau) in enumerate(samples):
                result.q[(*index, k)], result.qd[(*index, k)], torque[(*index, k)] = q, qd, tau
                result.reached = reached if lead else k + 1
                if progress is not None:
                    progress((flat + k / (len(times) - 1)) / result.evaluations.size)
                if watch and not lead and watch.stops(result):
                    break
        except InputError as error:
            if np.isnan(torque[(*index, 0)]).any() and not lead:
                raise
            result.failures[flat] = str(error)
        except KeyboardInterrupt:
            result.interrupted = True
        result.evaluations[index], motion.evaluations = motion.evaluations, 0
        if result.interrupted:
            break

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if parameters is None else of_run(parameters, index)
        state = result.q[(*index, k)], result.qd[(*index, k)]
        *_, (q, qd, _) = motion.samples(*state, np.array([times[k], t]), own)
        return q, qd

    return HeldRun(result, torque, onward)


class _Motion:
    """One run of a mechanism under a Python function."""

    def __init__(self, mechanism: Mechanism, method: Method, forces: Sequence[Force], law, settings: Settings) -> None:
        kept = partial(rates, loops=Baumgarte()) if mechanism.closures else rates
        self._rates = native(held(kept, mechanism, forces))
        self._closer = ProgramCloser(closing_program(mechanism)) if mechanism.closures else None
        self._pair = PAIRS[method.name]
        self._law, self._settings, self._nq = law, settings, mechanism.nq
        self._quaternions = quaternion_places(mechanism)
        self.evaluations = 0

    def samples(self, q0, qd0, times: np.ndarray, parameters: np.ndarray | None):
        """Yield q, qd and tau at the times; raise an InputError where the law, or a step, fails."""
        from scipy import integrate

        yield q0, qd0, self._torque(float(times[0]), q0, qd0)

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            q, qd = y[: self._nq], y[self._nq :]
            tau = self._torque(t, q, qd)
            self.evaluations += 1
            with np.errstate(all="ignore"):
                return np.concatenate(self._rates(np.array([t]), q, qd, joined(parameters, tau)))

        s = self._settings
        start = np.concatenate([q0, qd0])
        solver = getattr(integrate, self._pair)(rate, times[0], start, times[-1], rtol=s.rtol, atol=s.atol)
        steps, k = 0, 1
        while k < len(times):
            if solver.status == "failed" or steps >= s.most:
                reason = REASONS[2 if steps >= s.most else 1]
                raise InputError(f"{reason}; the last good state is at t = {solver.t:.9g} s")
            solver.step()
            steps += 1
            if solver.status == "failed":
                continue
            between = solver.dense_output()
            while k < len(times) and times[k] <= solver.t:
                y = self._unit(between(times[k]) if times[k] < solver.t else solver.y.copy())
                q, qd = y[: self._nq], y[self._nq :]
                if self._closer:
                    q, qd = self._closer.close(q, qd, parameters)
                yield q, qd, self._torque(float(times[k]), q, qd)
                k += 1

    def _torque(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = self._law.ask(t, q, qd)
        if not np.isfinite(tau).all():
            raise InputError(self._law.not_finite(t))
        return tau

    def _unit(self, y: np.ndarray) -> np.ndarray:
        for at in self._quaternions:
            y[at : at + 4] /= np.linalg.norm(y[at : at + 4])
        return y
