"""The engine with steps in Python: long mechanisms, and methods implicit in the springs and dampers of joints."""

from __future__ import annotations

from typing import Any

from ...errors import InputError
from ..control.sampled import Law
from ..drives import drives_of
from ..events import Watch
from ..motion_problem import Problem
from ..run_states import Run
from .engine import Fields, Motion, Progress, no_checkpoint, onward_by
from .marching import STEPS, March

OWN = ("implicit_euler", "implicit_midpoint")
"""Methods whose steps are in Python for every mechanism."""


class Marching:
    """The engine for mechanisms that are too long for compiled rates, and for methods that no other engine has."""

    def takes(self, problem: Problem) -> bool:
        """Return whether the mechanism or the method requires steps in Python."""
        return problem.is_long or problem.method.name in OWN

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate all runs of a batch together."""
        p, bodies = problem, len(problem.system.bodies)
        if p.outside and p.control.rate is not None:
            if not p.is_long:
                raise InputError(f"{p.method.name} cannot hold sampled torques; use a native method")
            raise InputError(
                f"{p.mechanism.name!r} has {bodies} bodies: too many for torques that are sampled; "
                "use a PythonControl without a rate"
            )
        if drives_of(p.control) is not None:
            what = f"{bodies} bodies are too many" if p.is_long else f"{p.method.name} has no steps"
            raise InputError(f"{p.mechanism.name!r}: {what} for driven joints; use PD control with large gains instead")
        no_checkpoint(p, "this run")
        if p.method.name not in STEPS:
            raise InputError(
                f"{p.method.name} cannot be compiled for the {bodies} bodies of {p.mechanism.name!r}; use "
                f"{', '.join(STEPS[:-1])} or {STEPS[-1]}, with a step dt"
            )
        control: Any = Law(p.mechanism, p.control, p.parameters) if p.outside else p.control
        made = March(p.mechanism, p.method.name, p.forces, control, p.loops, function=p.system.function)

        def again(q, qd, t, more) -> Run:
            return made.run(q, qd, t, p.settings, more)

        done = made.run(*p.start, p.times, p.settings, p.parameters, progress=progress).with_end()

        def complete(ended: Run) -> tuple[Run, Fields]:
            return ended, made.acting(ended.t, ended.q, ended.qd, p.parameters)

        return Motion(done, onward_by(p, done, again), complete)
