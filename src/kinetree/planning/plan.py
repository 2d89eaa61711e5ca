"""Optimal motions between two states, of least time, energy or effort, within limits: `kt.plan`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import numbers, positive, real_array, whole
from .._support.optional import optional
from .._support.pictures import picture
from .._support.tables import Displayed
from .._support.tables import Table as Shown
from ..algebra.arrays import Numbers
from ..algebra.scalars import Scalar
from ..analysis.joint_entries import as_list
from ..analysis.loops.actuation import dofs
from ..analysis.loops.driven_motion import nearest_motion
from ..errors import AssemblyError, InputError, argument, brief, unknown_name
from ..model.axes import axis_labels, entries
from ..model.mechanism import Named, inputs_of
from ..simulation.acting.instants import Instant
from ..simulation.acting.joint_forces import require_flat
from ..simulation.acting.references.motions import Lists
from ..simulation.acting.references.table import Table, piecewise
from ..system import System
from .collocation import (
    COSTS,
    Points,
    Solution,
    Task,
    errors,
    on_mesh,
    refined,
    replayed,
    solve,
    with_middles,
)
from .limits import MotionLimits, read_limits, unit_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..results.trajectory import Trajectory

SORTS = ("position", "velocity", "acceleration", "torque")
"""The limits of a plan."""
KEPT = 1e-7
"""By how much a replay may exceed limits of motions, relative to them; larger excesses are taken off the limits."""
CLOSED = 1e-6
"""The largest distance of start and goal from positions and velocities with closed loops."""
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
    points: Points
    cost: float
    error: float
    meshes: tuple[Mesh, ...]

    @property
    def duration(self) -> float:
        """The time of the whole motion [s]."""
        return self.points.duration

    @property
    def t(self) -> Numbers:
        """The times of all points [s]."""
        return self.points.times

    @property
    def q(self) -> Numbers:
        """The positions."""
        return self.points.q

    @property
    def qd(self) -> Numbers:
        """The velocities."""
        return self.points.v

    @property
    def qdd(self) -> Numbers:
        """The accelerations."""
        return self.points.a

    @property
    def tau(self) -> Numbers:
        """The torques of all degrees of freedom, zero where there is no drive."""
        out = np.zeros_like(self.q)
        out[:, list(self.driven)] = with_middles(self.points.u)
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
        q, qd, qdd = (x[::2, places] for x in (self.q, self.qd, self.qdd))
        return Table(self.t[::2], q, rates=qd, accelerations=qdd)

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
        t, u = self.t[::2], self.points.u
        slopes = np.diff(u, axis=0) / np.diff(t)[:, None]
        values, _, _ = piecewise(t, np.stack([u[:-1], slopes, np.zeros_like(slopes)]), now.t)
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
        return [*shown, Shown(("limit of", "value", "", "largest use"), tuple(rows))] if rows else shown

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw positions and torques over time; write the picture to `path`, or open it."""
        return picture("plan_plot")(self, path)


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
) -> Plan:
    """Return the motion from start to goal of least "time", "energy" or "effort", by direct collocation.

    States are positions at rest [nq], pairs (q, qd), or positions by joint, {"hip": 0.3}; joints that a goal leaves out
    are free there. The `duration` [s] is a number, or a range (least, most); without it, it is free. `minimize` is by
    default "effort", the integral of the squared torques, for a given duration, else "time"; "energy" is the work that
    drives do, none of which is recovered. `limits` has numbers by sort: "velocity", "acceleration" and "torque", as in
    time_optimal, and "position", ranges by joint. Those not given are the mechanism's own. `actuated` joints have
    drives: by default all, and in a closed mechanism they must be given. `guess` is a Plan or a run near the solution.
    The mesh starts with `intervals` and is refined to a `tolerance` of the states. The forces of the mechanism act
    unless `forces` is False. The `form` is that of arm.casadi: "sx", or "native" for compiled derivatives.
    """
    optional("casadi", "Optimal plans", "optimal")
    task = _task(arm, start, goal, duration, minimize, limits, actuated, forces, parameters, form)
    mesh = np.linspace(0.0, 1.0, whole(intervals, argument("intervals", "plan"), least=4) + 1)
    goal_error = positive(tolerance, argument("tolerance", "plan"))
    most = whole(max_intervals, argument("max_intervals", "plan"), least=intervals)
    margins, passes = np.zeros((4, task.system.nv)), []
    points = on_mesh(_given(task, guess), mesh) if guess is not None else _straight(task, mesh)
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
        states, rates = replayed(task, points)
        wrong = errors(points, states)
        passes.append(Mesh(len(wrong), float(wrong.max()), found.cost, found.iterations))
        beyond = _beyond(task, states, rates)
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
    return Plan(task.system, task.cost, task.driven, task.limits, points, cost, passes[-1].error, tuple(passes))


