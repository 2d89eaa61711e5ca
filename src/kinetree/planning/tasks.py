"""What a plan is asked, checked: states, durations and limits of its task; and the first guess of the motion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from .._support.checks import numbers, real_array
from ..algebra.scalars import Numbers
from ..analysis.joint_entries import as_list
from ..analysis.loops.actuation import dofs
from ..errors import AssemblyError, InputError, argument, brief, unknown_name
from ..model.axes import axis_labels, entries
from ..model.mechanism import Named, inputs_of
from ..simulation.acting.joint_forces import require_flat
from ..system import System
from .collocation import COSTS, Points, Task, with_middles
from .limits import MotionLimits, read_limits, unit_of

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory
    from .plan import Plan

SORTS = ("position", "velocity", "acceleration", "torque")
"""The limits of a plan."""
CLOSED = 1e-6
"""The largest distance of start and goal from positions and velocities with closed loops."""


def read_task(
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
    first, last = read_state(arm, start, "start"), read_state(arm, goal, "goal")
    if np.isnan(first).any():
        k = int(np.argmax(np.isnan(first)))
        raise InputError(
            f"plan: the start leaves out {axis_labels(m, 1)[k % arm.nv]!r}; give the positions of all joints there"
        )
    if not np.isfinite(last).any():
        raise InputError("plan: the goal is free in all joints; give the position of one at least")
    for what, state in (("start", first), ("goal", last)):
        require_within(arm, bounds, state, what)
    if arm.closures:
        last = _closed(arm, first, last)
    return Task(arm, driven, first, last, read_duration(duration), minimize, bounds, forces, form)


def read_duration(given: object) -> tuple[float, float]:
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


def read_state(arm: System, given: object, what: str) -> Numbers:
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


def require_within(arm: System, limits: MotionLimits, state: Numbers, what: str) -> None:
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


def straight_motion(task: Task, mesh: Numbers) -> Points:
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


def given_motion(task: Task, guess: Plan | Trajectory) -> Points:
    """Return a Plan, or a run, as a guess."""
    planned: Points | None = getattr(guess, "points", None)
    if planned is not None:
        points = planned
    elif all(hasattr(guess, name) for name in ("t", "q", "qd")) and np.ndim(guess.q) == 2:
        points = _from_run(task, cast("Trajectory", guess))
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
