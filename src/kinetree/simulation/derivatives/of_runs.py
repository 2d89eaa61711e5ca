"""`simulation_derivatives`: a run with the derivatives of its states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import real_array
from ..._support.interruption import keep_in_interrupt
from ..._support.progress import show_progress
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...analysis.linearization import matrix, refuse_singular_position
from ...analysis.loops.doctor import doctor
from ...compiler.lower.loop_pattern import RANK
from ...errors import InputError, unknown_name
from ...model.axes import axis_labels
from ...model.mechanism import Mechanism, parameter_arguments
from ...model.scales import loop_units
from ...results.trajectory import Trajectory
from ...system import System
from ..acting.drives import drives_of
from ..acting.rates import loads
from ..engines.held_torques import with_held_torques
from ..engines.native import acting_on
from ..options import RunOptions
from ..problem import Problem, problem_of
from ..run_states import LoadPrograms, Run
from ..simulate import trajectory_of
from .forward import GROUPS, Columns, columns_of, forward, of_intervals

OPTIONS = RunOptions.names("checkpoint")
"""The options of `simulate` that a differentiated run takes."""

REFUSED = {
    "events": "the time of an event depends on the run, and a run with events has no derivatives; leave events out",
    "checkpoint": "a differentiated run keeps no checkpoints; leave checkpoint out",
    "keep": "a differentiated run is computed on the CPU; leave keep out",
}
"""The reasons why the other options are refused."""


@dataclass(frozen=True, eq=False, repr=False)
class RunDerivatives(Displayed):
    """A run, and the derivatives of its states: `dq` and `dqd` [..., nt, nv, columns], with a label per column.

    Rows of `dq` are directions of the tangent space at q. With `intervals`, row k of the time axis has the derivatives
    of sample k + 1 with respect to sample k, [..., nt - 1, nv, columns].
    """

    run: Trajectory
    dq: Numbers
    dqd: Numbers
    columns: Columns

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.labels

    def display(self) -> list[str | Table]:
        """Return the derivatives of the last state of one run, with the names of rows and columns; or their shape."""
        rows = axis_labels(self.run.system.mechanism, 1)
        rows = [*(f"d {x}" for x in rows), *(f"d {x}'" for x in rows)]
        if self.dq.ndim > 3 or not len(self.dq):
            return [f"derivatives of {self.run!r}: dq and dqd {list(self.dq.shape)}, by {', '.join(self.labels)}"]
        last = np.concatenate([self.dq[-1], self.dqd[-1]])
        return [f"derivatives of the last state of {self.run!r}", matrix(last, rows, self.labels)]

    def __getitem__(self, name: str) -> Numbers:
        """Return the derivatives of [q; qd] with respect to q0, qd0, parameters, tau, or a parameter by its name.

        The shape is [..., nt, 2 nv, columns of the group], or [..., nt, 2 nv] for a single parameter.
        """
        both = np.concatenate([self.dq, self.dqd], axis=-2)
        if name in GROUPS and name in self.columns.groups:
            return both[..., self.columns.slice_of(name)]
        at = self.columns.slice_of("parameters")
        single = self.labels[at]
        if name not in single:
            raise unknown_name("quantity of these derivatives", name, (*self.columns.groups, *single))
        return both[..., at.start + single.index(name)]


def simulation_derivatives(
    system: System | Mechanism,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    *,
    wrt: str | Iterable[str] | None = None,
    torques: ArrayLike | None = None,
    intervals: bool = False,
    progress: bool | None = None,
    **options: object,
) -> RunDerivatives:
    """Return a run with the derivatives of its states, integrated together with them in native code.

    `wrt` are names: "q0" and "qd0" (the start), "parameters" (all free ones) or some of them by name, and "tau"
    (constant torques added to those that act); by default the start and all free parameters. The other options are
    those of `simulate`, without events. The leading axes of the start, of parameters and of torques broadcast.
    `torques` [..., nt - 1, nv] are added to those that act, each during an output interval. Ctrl-C raises a
    KeyboardInterrupt whose `run` has what is computed so far.

    With fixed steps the derivatives are exactly those of the steps. Adaptive methods keep the errors of states and
    derivatives below the tolerances. With loops, a start displaced along a column is closed again, as `simulate` does,
    and derivatives are those of closed runs. With `intervals`, every output interval has derivatives of its own, with
    respect to the state at its beginning and to torques that act during it.
    """
    problem, columns = differentiable(system, q0, qd0, wrt, options, torques)
    added = added_torques(problem, torques)
    with show_progress(progress) as show:
        done, dq, dqd = (of_intervals if intervals else forward)(problem, columns, added, show)
    run = loaded_run(problem, done, added)
    count = len(run.t) - (1 if intervals else 0)
    found = RunDerivatives(run, dq[..., :count, :, :], dqd[..., :count, :, :], columns)
    if done.interrupted:
        text = f"simulation_derivatives was interrupted at t = {done.now:.9g} s; what is computed so far is `run`"
        raise keep_in_interrupt(text, run=found)
    return found


def differentiable(
    system: System | Mechanism,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    wrt: object,
    options: dict[str, Any],
    torques: ArrayLike | None = None,
) -> tuple[Problem, Columns]:
    """Return the problem of a run that can be differentiated, and its columns; `torques` are those that are added."""
    for name in options:
        if name in REFUSED:
            raise InputError(f"{name}: {REFUSED[name]}")
        if name not in OPTIONS:
            raise unknown_name("option of a differentiated run", name, OPTIONS)
    beside = {} if torques is None else {"torques": real_array(torques, "torques").shape[:-2]}
    problem = replace(problem_of(system, q0, qd0, RunOptions(**options), beside=beside), auto=False)
    refuse_singular_starts(problem)
    return problem, columns_of(problem.mechanism, wrt)


def refuse_singular_starts(problem: Problem) -> None:
    """Raise InputError for a start at a singular position of its loops, where a run has no derivatives."""
    p, system = problem, problem.system
    if not p.mechanism.closures or p.is_long:
        return
    q, values = p.start[0], p.parameters
    more = parameter_arguments(values)
    rows, columns = loop_units(p.mechanism)
    sizes = np.linalg.svd(system.function("closure_jacobian")(q, *more) * columns / rows[:, None], compute_uv=False)
    ranks = (sizes > RANK * sizes.max(axis=-1, initial=0.0, keepdims=True)).sum(axis=-1)
    if not ranks.size:  # no runs
        return
    first = np.unravel_index(0, ranks.shape)

    def at(index: tuple) -> tuple[Numbers, Numbers | None]:
        return q[index], None if values is None else values[index] if values.ndim > 1 else values

    def usual() -> int:
        position, own = at(first)
        return system.nv - doctor(system if own is None else system.fixed(own), position).lasting

    most = p.kept.part("usual rank of loops", usual)
    for index in np.argwhere(ranks < most)[:1]:
        try:
            refuse_singular_position(system, *at(tuple(index)))
        except InputError as error:
            raise InputError(f"q0 has no derivatives: {error}") from None


def added_torques(problem: Problem, torques: ArrayLike | None) -> Numbers | None:
    """Return torques that are added in each output interval, with the leading shape of the start; None for none."""
    if torques is None:
        return None
    if drives_of(problem.control) is not None:
        raise InputError("torques are given, and joints are driven; leave one of both out")
    found, shape = real_array(torques, "torques"), (len(problem.times) - 1, problem.system.nv)
    if found.shape[-2:] != shape:
        raise InputError(f"torques have the shape {found.shape}; expected [..., nt - 1, nv], {shape} at the end")
    if not np.isfinite(found).all():
        raise InputError("torques have entries that are not finite; give finite numbers")
    return np.ascontiguousarray(np.broadcast_to(found, (*problem.lead, *shape)))


def loaded_run(problem: Problem, done: Run, torques: Numbers | None) -> Trajectory:
    """Return a run as a Trajectory; its control has the added torques, at each time for the next interval."""
    run = trajectory_of(problem, done, acting_on(problem), ())
    if torques is None:
        return run
    p, rows = problem, np.minimum(np.arange(len(run.t)), torques.shape[-2] - 1)
    control = np.asarray(run.control) + torques[..., rows, :]
    acting = p.kept.part(
        ("held loads", p.acting_key), lambda: LoadPrograms(with_held_torques(loads, p.dynamics), held=True)
    )
    return trajectory_of(problem, done, acting.fields() | {"control": control}, ())
