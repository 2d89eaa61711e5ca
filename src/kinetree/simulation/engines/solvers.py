"""Integrators of SciPy and SUNDIALS on the compiled rates, one run after the other.

DOP853 is an independent check of the native one. Radau IIA is for stiff systems of any size: its Jacobian is made of
differences of the rates, in one native batch, so that nothing more is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..._support.interruption import noted_interrupts
from ..._support.optional import casadi
from ...compiler.export.casadi_abi import expression
from ...compiler.ir.program import Program
from ...errors import InputError
from ...model.axes import quaternion_places
from ...model.mechanism import parameter_arguments
from ...runtime.native import native
from ..acting.drives import drives_of
from ..acting.rates import ForcedMechanism, rates
from ..acting.sampled import Law
from ..closing import Baumgarte, closed_run
from ..events import Watch
from ..outcomes import Ending, Outcome, RunStopped, ending_of
from ..problem import Problem
from ..run_states import Run, Settings, blank_run, of_run
from .engine import Motion, Progress, no_checkpoint, onward_by
from .held_torques import complete_run, join_columns, refuse_outside, with_held_torques
from .native import acting_on

# --- Control by a Python function at every stage of every step: SciPy's pairs on the compiled rates ---


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
        dynamics = ForcedMechanism(p.mechanism, p.forces, loops=Baumgarte() if closed else None)
        self._rates = p.kept.part(("held rates", p.acting_key), lambda: native(with_held_torques(rates, dynamics)))
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


# --- Runs by the solvers of other packages on the compiled rates: functions shared by these engines ---
#
# Gaps of loops decay between the output times, and are closed at these times.


def rates_of(problem: Problem) -> tuple[Callable[[], Program], tuple[Hashable, ...]]:
    """Return a function that makes the rates for a solver, and their key."""
    p, loops = problem, problem.loops
    no_checkpoint(p, p.method.name)
    kept = None if not p.system.closures else Baumgarte() if loops is None or loops.projects else loops
    return (lambda: rates(replace(p.dynamics, loops=kept))), (kept, p.acting_key)


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


def _run(solver: object, start, times, parameters, progress: Progress | None = None) -> Run:
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
