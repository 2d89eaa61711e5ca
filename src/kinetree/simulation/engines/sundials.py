"""Runs of stiff systems: backward differentiation formulas of SUNDIALS (CVODES in CasADi) with exact Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.export.casadi_expressions import expression
from ...compiler.ir.program import Program
from ...errors import InputError
from ..events import Watch
from ..motion_problem import Problem
from ..run_states import Run, Settings, blank_run, of_run
from .engine import Motion, Progress
from .external_solvers import continuous, rates_of
from .interrupts import noted_interrupts

FAILED = "CVODES gave up ({reason}); try smaller tolerances or a shorter run"
"""The reason of a run that CVODES did not finish."""


class Sundials:
    """The engine with backward differentiation formulas, to the tolerances of the settings."""

    def takes(self, problem: Problem) -> bool:
        """Return whether the method is that of CVODES."""
        return problem.method.name == "bdf"

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate every run of a batch, one after the other."""
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
    import casadi as ca

    sizes = {a.name: a.size for a in program.inputs}
    nq = sizes["q"]
    t, y = ca.SX.sym("t"), ca.SX.sym("y", nq + sizes["qd"])
    p = ca.SX.sym("p", sizes["parameters"]) if "parameters" in sizes else ca.SX(0, 1)
    rates = expression(program)(t, y[:nq], y[nq:], *((p,) if "parameters" in sizes else ()))
    return {"t": t, "x": y, "p": p, "ode": ca.vertcat(*rates)}


def _solver(equations: dict[str, Any], times: np.ndarray, settings: Settings) -> Any:
    import casadi as ca

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
            result.failures[flat] = f"{FAILED.format(reason=why)}; the last good state is at t = {last:.9g} s"
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
