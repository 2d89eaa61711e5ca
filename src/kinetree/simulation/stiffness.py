"""Detection of stiff runs: stability, instead of the required accuracy, bounds the steps of an explicit method.

An explicit method is stable up to a step h for which h |lambda| reaches a bound that depends on the method; lambda is
the largest eigenvalue of the rates. If the steps stay near this bound and are very many, an implicit method is faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .motion_problem import Problem
from .run_states import Run

BOUND = {5: 3.25, 8: 6.1}
"""The stability bounds of h |lambda| on the negative real axis, by the order of the pair (Hairer and Wanner, IV.2)."""

NEAR = 0.4
"""The part of the bound above which the mean step indicates a stiff run, rejected steps included. Stiff runs were
measured at 0.5, and runs whose steps are bounded by accuracy below 0.1."""

MANY = 200_000
"""The projected evaluations of a whole run below which it is not checked: a second for a robot, about the time that
an implicit method needs to be set up."""

ROUNDS = 30
"""Iterations of the power method; the largest eigenvalue is needed only to within 10 %."""


@dataclass
class Stiffness:
    """A check of a single run after each of its pieces; `found` is True once the run is stiff."""

    problem: Problem
    rates: np.ufunc
    found: bool = False
    _before: tuple[float, float] = field(default=(0.0, 0.0))

    def look(self, run: Run) -> bool:
        """Return whether a run is stiff at its last finite state."""
        p, (steps, begun) = self.problem, self._before
        last = run.reached - 1
        if run.failures:  # otherwise all samples so far are finite
            good: Any = np.isfinite(run.q).all(axis=-1) & np.isfinite(run.qd).all(axis=-1)
            last = len(good) - 1 if good.all() else int(np.argmin(good)) - 1
        now, made = float(run.t[last]), float(run.steps) - steps
        span = now - (begun if steps else float(p.times[0]))
        self._before = float(run.steps), now
        part = (now - p.times[0]) / (p.times[-1] - p.times[0])
        if made <= 0 or float(run.evaluations) < MANY * part:
            return False
        step = span / made if span > 0 else float(run.step)
        self.found = step * self._largest_eigenvalue(run, last) > NEAR * BOUND[p.method.order]
        return self.found

    def _largest_eigenvalue(self, run: Run, k: int) -> float:
        """Return the size of the largest eigenvalue of the rates at a sample [1/s], by the power method."""
        nq = run.q.shape[-1]
        y, t = np.concatenate([run.q[k], run.qd[k]]), np.array([run.t[k]])
        more = () if self.problem.parameters is None else (self.problem.parameters,)

        def rate(x: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                return np.concatenate(self.rates(t, x[:nq], x[nq:], *more))

        at, scale = rate(y), 1e-7 * (1.0 + float(np.abs(y).max()))
        v, size = np.random.default_rng(1).normal(size=len(y)), 0.0
        for _ in range(ROUNDS):
            v = (rate(y + scale * v / np.linalg.norm(v)) - at) / scale
            size = float(np.linalg.norm(v))
            if not np.isfinite(size) or size == 0.0:
                return 0.0
        return size