def _beyond(task: Task, states: Numbers, rates: Numbers) -> Numbers:
    """Return by how much replayed motions exceed limits: below and above of positions, velocities, accelerations."""
    n, limits = task.system.nv, task.limits
    q, v = states[..., :n].reshape(-1, n), states[..., n:].reshape(-1, n)
    rooms = (
        (limits.position[0] - q.min(axis=0), limits.position[0]),
        (q.max(axis=0) - limits.position[1], limits.position[1]),
        (np.abs(v).max(axis=0) - limits.velocity, limits.velocity),
        (np.abs(rates).reshape(-1, n).max(axis=0) - limits.acceleration, limits.acceleration),
    )
    return np.array([np.where(x > KEPT * np.maximum(np.abs(limit), 1e-3), x, 0.0) for x, limit in rooms])


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


# --- The task and its first guess ---


def _task(
    arm: object,
    start: object,
    goal: object,
    duration: object,
    minimize: object,
    limits: object,
    actuated: str | Iterable[str] | None,
    forces: bool,
    parameters: Named | None,
    form: str,
) -> Task:
    """Return a checked task."""
    if not isinstance(arm, System):
        raise InputError(f"plan takes a System first, not {brief(arm)}; load one with kt.load(name or file)")
    values = inputs_of(arm.mechanism, parameters)
    if values is not None:
        if np.ndim(values) > 1:
            raise InputError("plan takes one set of parameters; plan the motions of several one by one")
        arm = arm.fixed(values)
    m = arm.mechanism
    for joint in m.joints:
        require_flat(joint, "plan")
    if m.rolls:
        raise InputError(f"plan: {m.name!r} has equations of velocities alone, such as rolling; it takes none")
    if minimize is None:
        minimize = "time" if duration is None or isinstance(duration, Sequence) else "effort"
    if minimize not in COSTS:
        raise unknown_name("cost of plan", str(minimize), COSTS)
    if arm.closures and actuated is None:
        raise InputError(
            f"plan on {m.name!r}, which has loops: name the joints with a drive, actuated=[...]", path=("actuated",)
        )
    driven = tuple(range(arm.nv)) if actuated is None else tuple(dofs(m, as_list(actuated)))
    bounds = read_limits(m, limits, driven, SORTS, "plan")
    if minimize == "time" and not (
        np.isfinite(bounds.torque[list(driven)]).all() or np.isfinite(bounds.acceleration[list(driven)]).all()
    ):
        open_ = [axis_labels(m, 1)[k] for k in driven if not np.isfinite(bounds.torque[k])]
        raise InputError(
            f"plan of least time: nothing limits the torque of {', '.join(map(repr, open_))}; give limits, such as "
            '{"torque": 40.0}',
            path=("limits",),
        )
    first, last = _state(arm, start, "start"), _state(arm, goal, "goal")
    if np.isnan(first).any():
        k = int(np.argmax(np.isnan(first)))
        raise InputError(
            f"plan: the start leaves out {axis_labels(m, 1)[k % arm.nv]!r}; give the positions of all joints there"
        )
    if not np.isfinite(last).any():
        raise InputError("plan: the goal is free in all joints; give the position of one at least")
    for what, state in (("start", first), ("goal", last)):
        _require_within(arm, bounds, state, what)
    if arm.closures:
        last = _closed(arm, first, last)
    return Task(arm, driven, first, last, _duration(duration), minimize, bounds, forces, form)


