"""Plans in phases with contacts: points that are held on the ground in one phase, and free in the next one.

In a phase, the points p of its contacts do not move, and their forces f act along the columns of their Jacobian J:

    ID(q, v, a) = u + J^T f,    J a + dJ/dt v = 0,    f in the friction cones,

and all other contacts stay above the ground. Where a contact begins, an impulse P stops the points of the new phase,

    M (v+ - v-) = J^T P,    J v+ = 0,    P in the friction cones,

so that both the forces and the impulse are those of Coulomb's law without restitution, as `simulate` has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._support.checks import numbers
from .._support.optional import casadi
from ..algebra.scalars import Numbers
from ..analysis.joint_entries import as_list
from ..errors import InputError, brief, unknown_name
from ..model.parts import GROUND
from .collocation import (
    OPTIONS,
    SMOOTH,
    Points,
    Task,
    beyond_limits,
    bounds_of,
    defects,
    errors,
    every_torque,
    integral,
    on_mesh,
    points_of,
    refined,
    replayed,
    scales_of,
    with_middles,
)

PASSES = 12
"""The most meshes that are tried."""
USUAL, LEAST, MOST = 0.4, 0.02, 10.0
"""The duration of a phase in the first guess, and the range of those that are free [s]."""
ON_GROUND = 1e-6
"""The largest height [m] and speed [m/s] at which a contact of the first phase holds at the start."""


@dataclass(frozen=True)
class Phase:
    """A part of a planned motion: the contacts, by name, whose points are held; the others are free.

    The `duration` [s] is a number, or a range (least, most); without it, it is free.
    """

    contacts: str | Sequence[str] = ()
    duration: float | Sequence[float] | None = None


@dataclass(frozen=True)
class PhaseContacts:
    """What holds in a phase from `start` to `end` [s]: forces [2 N + 1, k, 3] of `contacts`, and impulses [k, 3].

    Forces are at all points of the phase, normal and two tangents, in the axes of the ground's surface: z, x, y.
    Impulses [N s] are those at the start of the phase.
    """

    start: float
    end: float
    contacts: tuple[str, ...]
    friction: tuple[float, ...]
    forces: Numbers
    impulses: Numbers

    @property
    def use(self) -> Numbers:
        """The largest tangential force of each contact relative to what friction allows [k]; 0 without friction."""
        tangential = np.linalg.norm(self.forces[..., 1:], axis=-1)
        allowed = np.array(self.friction) * self.forces[..., 0]
        return np.where(allowed > 0.0, tangential / np.maximum(allowed, 1e-300), 0.0).max(axis=0, initial=0.0)

    def rows(self) -> list[tuple]:
        """Return the rows of a table."""
        if not self.contacts:
            return [("free", "", self.start, self.end, "", "", "")]
        largest = np.linalg.norm(self.forces, axis=-1).max(axis=0)
        return [
            ("held", name, self.start, self.end, float(largest[k]), float(self.use[k]),
             float(np.linalg.norm(self.impulses[k])))
            for k, name in enumerate(self.contacts)
        ]  # fmt: skip


@dataclass(frozen=True)
class Foot:
    """A contact: its point in the axes (z, x, y) of the ground's surface as a function of q.

    `ways` are the axes that the mechanism can move the point along: a planar mechanism has no second tangent.
    """

    name: str
    friction: float
    point: Any
    ways: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """A phase of the task: its bounds and cost as a `task`, the feet that are held, and those that are new."""

    task: Task
    feet: tuple[Foot, ...]
    free: tuple[Foot, ...]
    new: tuple[Foot, ...]

    @property
    def count(self) -> int:
        """The number of contact forces."""
        return sum(len(f.ways) for f in self.feet)


def solve_phases(
    task: Task, phases: Sequence[Phase], guess: object, mesh: Numbers, tolerance: float, most: int
) -> tuple[tuple[Points, ...], tuple[PhaseContacts, ...], list[tuple[int, float, float, int]]]:
    """Return the motion of each phase, its contacts, and the passes: intervals, error, cost, iterations."""
    stages = _stages(task, phases)
    parts = _first(task, stages, guess, mesh)
    loads = [np.tile(_support(task, s), (2 * len(p.mesh) - 1, 1)) for s, p in zip(stages, parts, strict=True)]
    margins, passes = np.zeros((4, task.system.nv)), []
    rates = [_accelerations(s) for s in stages]
    for k in range(PASSES):
        found = _solve(task, stages, parts, loads, margins, warm=k > 0)
        if not found.success and k > 0:
            found = _solve(task, stages, parts, loads, margins, warm=False)
        if not found.success:
            raise InputError(
                f"plan: no motion of {task.system.mechanism.name!r} through {len(stages)} phases was found within the "
                f"limits ({found.status}); the equations of {found.violated}; give other durations of phases, larger "
                "limits or friction, or a start and a goal that the phases can reach"
            )
        parts, loads = list(found.parts), list(found.loads)
        replays = [replayed(f, p) for f, p in zip(rates, parts, strict=True)]
        wrong = [errors(p, x) for p, (x, _) in zip(parts, replays, strict=True)]
        worst = max(float(x.max()) for x in wrong)
        passes.append((sum(len(x) for x in wrong), worst, found.cost, found.iterations))
        beyond = np.max([beyond_limits(task, *x) for x in replays], axis=0)
        fine = worst <= tolerance
        if fine and not beyond.any():
            return found.parts, _contacts(stages, found), passes
        if fine:
            margins = margins + 1.02 * beyond
            continue
        for n, (part, x) in enumerate(zip(parts, wrong, strict=True)):
            finer = refined(part, x, tolerance, most)
            old, new = with_middles(part.mesh), with_middles(finer)
            loads[n] = np.stack([np.interp(new, old, y) for y in loads[n].T], axis=-1) if loads[n].size else np.zeros(
                (len(new), 0))  # fmt: skip
            parts[n] = on_mesh(part, finer)
    raise InputError(
        f"plan: after {PASSES} meshes the error is {passes[-1][1]:.3g} with {passes[-1][0]} intervals; give a larger "
        "tolerance, or more intervals at first"
    )


# --- Phases and contacts, checked


def _stages(task: Task, phases: Sequence[Phase]) -> list[Stage]:
    """Return the phases with their contacts and bounds."""
    m, n = task.system.mechanism, task.system.nv
    if task.system.closures:
        raise InputError(f"plan: {m.name!r} has loops, and phases are those of trees; leave phases out")
    if task.form != "sx":
        raise InputError(f"plan: phases take form='sx', not {task.form!r}")
    if task.cost == "energy":
        raise InputError("plan: phases take minimize='effort' or 'time', not 'energy'")
    if isinstance(phases, Phase) or not phases or not all(isinstance(x, Phase) for x in phases):
        raise InputError(
            f'plan: phases are {brief(phases)}; give a list such as [kt.Phase("foot"), kt.Phase()]', path=("phases",)
        )
    names = [c.name for c in m.contacts]
    feet = {c.name: _foot(task, c) for c in m.contacts}
    out, before = [], set[str]()
    for k, phase in enumerate(phases):
        held = as_list(phase.contacts)
        for name in held:
            if name not in names:
                raise unknown_name("contact", str(name), names)
        free = np.full(2 * n, math.nan)
        own = replace(
            task, start=task.start if k == 0 else free, goal=task.goal if k == len(phases) - 1 else free,
            duration=_range(phase.duration, k),
        )  # fmt: skip
        new = tuple(feet[x] for x in held if x not in before) if k else ()
        out.append(Stage(own, tuple(feet[x] for x in held), tuple(f for x, f in feet.items() if x not in held), new))
        before = set(held)
    _require_standing(task, out[0])
    last = out[-1]
    fixed = int(np.isfinite(task.goal[:n]).sum())
    if last.count and fixed > n - last.count:
        raise InputError(
            f"plan: the goal gives {fixed} positions, and the contacts of the last phase leave {n - last.count} free; "
            "give as many by joint, such as {'height': 0.5}",
            path=("goal",),
        )
    return out


def _range(given: object, k: int) -> tuple[float, float]:
    """Return the range of the duration of a phase."""
    if given is None:
        return LEAST, MOST
    values = list(numbers(given, f"the duration of phase {k + 1} of plan"))
    if len(values) > 2 or min(values) <= 0.0 or values[-1] < values[0]:
        raise InputError(
            f"the duration of phase {k + 1} of plan is {brief(given)}; give a number above zero, or a range "
            "(least, most)",
            path=("phases",),
        )
    return values[0], values[-1]


def _foot(task: Task, contact: Any) -> Foot:
    """Return the point of a contact as a function of q."""
    ca, system = casadi(), task.system
    surface = contact.surface
    if contact.shape != "point" or surface.kind != "plane" or surface.body != GROUND:
        raise InputError(
            f"plan: the contact {contact.name!r} is a {contact.shape} on {surface.kind} of {surface.body!r}; phases "
            "take points on planes of the ground"
        )
    q = ca.SX.sym("q", system.nv)
    T = system.casadi("pose", frame=contact.body)(q)
    at = T[:3, :3] @ ca.DM(list(map(float, contact.placement.translation))) + T[:3, 3]
    axes = np.array(surface.placement.rotation, dtype=float)
    away = at - ca.DM(list(map(float, surface.placement.translation)))
    own = ca.simplify(ca.DM(axes.T[[2, 0, 1]]) @ away)
    J = ca.jacobian(own, q)
    rng = np.random.default_rng(0)
    moved = ca.Function("moved", [q], [J])
    sizes = np.max([np.abs(np.array(moved(rng.normal(size=system.nv)))).max(axis=1) for _ in range(3)], axis=0)
    ways = tuple(k for k in range(3) if sizes[k] > 1e-9)
    if 0 not in ways:
        raise InputError(f"plan: no joint lifts the contact {contact.name!r} from its plane; leave it out of phases")
    return Foot(contact.name, float(contact.friction), ca.Function("point", [q], [own]), ways)


def _require_standing(task: Task, first: Stage) -> None:
    """Refuse a start at which a contact of the first phase does not hold."""
    n = task.system.nv
    q, v = task.start[:n], task.start[n:]
    for foot in first.feet:
        height = float(np.array(foot.point(q)).ravel()[0])
        speed = float(np.abs(np.array(_jacobian([foot])(q)) @ v).max())
        if abs(height) > ON_GROUND or speed > ON_GROUND:
            raise InputError(
                f"plan: the contact {foot.name!r} of the first phase is {height:.3g} m above the ground at the start, "
                f"and moves at {speed:.3g} m/s; give a start at which it rests on the ground",
                path=("start",),
            )


# --- Equations


def _points_of(feet: Sequence[Foot], q: Any) -> Any:
    """Return the coordinates of feet that a mechanism can move."""
    return casadi().vertcat(*(f.point(q)[list(f.ways)] for f in feet))


def _jacobian(feet: Sequence[Foot]) -> Any:
    """Return the function of q whose values are the Jacobian of feet."""
    ca = casadi()
    q = ca.SX.sym("q", feet[0].point.size1_in(0))
    return ca.Function("jacobian", [q], [ca.jacobian(_points_of(feet, q), q)])


def _equations(stage: Stage) -> Any:
    """Return the function of (q, v, a, u, f) that is zero where a motion obeys the equations of its phase."""
    ca, task = casadi(), stage.task
    n, m = task.system.nv, len(task.driven)
    q, v, a = (ca.SX.sym(x, n) for x in "qva")
    u, f = ca.SX.sym("u", m), ca.SX.sym("f", stage.count)
    tau = ca.DM(task.spread(np.eye(m)).T) @ u
    left = _inverse(task)(q, v, a) - tau
    if not stage.feet:
        return ca.Function("equations", [q, v, a, u, f], [left])
    J = ca.jacobian(_points_of(stage.feet, q), q)
    moving = J @ a + ca.jtimes(J @ v, q, v)
    return ca.Function("equations", [q, v, a, u, f], [ca.vertcat(left - J.T @ f, moving)])


def _inverse(task: Task) -> Any:
    more: dict[str, Any] = {} if task.forces or not task.system.mechanism.has_forces else {"forces": False}
    return task.system.casadi("inverse_dynamics", **more)


def _impact(stage: Stage) -> Any:
    """Return the function of (q, v-, v+, P) that is zero where an impulse stops the feet of a phase."""
    ca, n = casadi(), stage.task.system.nv
    q, before, after = (ca.SX.sym(x, n) for x in ("q", "b", "a"))
    P, zero = ca.SX.sym("P", stage.count), ca.DM.zeros(n)
    inverse = _inverse(stage.task)
    J = ca.jacobian(_points_of(stage.feet, q), q)
    momentum = inverse(q, zero, after - before) - inverse(q, zero, zero) - J.T @ P
    return ca.Function("impact", [q, before, after, P], [ca.vertcat(momentum, J @ after)])


def _accelerations(stage: Stage) -> Callable[[Numbers, Numbers, Numbers], Numbers]:
    """Return the accelerations of a phase as a function of (q, v, u), all [N, ...]."""
    if not stage.feet:
        return stage.task.accelerations
    ca, n = casadi(), stage.task.system.nv
    q, v, u = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("u", len(stage.task.driven))
    x = ca.SX.sym("x", n + stage.count)
    left = _equations(stage)(q, v, x[:n], u, x[n:])
    f = ca.Function("system", [q, v, u], [ca.jacobian(left, x), ca.substitute(left, x, ca.DM.zeros(x.shape))])

    def accelerations(q: Numbers, v: Numbers, u: Numbers) -> Numbers:
        count = len(q)
        A, b = (np.array(x) for x in f.map(count)(q.T, v.T, u.T))
        size = b.shape[0]
        A = A.reshape(size, count, size).transpose(1, 0, 2)
        return np.linalg.solve(A, -b.T[..., None])[:, :n, 0]

    return accelerations


def _cones(feet: Sequence[Foot], F: Any) -> Any:
    """Return what is not negative where forces F [count, points] are in the friction cones."""
    ca, rows, at = casadi(), [], 0
    for foot in feet:
        normal, tangents = F[at, :], [F[at + k, :] for k in range(1, len(foot.ways))]
        at += len(foot.ways)
        rows.append(normal)
        if len(tangents) == 1:
            rows += [foot.friction * normal - tangents[0], foot.friction * normal + tangents[0]]
        elif tangents:
            rows.append((foot.friction * normal) ** 2 - sum(x**2 for x in tangents))
    return ca.vertcat(*rows)


# --- The nonlinear program of all phases


@dataclass(frozen=True)
class _Found:
    """What the solver returned: motions, contact forces and impulses by phase, and what is violated most."""

    parts: tuple[Points, ...]
    loads: tuple[Numbers, ...]
    impulses: tuple[Numbers, ...]
    cost: float
    success: bool
    status: str
    iterations: int
    violated: str


def _solve(
    task: Task, stages: list[Stage], guess: Sequence[Points], loads: Sequence[Numbers], margins: Numbers, *, warm: bool
) -> _Found:
    """Return the solution on the meshes of a guess, with `margins` as in `solve` of one phase."""
    ca, n, m = casadi(), task.system.nv, len(task.driven)
    weight = _weight(task)
    x, first, low, high = [], [], [], []
    groups: list[tuple[str, Any, float]] = []  # what, its values, and the largest one: 0 or infinity
    ends, total, f = [], ca.MX(0.0), ca.MX(0.0)
    for number, (stage, own, force) in enumerate(zip(stages, guess, loads, strict=True)):
        N = len(own.mesh) - 1
        count = 2 * N + 1
        by_a, by_u = scales_of(stage.task, own)
        T, Q, V, scaled_a = ca.MX.sym("T"), *(ca.MX.sym(s, n, count) for s in "qva")
        scaled_u, scaled_f = ca.MX.sym("u", m, N + 1), ca.MX.sym("f", stage.count, count)
        A, U, F = ca.diag(ca.DM(by_a)) @ scaled_a, ca.diag(ca.DM(by_u)) @ scaled_u, weight * scaled_f
        h, every = T * ca.DM(np.diff(own.mesh)[None, :]), every_torque(U)
        phase = f"phase {number + 1}"
        groups += [(f"{what}s of {phase}", y, 0.0) for what, y in defects(Q, V, A, h)]
        groups.append((f"motion of {phase}", _equations(stage).map(count)(Q, V, A, every, F), 0.0))
        if stage.feet:
            groups.append((f"the friction cones of {phase}", _cones(stage.feet, scaled_f), math.inf))
        for foot in stage.free:
            last = number + 1 < len(stages) and foot in stages[number + 1].new
            inner = Q[:, 1 : count - 1 if last else count]
            heights = foot.point.map(inner.shape[1])(inner)[0, :]
            groups.append((f"the height of {foot.name!r} in {phase}", heights, math.inf))
        lower, upper = bounds_of(stage.task, margins, N, by_a, by_u)
        none = np.full(scaled_f.numel(), math.inf)
        low, high = [*low, lower, -none], [*high, upper, none]
        x += [ca.vec(y) for y in (T, Q, V, scaled_a, scaled_u, scaled_f)]
        first += [[own.duration], *(y.ravel() for y in (own.q, own.v, own.a / by_a, own.u / by_u, force / weight))]
        ends.append((Q, V))
        total = total + T
        f = f + (integral(every**2, h) if task.cost == "effort" else T + SMOOTH / n * integral(scaled_a**2, h))
    impulses = []
    for stage, (Q0, V0), (Q1, V1) in zip(stages[1:], ends, ends[1:], strict=False):
        groups.append(("positions between phases", Q1[:, 0] - Q0[:, -1], 0.0))
        P = ca.MX.sym("P", stage.count if stage.new else 0)
        impulses.append(P)
        x.append(P)
        first.append(np.zeros(P.numel()))
        low.append(np.full(P.numel(), -math.inf))
        high.append(np.full(P.numel(), math.inf))
        if not stage.new:
            groups.append(("velocities between phases", V1[:, 0] - V0[:, -1], 0.0))
            continue
        groups.append(("the impact", _impact(stage)(Q1[:, 0], V0[:, -1], V1[:, 0], weight * P), 0.0))
        groups.append(("the friction cones of the impact", _cones(stage.feet, P), math.inf))
        groups += [(f"the touch-down of {foot.name!r}", foot.point(Q1[:, 0])[0], 0.0) for foot in stage.new]
    groups.append(("the duration", ca.vertcat(total - task.duration[0], task.duration[1] - total), math.inf))
    g = ca.vertcat(*(ca.vec(y) for _, y, _ in groups))
    top = np.concatenate([np.full(y.numel(), most) for _, y, most in groups])
    options = OPTIONS | ({"ipopt.mu_init": 1e-4, "ipopt.bound_push": 1e-6, "ipopt.bound_frac": 1e-6} if warm else {})
    every_x = ca.vertcat(*x)
    solver = ca.nlpsol("plan", "ipopt", {"x": every_x, "f": f, "g": g}, options)
    found = solver(x0=np.concatenate(first), lbx=np.concatenate(low), ubx=np.concatenate(high), lbg=0.0, ubg=top)
    values, stats = found["x"].full().ravel(), solver.stats()
    parts, forces, at = [], [], 0
    for stage, own in zip(stages, guess, strict=True):
        count = 2 * len(own.mesh) - 1
        size = 1 + 3 * n * count + m * len(own.mesh)
        parts.append(points_of(stage.task, own, values[at : at + size]))
        at += size
        forces.append(weight * values[at : at + stage.count * count].reshape(count, stage.count))
        at += stage.count * count
    hits = [np.zeros(stages[0].count)]
    for stage, P in zip(stages[1:], impulses, strict=True):
        hits.append(weight * values[at : at + P.numel()] if P.numel() else np.zeros(stage.count))
        at += P.numel()
    return _Found(
        tuple(parts), tuple(forces), tuple(hits), float(found["f"]), bool(stats["success"]),
        str(stats["return_status"]).replace("_", " ").lower(), int(stats["iter_count"]),
        _most_violated(groups, found["g"].full().ravel()),
    )  # fmt: skip


def _most_violated(groups: list[tuple[str, Any, float]], g: Numbers) -> str:
    """Return the name of the equations that are violated most, and by how much."""
    worst, text, at = -1.0, "", 0
    for what, y, most in groups:
        part = g[at : at + y.numel()]
        at += y.numel()
        off = float((np.abs(part) if most == 0.0 else -part).max(initial=0.0))
        if not off <= worst:
            worst, text = off, f"{what} by {off:.3g}"
    return text


def _weight(task: Task) -> float:
    """Return the weight of the mechanism [N], the unit of its contact forces."""
    gravity = float(np.linalg.norm(np.array(task.system.mechanism.gravity, dtype=float))) or 1.0
    return gravity * sum(float(b.mass) for b in task.system.bodies) or 1.0  # type: ignore[arg-type]


def _support(task: Task, stage: Stage) -> Numbers:
    """Return the forces of the first guess: the weight in equal parts on all feet."""
    each = [[1.0, *(0.0 for _ in foot.ways[1:])] for foot in stage.feet]
    return _weight(task) / max(len(each), 1) * np.array([y for x in each for y in x])


def _first(task: Task, stages: list[Stage], guess: object, mesh: Numbers) -> list[Points]:
    """Return the first guess: a plan of as many phases, or from start to goal at constant velocity."""
    n, m = task.system.nv, len(task.driven)
    given = list[Points](getattr(guess, "parts", ()))
    if guess is not None:
        if len(given) != len(stages) or given[0].q.shape[1] != n or given[0].u.shape[1] != m:
            raise InputError(
                f"guess of plan is {brief(guess)}; with phases, give a Plan of {len(stages)} phases", path=("guess",)
            )
        return [replace(p, duration=float(np.clip(p.duration, *s.task.duration)))
                for p, s in zip(given, stages, strict=True)]  # fmt: skip
    times = [float(np.clip(USUAL, *s.task.duration)) for s in stages]
    shares = np.cumsum([0.0, *times]) / sum(times)
    first = task.start[:n]
    way = np.where(np.isfinite(task.goal[:n]), task.goal[:n], first) - first
    out = []
    for a, b, T in zip(shares, shares[1:], times, strict=False):
        q = first + np.multiply.outer(a + (b - a) * with_middles(mesh), way)
        v = np.tile(way / sum(times), (len(q), 1))
        out.append(Points(mesh, T, q, v, np.zeros_like(q), np.zeros((len(mesh), m))))
    return out


def _contacts(stages: list[Stage], found: _Found) -> tuple[PhaseContacts, ...]:
    """Return contacts of each phase with their forces and impulses in all three axes."""
    out, start = [], 0.0
    for stage, part, forces, impulse in zip(stages, found.parts, found.loads, found.impulses, strict=True):
        spread = partial(_in_axes, stage.feet)
        names = tuple(f.name for f in stage.feet)
        friction = tuple(f.friction for f in stage.feet)
        end = start + part.duration
        out.append(PhaseContacts(start, end, names, friction, spread(forces), spread(impulse[None])[0]))
        start = end
    return tuple(out)


def _in_axes(feet: Sequence[Foot], forces: Numbers) -> Numbers:
    """Return forces [n, k, 3] from those along the ways of feet [n, count]."""
    out, at = np.zeros((len(forces), len(feet), 3)), 0
    for k, foot in enumerate(feet):
        for way in foot.ways:
            out[:, k, way] = forces[:, at]
            at += 1
    return out
