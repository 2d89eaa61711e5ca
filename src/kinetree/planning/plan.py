"""Optimal motions between two states, of least time, energy or effort, within limits: `kt.plan`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import positive, whole
from .._support.lazy_names import picture
from .._support.optional import optional
from .._support.tables import Displayed
from .._support.tables import Table as Shown
from ..algebra.scalars import Numbers, Scalar
from ..analysis.loops.driven_motion import nearest_motion
from ..errors import InputError, argument
from ..model.axes import axis_labels
from ..model.mechanism import Named
from ..simulation.acting.instants import Instant
from ..simulation.acting.references.motions import Lists
from ..simulation.acting.references.table import Table, piecewise
from ..system import System
from .collocation import (
    Points,
    Solution,
    Task,
    beyond_limits,
    errors,
    on_mesh,
    refined,
    replayed,
    solve,
    with_middles,
)
from .limits import MotionLimits, unit_of
from .phases import Phase, PhaseContacts, solve_phases
from .tasks import given_motion, read_task, straight_motion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..results.trajectory import Trajectory

BEFORE = 1e-9
"""The time from the end of a phase to the start of the next one, whose velocities differ, relative to the duration."""
PASSES = 12
"""The most meshes that are tried."""


@dataclass(frozen=True)
class Mesh:
    """One pass of the solver: intervals, error of the states, cost, iterations."""

    intervals: int
    error: float
    cost: float
    iterations: int


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Displayed):
    """A planned motion: a reference (q, qd, qdd), and a controller whose torques replay it.

    `t` [n], `q`, `qd`, `qdd` and `tau` [n, nv] are at the points of the mesh and between them, `cost` is what was
    minimized. `error` is the largest error of an interval: of the state at its end, relative to 1 and the largest size
    of each entry. `meshes` are the passes of refinement. Between the points of the mesh torques are linear in time.
    """

    system: System
    minimizes: str
    driven: tuple[int, ...]
    limits: MotionLimits
    parts: tuple[Points, ...]
    cost: float
    error: float
    meshes: tuple[Mesh, ...]
    contacts: tuple[PhaseContacts, ...] = ()

    @property
    def points(self) -> Points:
        """The motion on its mesh, that of the first phase if there are several."""
        return self.parts[0]

    @property
    def duration(self) -> float:
        """The time of the whole motion [s]."""
        return sum(x.duration for x in self.parts)

    @property
    def t(self) -> Numbers:
        """The times of all points [s]; phases end a billionth of the duration before the next one begins."""
        out, start, gap = [], 0.0, BEFORE * self.duration
        for k, part in enumerate(self.parts):
            out.append(start + part.times)
            start += part.duration
            if k < len(self.parts) - 1:
                out[-1][-1] -= gap
        return np.concatenate(out)

    @property
    def q(self) -> Numbers:
        """The positions."""
        return np.concatenate([x.q for x in self.parts])

    @property
    def qd(self) -> Numbers:
        """The velocities."""
        return np.concatenate([x.v for x in self.parts])

    @property
    def qdd(self) -> Numbers:
        """The accelerations."""
        return np.concatenate([x.a for x in self.parts])

    @property
    def tau(self) -> Numbers:
        """The torques of all degrees of freedom, zero where there is no drive."""
        out = np.zeros_like(self.q)
        out[:, list(self.driven)] = np.concatenate([with_middles(x.u) for x in self.parts])
        return out

    @cached_property
    def run(self) -> Trajectory:
        """The plan as a Trajectory, with the torques as its control: for kt.TrackingLQR, plots and pages."""
        from ..results.trajectory import Trajectory

        return Trajectory(
            self.system, self.t, self.q, self.qd, torque=self.tau, control=self.tau, accelerations=self.qdd
        )

    @cached_property
    def _table(self) -> Table:
        places = list(self.driven) if self.system.closures else slice(None)
        ends = np.concatenate([np.arange(len(x.q)) % 2 == 0 for x in self.parts])
        q, qd, qdd = (x[ends][:, places] for x in (self.q, self.qd, self.qdd))
        return Table(self.t[ends], q, rates=qd, accelerations=qdd)

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd of all coordinates, or of the driven ones of a closed mechanism."""
        return self._table(t)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of the plan, those of its end afterwards."""
        if now.mechanism.nv != self.system.nv:
            raise InputError(
                f"this plan is that of {self.system.mechanism.name!r} with {self.system.nv} degrees of freedom, and "
                f"{now.mechanism.name!r} has {now.mechanism.nv}; make one for it"
            )
        starts = np.cumsum([0.0, *(x.duration for x in self.parts)])
        t = np.concatenate([x.mesh[:-1] * x.duration + start for x, start in zip(self.parts, starts, strict=False)])
        steps = np.concatenate([np.diff(x.mesh) * x.duration for x in self.parts])[:, None]
        u, slopes = (
            np.concatenate([x.u[:-1] for x in self.parts]),
            np.concatenate([np.diff(x.u, axis=0) for x in self.parts]),
        )
        slopes = slopes / steps
        values, _, _ = piecewise(np.append(t, starts[-1]), np.stack([u, slopes, np.zeros_like(slopes)]), now.t)
        out: list[Scalar] = [0.0] * now.mechanism.nv
        for k, x in zip(self.driven, values, strict=True):
            out[k] = x
        return out

    def display(self) -> list[str | Shown]:
        """Return duration and cost, the passes, and what is used of the limits."""
        m, rows = self.system.mechanism, []
        for sort, x in (("velocity", self.qd), ("acceleration", self.qdd), ("torque", self.tau)):
            for k in np.flatnonzero(np.isfinite(self.limits.of(sort))):
                if sort == "torque" and k not in self.driven:
                    continue
                limit, most = float(self.limits.of(sort)[k]), float(np.abs(x[:, k]).max())
                name = f"{sort} of {axis_labels(m, 1)[k]}"
                rows.append((name, limit, unit_of(m, sort, int(k)), most / limit))
        passes = ", ".join(f"{x.intervals} intervals: error {x.error:.2g}" for x in self.meshes)
        shown: list[str | Shown] = [
            f"{m.name}: least {self.minimizes} {self.cost:.7g} in {self.duration:.6g} s; {passes}"
        ]
        if self.contacts:
            heads = ("phase", "contact", "from [s]", "to [s]", "largest force [N]", "use of friction", "impulse [N s]")
            shown.append(Shown(heads, tuple(row for x in self.contacts for row in x.rows())))
        return [*shown, Shown(("limit of", "value", "", "largest use"), tuple(rows))] if rows else shown

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw positions and torques over time; write the picture to `path`, or open it."""
        return picture("plan_plot")(self, path)