def _duration(given: object) -> tuple[float, float]:
    """Return the least and the largest duration."""
    if given is None:
        return 1e-3, 1e3
    values = list(numbers(given, argument("duration", "plan")))
    if len(values) > 2 or min(values) <= 0.0 or values[-1] < values[0]:
        raise InputError(
            f"duration of plan is {brief(given)}; give a number above zero, or a range (least, most)",
            path=("duration",),
        )
    return values[0], values[-1]


def _state(arm: System, given: object, what: str) -> Numbers:
    """Return a state [q; qd], with NaN where it is free."""
    n, m = arm.nv, arm.mechanism
    if isinstance(given, Mapping):
        out = np.full(2 * n, math.nan)
        for name, value in given.items():
            own = entries(m, name, 1)
            pair = value if isinstance(value, tuple) and len(value) == 2 else (value, 0.0)
            for offset, x in zip((0, n), pair, strict=True):
                found = numbers(x, f"{what} of plan, {name!r}")
                if len(found) not in (1, len(own)):
                    raise InputError(f"{what} of plan, {name!r}, has {len(found)} numbers; give {len(own)}")
                out[[offset + k for k in own]] = found
        return out
    pair = given if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) == 1 else (given, np.zeros(n))
    parts = [real_array(x, f"{what} of plan") for x in pair]
    for x, name in zip(parts, ("q", "qd"), strict=True):
        if x.shape != (n,):
            raise InputError(
                f"plan: {name} of the {what} has shape {x.shape}; expected [{n}], a pair (q, qd), or positions by joint"
            )
        if not np.isfinite(x).all():
            raise InputError(f"plan: {name} of the {what} has entries that are not finite: {brief(x.tolist())}")
    return np.concatenate(parts)


def _require_within(arm: System, limits: MotionLimits, state: Numbers, what: str) -> None:
    """Refuse a state outside the limits of positions and velocities."""
    n, labels = arm.nv, axis_labels(arm.mechanism, 1)
    for k in range(n):
        q, v = state[k], state[n + k]
        low, high = limits.position[:, k]
        slack = 1e-9 * max(1.0, abs(q))
        unit = unit_of(arm.mechanism, "position", k)
        if q < low - slack or q > high + slack:
            raise InputError(
                f"plan: the {what} has {labels[k]!r} at {q:.6g} {unit}, outside its limits {low:.6g} to {high:.6g} "
                f"{unit}; give another {what}, or other limits of position",
                path=(what,),
            )
        if abs(v) > limits.velocity[k] * (1.0 + 1e-9):
            raise InputError(
                f"plan: the {what} has {labels[k]!r} at a velocity of {v:.6g} {unit}/s, above its limit of "
                f"{limits.velocity[k]:.6g} {unit}/s; give another {what}, or another limit",
                path=(what,),
            )


def _closed(arm: System, first: Numbers, last: Numbers) -> Numbers:
    """Return the goal of a closed mechanism: the independent degrees of freedom, which determine the others."""
    n, m = arm.nv, arm.mechanism
    away = float(np.abs(arm.assemble(first[:n]) - first[:n]).max())
    if away > CLOSED:
        raise InputError(
            f"plan: the loops of {m.name!r} are open at the start, by {away:.3g} from the nearest closed position; "
            "give a closed position, such as arm.assemble(q)",
            path=("start",),
        )
    at = arm.independent(first[:n]).at
    speeds = {axis_labels(m, 1)[k]: first[n + k] for k in at}
    if np.abs(arm.consistent_speeds(first[:n], speeds) - first[n:]).max() > CLOSED * max(1.0, np.abs(first[n:]).max()):
        raise InputError(
            f"plan: the velocities of the start open the loops of {m.name!r}; give those of arm.consistent_speeds",
            path=("start",),
        )
    known = np.isfinite(last[:n])
    if known.all():
        if np.abs(arm.assemble(last[:n]) - last[:n]).max() > CLOSED:
            raise InputError(
                f"plan: the loops of {m.name!r} are open at the goal; give a closed position, arm.assemble(q), or the "
                "positions of independent joints by name",
                path=("goal",),
            )
        at = list(arm.independent(last[:n]).at)
        out = np.full(2 * n, math.nan)
        out[at], out[[n + k for k in at]] = last[at], last[[n + k for k in at]]
        return out
    return last


