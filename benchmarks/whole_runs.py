"""Whole runs in one native call: the integrators of Kinetree without the pieces of `simulate`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kinetree.model.mechanism import Mechanism
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS

ENOUGH = 1e6
"""The most steps of a call, more than any benchmark takes."""

Results = tuple[np.ndarray, ...]


def fixed_run(mechanism: Mechanism, method: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray, float], Results]:
    """Return a function of q0, qd0, times [s] and dt [s] that returns (q, qd, ...) at the times."""
    gufunc = stepper(ForcedMechanism(mechanism), METHODS[method].scheme).gufunc
    return lambda q0, qd0, times, dt: gufunc(q0, qd0, times, dt, 0.0, ENOUGH)


def adaptive_run(mechanism: Mechanism, method: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray, float], Results]:
    """Return a function of q0, qd0, times [s] and rtol that returns (q, qd, ..., report); atol is rtol / 100."""
    gufunc = stepper(ForcedMechanism(mechanism), METHODS[method].scheme).gufunc

    def run(q0: np.ndarray, qd0: np.ndarray, times: np.ndarray, rtol: float) -> Results:
        first = 1e-3 * (times[-1] - times[0])
        return gufunc(q0, qd0, times, rtol, rtol / 100, first, ENOUGH, times[0])

    return run
