"""Stiffness: steps of an explicit method that its stability bounds, not the accuracy that was asked for.

Along the largest eigenvalue of the rates, an explicit method is stable up to a step h with h |lambda| near a number of
its own. A run whose steps stay there, and which would take very many of them, is better done by an implicit method.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .motion_problem import Problem
from .run_states import Run

BOUND = {5: 3.25, 8: 6.1}
"""h |lambda| up to which pairs of these orders are stable along the negative real axis (Hairer and Wanner, IV.2)."""

NEAR = 0.4
"""The part of the bound that the mean step of a stiff run exceeds, rejected ones counted: 0.5 was measured, and less
than 0.1 where accuracy bounds the steps."""

MANY = 200_000
"""Evaluations that a run may take before it counts as stiff: a second of a robot, about what CVODES takes to set up."""

ROUNDS = 30
"""Steps of the power method; the size of the largest eigenvalue is needed to a tenth."""


@dataclass
class Stiffness:
    """A look at a single run after each of its pieces; `found` once it is stiff."""

    problem: Problem
    rates: np.ufunc
    found: bool = False
    _before: tuple[float, float] = field(default=(0.0, 0.0))

    def look(self, run: Run) -> bool:
        """Return whether a run is stiff where it stands."""
        p, (steps, begun) = self.problem, self._before
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