def _straight(task: Task, mesh: Numbers) -> Points:
    """Return the first guess: from start to goal at constant velocity, with the torques that hold the mechanism."""
    n, system, shares = task.system.nv, task.system, with_middles(mesh)
    first = task.start[:n]
    last = np.where(np.isfinite(task.goal[:n]), task.goal[:n], first)
    q = first + np.multiply.outer(shares, last - first)
    if system.closures:
        fixed = [axis_labels(system.mechanism, 1)[k] for k in np.flatnonzero(np.isfinite(task.goal[:n]))]
        try:
            q = system.assemble(q, hold=fixed, follow=True)
        except AssemblyError as error:
            raise InputError(f"plan: the loops do not close on the straight way from start to goal: {error}") from None
    T = _first_duration(task, first, last)
    v = np.gradient(q, shares * T, axis=0)
    held = np.zeros((len(mesh), n)) if system.closures else system.gravity_torque(q[::2])
    most = task.limits.torque[list(task.driven)]
    u = np.clip(held[:, list(task.driven)], -0.9 * most, 0.9 * most)
    return Points(mesh, T, q, v, np.zeros_like(q), u)


def _first_duration(task: Task, first: Numbers, last: Numbers) -> float:
    """Return a duration of the guess: given, or some twice the time that inertias and limits take."""
    low, high = task.duration
    if low == high:
        return low
    n, limits = task.system.nv, task.limits
    inertia = np.diagonal(np.asarray(task.system.tree.inertia_matrix(first)))
    way = np.abs(last - first)
    rates = np.minimum(
        limits.acceleration, np.where(np.isin(np.arange(n), task.driven), limits.torque / inertia, np.inf)
    )
    with np.errstate(invalid="ignore"):
        times = np.maximum(2.0 * np.sqrt(way / rates), way / limits.velocity)
    T = 2.0 * float(np.nan_to_num(times).max(initial=0.0)) or 1.0
    return float(np.clip(T, low, high))


def _given(task: Task, guess: Plan | Trajectory) -> Points:
    """Return a Plan, or a run, as a guess."""
    if isinstance(guess, Plan):
        points = guess.points
    elif all(hasattr(guess, name) for name in ("t", "q", "qd")) and np.ndim(guess.q) == 2:
        points = _from_run(task, guess)
    else:
        raise InputError(f"guess of plan is {brief(guess)}; give a Plan or a single run", path=("guess",))
    if points.q.shape[1] != task.system.nv:
        raise InputError(
            f"guess of plan has {points.q.shape[1]} coordinates; {task.system.mechanism.name!r} has {task.system.nv}",
            path=("guess",),
        )
    if points.u.shape[1] != len(task.driven):
        raise InputError(
            f"guess of plan has torques of {points.u.shape[1]} drives; expected {len(task.driven)}", path=("guess",)
        )
    return replace(points, duration=float(np.clip(points.duration, *task.duration)))


def _from_run(task: Task, run: Trajectory) -> Points:
    """Return a run as points on its own times."""
    t = np.asarray(run.t)
    shares = (t - t[0]) / (t[-1] - t[0])
    middle = with_middles(shares)
    each = [np.stack([np.interp(middle, shares, x) for x in np.asarray(y).T], axis=-1) for y in (run.q, run.qd)]
    control = getattr(run, "control", None)
    tau = np.zeros((len(t), task.system.nv)) if control is None else np.nan_to_num(np.asarray(control, dtype=float))
    a = np.gradient(each[1], middle * (t[-1] - t[0]), axis=0)
    return Points(shares, float(t[-1] - t[0]), each[0], each[1], a, tau[:, list(task.driven)])
