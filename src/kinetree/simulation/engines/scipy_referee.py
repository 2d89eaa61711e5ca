"""SciPy as a referee: its integrator and step control on the compiled rates, one run after the other, in Python."""

from __future__ import annotations

import numpy as np

from ...compiler.ir.program import Program
from ...compiler.runtime.native import native
from .runs import Run, Settings


def run_scipy(program: Program, q0, qd0, times, settings: Settings, parameters=None) -> Run:
    """Integrate each run of a batch by SciPy's DOP853 to the tolerances of the settings."""
    from scipy.integrate import solve_ivp

    rates = native(program)
    nq, lead = q0.shape[-1], q0.shape[:-1]
    q = np.full((*lead, len(times), nq), np.nan)
    qd = np.full((*lead, len(times), qd0.shape[-1]), np.nan)
    evaluations, steps, failures = np.zeros(lead), np.zeros(lead), {}
    for flat, index in enumerate(np.ndindex(*lead)):
        more = () if parameters is None else (parameters[index] if parameters.ndim > 1 else parameters,)

        def f(t: float, y: np.ndarray, more=more) -> np.ndarray:
            return np.concatenate(rates([t], y[:nq], y[nq:], *more))

        start = np.concatenate([q0[index], qd0[index]])
        with np.errstate(all="ignore"):  # what leaves the finite numbers is named in the status
            done = solve_ivp(
                f, (times[0], times[-1]), start, method="DOP853", t_eval=times, rtol=settings.rtol, atol=settings.atol
            )
        count = done.y.shape[1]
        q[(*index, slice(count))], qd[(*index, slice(count))] = done.y[:nq].T, done.y[nq:].T
        evaluations[index], steps[index] = done.nfev, len(done.t)
        if not done.success:
            last = times[count - 1] if count else times[0]
            failures[flat] = f"SciPy gave up ({done.message}); the last good state is at t = {last:.9g} s"
    return Run(times, q, qd, evaluations, steps, np.zeros(lead), len(times), False, failures)