def _steps(x: Numbers) -> Numbers:
    """Return differences of neighboring rows."""
    return np.diff(x, axis=0)


def plan(
    arm: System,
    start: ArrayLike | Mapping[str, object],
    goal: ArrayLike | Mapping[str, object],
    *,
    duration: float | Sequence[float] | None = None,
    minimize: str | None = None,
    limits: Mapping[str, object] | None = None,
    actuated: str | Iterable[str] | None = None,
    guess: Plan | Trajectory | None = None,
    intervals: int = 25,
    tolerance: float = 1e-8,
    max_intervals: int = 500,
    forces: bool = True,
    parameters: Named | None = None,
    form: str = "sx",
    phases: Sequence[Phase] | None = None,
) -> Plan:
    """Return the motion from start to goal of least "time", "energy" or "effort", by direct collocation.

    States are positions at rest [nq], pairs (q, qd), or positions by joint, {"hip": 0.3}; joints that a goal leaves out
    are free there. The `duration` [s] is a number, or a range (least, most); without it, it is free. `minimize` is by
    default "effort", the integral of the squared torques, for a given duration, else "time"; "energy" is the work that
    drives do, none of which is recovered. `limits` has numbers by sort: "velocity", "acceleration" and "torque", as in
    time_optimal, and "position", ranges by joint. Those not given are the mechanism's own. `actuated` joints have
    drives: by default all, and in a closed mechanism they must be given. `guess` is a Plan or a run near the solution.
    The mesh starts with `intervals` and is refined to a `tolerance` of the states. The forces of the mechanism act
    unless `forces` is False. The `form` is that of arm.casadi: "sx", or "native" for compiled derivatives. `phases`
    (kt.Phase) name the contacts that hold, one phase after the other; `duration` is then that of all of them.
    """
    optional("casadi", "Optimal plans", "optimal")
    task = read_task(arm, start, goal, duration, minimize, limits, actuated, forces, parameters, form)
    mesh = np.linspace(0.0, 1.0, whole(intervals, argument("intervals", "plan"), least=4) + 1)
    goal_error = positive(tolerance, argument("tolerance", "plan"))
    most = whole(max_intervals, argument("max_intervals", "plan"), least=intervals)
    if phases is not None:
        found, contacts, passes = solve_phases(task, phases, guess, mesh, goal_error, most)
        cost = sum(x.duration for x in found) if task.cost == "time" else passes[-1][2]
        meshes = tuple(Mesh(*x) for x in passes)
        return Plan(task.system, task.cost, task.driven, task.limits, found, cost, meshes[-1].error, meshes, contacts)
    margins, passes = np.zeros((4, task.system.nv)), []
    points = on_mesh(given_motion(task, guess), mesh) if guess is not None else straight_motion(task, mesh)
    if task.cost == "energy" and guess is None:  # work has kinks; the motion of least effort is near and smooth
        first = solve(replace(task, cost="effort", duration=(points.duration,) * 2), points, margins, warm=False)
        points = first.points if first.success else points
    for k in range(PASSES):
        found = solve(task, points, margins, warm=k > 0 or guess is not None)
        if not found.success and k > 0:
            found = solve(task, points, margins, warm=False)
        if not found.success:
            raise _unsolved(task, found)
        points = found.points
        states, rates = replayed(task.accelerations, points)
        wrong = errors(points, states)
        passes.append(Mesh(len(wrong), float(wrong.max()), found.cost, found.iterations))
        beyond = beyond_limits(task, states, rates)
        fine = wrong.max() <= goal_error
        if fine and not beyond.any():
            return _plan(task, points, passes)
        margins = margins + 1.02 * beyond if fine else margins
        if not fine:
            points = on_mesh(points, refined(points, wrong, goal_error, most))
    raise InputError(
        f"plan: after {PASSES} meshes the error is {passes[-1].error:.3g} with {passes[-1].intervals} intervals; give "
        "a larger tolerance, or more intervals at first"
    )


