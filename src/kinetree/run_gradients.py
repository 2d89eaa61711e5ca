"""`simulation_gradient`: the gradient of an objective of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .algebra.arrays import Numbers
from .errors import InputError, brief, unknown_name
from .model.mechanism import Mechanism
from .progress import shown
from .results.trajectory import Trajectory
from .run_derivatives import added_torques, differentiable, loaded_run
from .simulation.derivatives.adjoint import gradient
from .simulation.functions_of_now import HINT
from .simulation.instants import Instant
from .system import System

Cost = Callable[[Instant], Any]
"""A function of `now` that returns a number."""


@dataclass(frozen=True, eq=False)
class RunGradient:
    """The value of an objective of a run [...], and its gradients with respect to everything that determines it.

    `q0` and `qd0` are [..., nv], that of q0 in the tangent space; `parameters` are [..., np], None without free ones;
    `torques` are [..., nt - 1, nv], None if none were given.
    """

    run: Trajectory
    value: Numbers
    q0: Numbers
    qd0: Numbers
    parameters: Numbers | None
    torques: Numbers | None

    def __getitem__(self, name: str) -> Numbers:
        """Return the derivative with respect to a free parameter by its name, [...]."""
        names = [p.name for p in self.run.system.mechanism.free_parameters]
        if self.parameters is None or name not in names:
            raise unknown_name("free parameter", name, names)
        return self.parameters[..., names.index(name)]


def simulation_gradient(
    system: System | Mechanism,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    *,
    terminal: Cost | None = None,
    running: Cost | None = None,
    torques: ArrayLike | None = None,
    progress: bool | None = None,
    **options: Any,
) -> RunGradient:
    """Return the gradient of an objective of a run, by its steps in reverse order, in native code.

    The objective is `terminal` at the end plus the integral of `running` over time [s]. Both are functions of `now`, as
    those of events: they read `now.t`, `now.q`, `now.qd`, `now.point(...)`, and the torques of control `now.control`,
    and are compiled. `torques` [..., nt - 1, nv] are added to those that act, each during an output interval.

    The options are those of `simulate` for "rk4", "euler", "midpoint" and "gauss" with fixed steps and for "dopri5",
    "dop853" and "rodas5p", without events. The gradient is that of these steps, to rounding. Adaptive methods end steps
    at the output times, and the lengths of the accepted steps are held fixed. The cost is that of a few runs, whatever
    the number of parameters and torques.
    """
    if terminal is None and running is None:
        raise InputError("terminal and running: give at least one of them, a function of `now` that returns a number")
    problem, _ = differentiable(system, q0, qd0, "qd0", options)
    costs = [_checked(name, x) for name, x in (("terminal", terminal), ("running", running))]
    added = added_torques(problem, torques)
    with shown(progress) as show:
        found = gradient(problem, costs[0], costs[1], added, show)
    run = loaded_run(problem, found.run, added)
    return RunGradient(run, found.value, found.q0, found.qd0, found.parameters, found.torques)


def _checked(name: str, cost: Cost | None) -> Cost | None:
    """Return a function of `now` that explains why another one cannot be compiled; None without a cost."""
    if cost is None:
        return None
    if not callable(cost):
        raise InputError(f"{name} is {repr(cost)[:60]}; give a function of `now` that returns a number")

    def value(now: Instant) -> Any:
        try:
            found = cost(now)
        except (TypeError, AttributeError) as error:
            raise InputError(f"{name} cannot be compiled ({error}); {HINT}") from error
        if found is None or isinstance(found, str | list | tuple | np.ndarray):
            what = brief(found) if found is None or isinstance(found, str) else f"{np.size(found)} values"
            raise InputError(f"{name} returns {what}; give a function of `now` that returns one number")
        try:
            return found + 0.0
        except TypeError as error:
            raise InputError(f"{name} cannot be compiled ({error}); {HINT}") from error

    return value
