"""SciPy's integrators and step control on the compiled rates, one run after the other.

DOP853 is an independent check of the native one. Radau IIA is for stiff systems of any size: its Jacobian is made of
differences of the rates, in one native batch, so that nothing more is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from ..._support.interruption import noted_interrupts
from ..._support.optional import casadi
from ...compiler.export.casadi_abi import expression
from ...compiler.ir.program import Program
from ...errors import InputError
from ...model.mechanism import parameter_arguments
from ...runtime.native import native
from ..acting.drives import drives_of
from ..acting.rates import rates
from ..closing import closed_run
from ..events import Watch
from ..outcomes import Ending, Outcome
from ..problem import Problem
from ..run_states import Run, Settings, blank_run, of_run
from ..stabilization import Baumgarte
from .engine import Motion, Progress, no_checkpoint, onward_by
from .native import acting_on
from .scipy import dense_states, run_each

# --- Runs by the solvers of other packages on the compiled rates: functions shared by these engines ---
#
# Gaps of loops decay between the output times, and are closed at these times.


def rates_of(problem: Problem) -> tuple[Callable[[], Program], tuple[Hashable, ...]]:
    """Return a function that makes the rates for a solver, and their key."""
    p, loops = problem, problem.loops
    no_checkpoint(p, p.method.name)
    kept = None if not p.system.closures else Baumgarte() if loops is None or loops.projects else loops
    return (lambda: rates(p.mechanism, p.forces, p.control, loops=kept)), (kept, p.acting_key)


def continuous(problem: Problem, done: Run, again: Callable[..., Run]) -> Motion:
    """Return the motion of a run, with loops closed at the output times unless gaps are only to decay."""

    def closed(run: Run, parameters) -> Run:
        decays = not problem.system.closures or (problem.loops is not None and problem.loops.decays)
        if decays and drives_of(problem.control) is None:
            return run
        return closed_run(problem.closer, run, parameters)

    def onward(q, qd, t, more) -> Run:
        return closed(again(q, qd, t, more), more)

    whole = closed(done, problem.parameters)
    return Motion(whole, onward_by(problem, whole, onward), lambda ended: (ended, acting_on(problem)))


INTEGRATORS = {"scipy": "DOP853", "radau": "Radau"}
"""SciPy's integrators by method."""


def run_scipy(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs by SciPy's integrators, one run after the other."""
    program, key = rates_of(problem)
    p = problem
    rates = p.kept.part(("rates", *key), lambda: native(program()))
    nq, count = p.mechanism.nq, [0]

    def evaluated() -> int:
        before, count[0] = count[0], 0
        return before

    def samples(q0, qd0, times, parameters):
        more = parameter_arguments(parameters)

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            count[0] += 1 if y.ndim == 1 else y.shape[1]
            return np.concatenate(rates([t], y[:nq].T, y[nq:].T, *more), axis=-1).T

        yield q0, qd0
        start, method = np.concatenate([q0, qd0]), INTEGRATORS[p.method.name]
        for y in dense_states(method, rate, start, times, p.settings, batches=p.method.name == "radau"):
            yield y[:nq], y[nq:]

    def again(q, qd, t, more):
        short = replace(p, start=(q, qd), times=t, parameters=more)
        return run_each(short, samples, evaluated)

    return continuous(p, run_each(p, samples, evaluated, watch, progress), again)


# --- Runs of stiff systems: backward differentiation formulas of SUNDIALS (CVODES in CasADi) with exact Jacobians.

FAILED = "CVODES gave up ({reason}); try smaller tolerances or a shorter run"
"""The reason of a run that CVODES did not finish."""


def run_sundials(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs by the backward differentiation formulas of SUNDIALS, one run after the other."""
    p = problem
    program, key = rates_of(p)
    equations = p.kept.part(("symbolic", *key), lambda: _equations(program()))

    def again(q, qd, t, more) -> Run:
        return _run(_solver(equations, t, p.settings), (q, qd), t, more)

    grid = p.times.tobytes()
    made = p.kept.part(("cvodes", p.settings, grid, *key), lambda: _solver(equations, p.times, p.settings))
    return continuous(p, _run(made, p.start, p.times, p.parameters, progress), again)


def _equations(program: Program) -> dict[str, Any]:
    """Return y' = f(t, y; p) for CasADi's integrators."""
    ca = casadi()

    sizes = {a.name: a.size for a in program.inputs}
    nq = sizes["q"]
    t, y = ca.SX.sym("t"), ca.SX.sym("y", nq + sizes["qd"])
    p = ca.SX.sym("p", sizes["parameters"]) if "parameters" in sizes else ca.SX(0, 1)
    rates = expression(program)(t, y[:nq], y[nq:], *((p,) if "parameters" in sizes else ()))
    return {"t": t, "x": y, "p": p, "ode": ca.vertcat(*rates)}


def _solver(equations: dict[str, Any], times: np.ndarray, settings: Settings) -> Any:
    ca = casadi()

    options = {"reltol": settings.rtol, "abstol": settings.atol, "max_num_steps": settings.most}
    try:
        return ca.integrator("bdf", "cvodes", equations, float(times[0]), [float(x) for x in times[1:]], options)
    except RuntimeError as error:
        raise InputError(f"CVODES cannot be set up: {_short(error)}") from None


def _run(solver: Any, start, times, parameters, progress: Progress | None = None) -> Run:
    """Integrate each run of a batch; the states reached are kept if CVODES fails."""
    result, nq = blank_run(start, times), start[0].shape[-1]
    result.reached = len(times)
    for flat, index in enumerate(np.ndindex(*start[0].shape[:-1])):
        given = np.concatenate([start[0][index], start[1][index]])
        own = np.zeros(0) if parameters is None else np.array(of_run(parameters, index), dtype=float)
        path = np.full((len(times) - 1, len(given)), np.nan)
        with noted_interrupts() as interrupted:
            why, stats = _integrate(solver, given, own, path)
        result.q[(*index, slice(1, None))], result.qd[(*index, slice(1, None))] = path[:, :nq], path[:, nq:]
        result.evaluations[index], result.steps[index] = stats.get("nfevals", 0), stats.get("nsteps", 0)
        if interrupted():
            result.interrupted = True
            result.reached = len(times) if result.q.ndim > 2 else 1 + int(np.isfinite(path).all(axis=-1).sum())
            break
        if why:
            last = times[int(np.isfinite(path).all(axis=-1).sum())]
            result.failures[flat] = Ending(Outcome.METHOD, FAILED.format(reason=why), last=float(last))
        if progress is not None:
            progress((flat + 1) / result.evaluations.size)
    return result


def _integrate(solver: Any, start: np.ndarray, parameters: np.ndarray, path: np.ndarray) -> tuple[str, dict[str, Any]]:
    """Write the states into a path, row by row, by CVODES; return its error as text, or "", and its counts."""
    buffer, trigger = solver.buffer()
    buffer.set_arg(solver.index_in("x0"), start.data)
    buffer.set_arg(solver.index_in("p"), parameters.data)
    buffer.set_res(solver.index_out("xf"), path.data)
    why = ""
    try:
        trigger()
    except KeyboardInterrupt:
        why = "interrupted"
    except RuntimeError as error:
        why = _short(error)
    return why, buffer.stats()


def _short(error: Exception) -> str:
    """Return the last line of an error of CasADi, which contains the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__