def _plan(task: Task, points: Points, passes: list[Mesh]) -> Plan:
    """Return the result, with the cost as it is named."""
    if task.system.closures:  # accelerations keep loops closed to the error of the mesh; these are closed to rounding
        q, v, a = nearest_motion(task.system, points.q, points.v, points.a)
        points = replace(points, q=q, v=v, a=a)
    cost = points.duration if task.cost == "time" else passes[-1].cost
    return Plan(task.system, task.cost, task.driven, task.limits, (points,), cost, passes[-1].error, tuple(passes))


def _unsolved(task: Task, found: Solution) -> InputError:
    """Return the error of a solver that found no motion, with what is violated and the limits that are reached."""
    points, limits = found.points, task.limits
    reached = []
    with np.errstate(invalid="ignore"):
        for sort, x, k_of in (
            ("torque", points.u, task.driven),
            ("velocity", points.v, range(task.system.nv)),
        ):
            share = (np.abs(x) >= 0.999 * limits.of(sort)[list(k_of)]).mean(axis=0)
            reached += [
                f"the {sort} of {task.labels[k]!r} in {100.0 * y:.0f} % of the time"
                for k, y in zip(k_of, share, strict=True)
                if y > 0.3
            ]
    low, high = task.duration
    times = f"in {low:g} s" if low == high else f"in {low:.3g} to {high:.3g} s"
    at = f"; limits are reached of {', '.join(reached)}" if reached else ""
    return InputError(
        f"plan: no motion of {task.system.mechanism.name!r} from start to goal {times} was found within the limits "
        f"({found.status.replace('_', ' ').lower()}): the equations of {found.violated}{at}; give more time, larger "
        "limits, or a guess nearer to a motion"
    )
