"""What engines share that integrate the compiled rates by another package's solver.

Gaps of loops decay between the output times, and are closed there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ...compiler.ir.program import Program
from ..loop_closing import closed_run
from ..motion_problem import Problem
from ..rates import rates
from ..run_states import Run
from ..stabilization import Baumgarte
from .engine import Motion, no_checkpoint, onward_by
from .native import acting_on


def rates_of(problem: Problem) -> tuple[Callable[[], Program], tuple[Hashable, ...]]:
    """Return how to make the rates that a solver integrates, and what identifies them."""
    p, loops = problem, problem.loops
    no_checkpoint(p, p.method.name)
    kept = None if not p.system.closures else Baumgarte() if loops is None or loops.projects else loops
    return (lambda: rates(p.mechanism, p.forces, p.control, loops=kept)), (kept, p.acting_key)


def continuous(problem: Problem, done: Run, again: Callable[..., Run]) -> Motion:
    """Return the motion of a run, its loops closed but where they are to decay alone."""

    def closed(run: Run, parameters) -> Run:
        if not problem.system.closures or (problem.loops is not None and problem.loops.decays):
            return run
        return closed_run(problem.closer, run, parameters)

    def onward(q, qd, t, more) -> Run:
        return closed(again(q, qd, t, more), more)

    whole = closed(done, problem.parameters)
    return Motion(whole, onward_by(problem, whole, onward), lambda ended: (ended, acting_on(problem)))
