"""Runs in native code: integrator, mechanism, forces and controller are one compiled function."""

from __future__ import annotations

from ...compiler.runtime.cache import digest
from ...compiler.runtime.native import native
from ..events import Watch
from ..integrators import stepper
from ..loads_at_samples import Acting
from ..motion_problem import Problem
from ..rates import loads_and_drives
from ..run_states import Run
from ..slopes import LONGEST
from ..steppers import Stepper
from ..stiffness import Stiffness
from .engine import Fields, Motion, Progress, onward_by
from .runs import run


class Native:
    """The engine for methods with a tableau, or a step of their own, and mechanisms that can be compiled."""

    def takes(self, problem: Problem) -> bool:
        """Return whether the method is native."""
        return problem.method.scheme is not None

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate piece by piece, with checkpoints."""
        p = problem
        made = p.kept.part(
            ("stepper", p.method.name, p.loops, p.acting_key),
            lambda: stepper(p.mechanism, p.method, p.forces, p.control, loops=p.loops),
        )

        def again(q, qd, t, more) -> Run:
            return run(made, q, qd, t, p.settings, parameters=more)

        look = None
        if p.auto and p.method.adaptive and not p.lead and not p.checkpoint:
            look = Stiffness(p, p.kept.part(("rates", p.loops, p.acting_key), lambda: native(made.program)))

        def until(so_far: Run) -> bool:
            return (bool(watch) and watch.stops(so_far)) or (look is not None and look.look(so_far))

        examined = until if watch or look is not None else None

        done = run(
            made, *p.start, p.times, p.settings, parameters=p.parameters, threads=p.threads, progress=progress,
            checkpoint=p.checkpoint, key=_key(p, made) if p.checkpoint else "", until=examined,
        )  # fmt: skip
        done = done.with_end()
        instead = _implicit(made) if look is not None and look.found else ""
        return Motion(done, onward_by(p, done, again), lambda ended: (ended, acting_on(p)), instead)


def _implicit(made: Stepper) -> str:
    """Return the method for a stiff run of the same rates: native, unless their Jacobian is too long to compile."""
    return "rodas5p" if len(made.program.ops) <= LONGEST else "bdf"


def _key(problem: Problem, made: Stepper) -> str:
    """Return the key that identifies the checkpoint of a problem."""
    arrays = (*problem.start, problem.times, *(() if problem.parameters is None else (problem.parameters,)))
    numbers = (x.tobytes().hex() for x in arrays)
    return digest(made.program.hash, problem.method.name, repr(problem.settings), *numbers)


def acting_on(problem: Problem) -> Fields:
    """Return the loads of forces and compiled control as fields that are computed when they are read."""
    p = problem
    made = p.kept.part(("loads", p.acting_key), lambda: Acting(*loads_and_drives(p.mechanism, p.forces, p.control)))
    return made.fields()
