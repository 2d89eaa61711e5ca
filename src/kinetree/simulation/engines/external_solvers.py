"""Runs by the solvers of other packages on the compiled rates: functions shared by these engines.

Gaps of loops decay between the output times, and are closed at these times.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ...compiler.ir.program import Program
from ..drives import drives_of
from ..loop_closing import closed_run
from ..motion_problem import Problem
from ..rates import rates
from ..run_states import Run
from ..stabilization import Baumgarte
from .engine import Motion, no_checkpoint, onward_by
from .native import acting_on


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
