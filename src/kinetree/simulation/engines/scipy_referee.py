"""SciPy as an independent check: its integrator and step control on the compiled rates, one run after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...compiler.runtime.native import native
from ..events import Watch
from ..motion_problem import Problem
from .engine import Motion, Progress
from .external_solvers import continuous, rates_of
from .scipy_pairs import dense_states, run_each


class Scipy:
    """The engine with SciPy's DOP853, to the tolerances of the settings."""

    def takes(self, problem: Problem) -> bool:
        """Return whether the method is that of SciPy."""
        return problem.method.name == "scipy"

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate every run of a batch, one after the other."""
        program, key = rates_of(problem)
        rates = problem.kept.part(("rates", *key), lambda: native(program()))
        nq, count = problem.mechanism.nq, [0]

        def evaluated() -> int:
            before, count[0] = count[0], 0
            return before

        def samples(q0, qd0, times, parameters):
            more = () if parameters is None else (parameters,)

            def rate(t: float, y: np.ndarray) -> np.ndarray:
                count[0] += 1
                return np.concatenate(rates([t], y[:nq], y[nq:], *more))

            yield q0, qd0
            start = np.concatenate([q0, qd0])
            for y in dense_states("DOP853", rate, start, times, problem.settings):
                yield y[:nq], y[nq:]

        def again(q, qd, t, more):
            short = replace(problem, start=(q, qd), times=t, parameters=more)
            return run_each(short, samples, evaluated)

        return continuous(problem, run_each(problem, samples, evaluated, watch, progress), again)
