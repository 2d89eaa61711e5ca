"""Optimal control by direct collocation: nonlinear programs of CasADi for IPOPT, by Hermite and Simpson's rule.

With states x = [q; v] at the ends 0 and 1 of an interval h and in its middle, and their rates f = [v; a],

    x_m = (x_0 + x_1) / 2 + h / 8 (f_0 - f_1),    x_1 = x_0 + h / 6 (f_0 + 4 f_m + f_1),             [Kelly2017] 4.1

where a tree has inverse dynamics ID(q, v, a) = u at all these points, and a closed mechanism a = FD(q, v, u), whose
accelerations keep the loops closed. Torques u are linear within each interval, so that limits at its ends hold in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.optional import casadi
from ..algebra.scalars import Numbers
from ..errors import InputError
from ..model.axes import axis_labels
from ..system import System
from .limits import MotionLimits

COSTS = ("time", "energy", "effort")
"""What a plan minimizes: the duration, the work that drives do (none is recovered), the squares of the torques."""
SMOOTH = 2e-4
"""The weight of accelerations, relative to those of the guess, in plans of least time: it chooses among motions of
about the same time, such as those of joints that could wait."""
SUBSTEPS = 8
"""The Runge-Kutta steps per interval by which the error of a plan is estimated."""
KEPT = 1e-7
"""By how much a replay may exceed limits of motions, relative to them; larger excesses are taken off the limits."""
OPTIONS = {
    "ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "error_on_fail": False,
    "ipopt.tol": 1e-8, "ipopt.constr_viol_tol": 1e-10, "ipopt.max_iter": 1000, "ipopt.bound_relax_factor": 0.0,
}  # fmt: skip
"""The options of IPOPT; bounds are not relaxed, so that limits hold."""


@dataclass(frozen=True)
class Task:
    """A problem of optimal control. States [q; qd] of start and goal are NaN where they are free."""

    system: System
    driven: tuple[int, ...]
    start: Numbers
    goal: Numbers
    duration: tuple[float, float]
    cost: str
    limits: MotionLimits
    forces: bool
    form: str

    @property
    def labels(self) -> list[str]:
        """The names of the degrees of freedom."""
        return axis_labels(self.system.mechanism, 1)

    def spread(self, u: Numbers) -> Numbers:
        """Return torques of all degrees of freedom [..., nv] from those of the driven ones."""
        out = np.zeros((*u.shape[:-1], self.system.nv))
        out[..., list(self.driven)] = u
        return out

    def accelerations(self, q: Numbers, v: Numbers, u: Numbers) -> Numbers:
        """Return the accelerations of states under torques of the driven degrees of freedom."""
        more: dict[str, Any] = {} if self.forces or not self.system.mechanism.has_forces else {"forces": False}
        return self.system.forward_dynamics(q, v, self.spread(u), check=False, **more)


@dataclass(frozen=True)
class Points:
    """A motion on a mesh [N + 1] of shares of its duration: q, v, a at its points and middles [2 N + 1, nv].

    `u` [N + 1, driven] are the torques at the points of the mesh.
    """

    mesh: Numbers
    duration: float
    q: Numbers
    v: Numbers
    a: Numbers
    u: Numbers

    @property
    def times(self) -> Numbers:
        """The times of all points and middles [s]."""
        return self.duration * with_middles(self.mesh)


@dataclass(frozen=True)
class Solution:
    """What the solver returned: the motion, its cost, the status, and the names of what is violated most."""

    points: Points
    cost: float
    success: bool
    status: str
    iterations: int
    violated: str


def with_middles(x: Numbers) -> Numbers:
    """Return values at points and, linearly between them, at the middles of intervals, [2 N + 1, ...]."""
    out = np.empty((2 * len(x) - 1, *x.shape[1:]))
    out[::2], out[1::2] = x, (x[:-1] + x[1:]) / 2.0
    return out


def solve(task: Task, guess: Points, margins: Numbers, *, warm: bool) -> Solution:
    """Return the solution on the mesh of a guess; `margins` [4, nv] are taken off the limits of motions.

    They are those of the lower and upper positions, of velocities and of accelerations.
    """
    ca = casadi()
    n, m, N = task.system.nv, len(task.driven), len(guess.mesh) - 1
    count, w = 2 * N + 1, np.diff(guess.mesh)[None, :]
    by_a, by_u = scales_of(task, guess)
    T, Q, V, scaled_a = ca.MX.sym("T"), *(ca.MX.sym(x, n, count) for x in "qva")
    scaled_u = ca.MX.sym("u", m, N + 1)
    A, U = ca.diag(ca.DM(by_a)) @ scaled_a, ca.diag(ca.DM(by_u)) @ scaled_u
    h = T * ca.DM(w)
    every = every_torque(U)
    variables, groups = [T, Q, V, scaled_a, scaled_u], defects(Q, V, A, h)
    groups.append(("torque", _equations(task).map(count)(Q, V, A, every)))
    lower, upper = bounds_of(task, margins, N, by_a, by_u)
    equal = sum(x.numel() for _, x in groups)
    more_g: list[Any] = []
    if task.cost == "energy":
        P = ca.MX.sym("p", m, count)
        variables.append(P)
        more_g.append(ca.vec(P - every * V[list(task.driven), :]))
        f = integral(P, h)
    elif task.cost == "effort":
        f = integral(every**2, h)
    else:
        f = T + SMOOTH / n * integral(scaled_a**2, h)
    x = ca.vertcat(*(ca.vec(y) for y in variables))
    g = ca.vertcat(*(ca.vec(y) for _, y in groups), *more_g)
    options = OPTIONS | ({"ipopt.mu_init": 1e-4, "ipopt.bound_push": 1e-6, "ipopt.bound_frac": 1e-6} if warm else {})
    solver = ca.nlpsol("plan", "ipopt", {"x": x, "f": f, "g": g}, options)
    first = [np.array([guess.duration]), *(y.ravel() for y in (guess.q, guess.v, guess.a / by_a, guess.u / by_u))]
    if task.cost == "energy":
        power = np.maximum(with_middles(guess.u) * guess.v[:, list(task.driven)], 0.0) + 1e-3
        first.append(power.ravel())
        lower, upper = np.r_[lower, np.zeros(power.size)], np.r_[upper, np.full(power.size, np.inf)]
    top = np.r_[np.zeros(equal), np.full(g.numel() - equal, np.inf)]
    found = solver(x0=np.concatenate(first), lbx=lower, ubx=upper, lbg=0.0, ubg=top)
    stats, values = solver.stats(), found["x"].full().ravel()
    return Solution(
        points_of(task, guess, values),
        float(found["f"]),
        bool(stats["success"]),
        str(stats["return_status"]),
        int(stats["iter_count"]),
        most_violated(task, guess, groups, found["g"].full().ravel()),
    )


def defects(Q: Any, V: Any, A: Any, h: Any) -> list[tuple[str, Any]]:
    """Return what is zero where positions, velocities, accelerations [n, 2 N + 1] meet Hermite and Simpson's rule."""
    groups = []
    spread = casadi().repmat(h, Q.shape[0], 1)
    for what, x, f in (("position", Q, V), ("velocity", V, A)):
        (x0, xm, x1), (f0, fm, f1) = ((y[:, 0:-1:2], y[:, 1::2], y[:, 2::2]) for y in (x, f))
        groups.append((what, xm - (x0 + x1) / 2.0 - spread / 8.0 * (f0 - f1)))
        groups.append((what, x1 - x0 - spread / 6.0 * (f0 + 4.0 * fm + f1)))
    return groups


def every_torque(U: Any) -> Any:
    """Return torques [m, 2 N + 1] at points of the mesh and between them from those at its points."""
    N = U.shape[1] - 1
    between = (U[:, :-1] + U[:, 1:]) / 2.0
    return casadi().horzcat(*(x for k in range(N) for x in (U[:, k], between[:, k])), U[:, N])


def integral(x: Any, h: Any) -> Any:
    """Return the sum of the integrals of rows [m, 2 N + 1] by Simpson's rule over intervals h [1, N]."""
    ca = casadi()
    simpson = ca.repmat(h, x.shape[0], 1) / 6.0
    return ca.sum1(ca.sum2(simpson * (x[:, 0:-1:2] + 4.0 * x[:, 1::2] + x[:, 2::2])))


def _equations(task: Task) -> Any:
    """Return the function of (q, v, a, u) that is zero where a motion obeys the equations of motion."""
    ca, system, form = casadi(), task.system, task.form
    n, m = system.nv, len(task.driven)
    more = {} if task.forces or not system.mechanism.has_forces else {"forces": False}
    sort = ca.SX if form == "sx" else ca.MX
    q, v, a = (sort.sym(x, n) for x in "qva")
    u = sort.sym("u", m)
    tau = ca.DM(task.spread(np.eye(m)).T) @ u
    if system.closures:
        left = a - system.casadi("forward_dynamics", form=form, **more)(q, v, tau)
    else:
        left = system.casadi("inverse_dynamics", form=form, **more)(q, v, a) - tau
    return ca.Function("equations", [q, v, a, u], [left])


def scales_of(task: Task, guess: Points) -> tuple[Numbers, Numbers]:
    """Return the sizes of accelerations and torques, by which these variables are divided."""
    way = np.maximum(np.abs(guess.q - guess.q[0]).max(axis=0), 1.0)
    most = task.limits.torque[list(task.driven)]
    return 4.0 * way / guess.duration**2, np.where(
        np.isfinite(most), most, np.maximum(np.abs(guess.u).max(axis=0), 1.0)
    )


def bounds_of(task: Task, margins: Numbers, N: int, by_a: Numbers, by_u: Numbers) -> tuple[Numbers, Numbers]:
    """Return the bounds of all variables in their order."""
    n, count = task.system.nv, 2 * N + 1
    limits = task.limits
    parts = []
    for k, (low, high) in enumerate(
        (
            (limits.position[0] + margins[0], limits.position[1] - margins[1]),
            (-limits.velocity + margins[2], limits.velocity - margins[2]),
        )
    ):
        low, high = np.tile(low, (count, 1)), np.tile(high, (count, 1))
        for row, state in ((0, task.start), (-1, task.goal)):
            given = state[k * n : (k + 1) * n]
            fixed = np.isfinite(given)
            low[row, fixed] = high[row, fixed] = given[fixed]
        parts.append((low.ravel(), high.ravel()))
    a = np.tile((limits.acceleration - margins[3]) / by_a, (count, 1)).ravel()
    u = np.tile(limits.torque[list(task.driven)] / by_u, (N + 1, 1)).ravel()
    lower = [[task.duration[0]], *(x for x, _ in parts), -a, -u]
    upper = [[task.duration[1]], *(x for _, x in parts), a, u]
    return np.concatenate(lower), np.concatenate(upper)


def points_of(task: Task, guess: Points, values: Numbers) -> Points:
    """Return the motion in the variables of a solution; torques are within their limits."""
    n, m, N = task.system.nv, len(task.driven), len(guess.mesh) - 1
    size = (2 * N + 1) * n
    q, v, a = (values[1 + k * size : 1 + (k + 1) * size].reshape(-1, n) for k in range(3))
    most = task.limits.torque[list(task.driven)]
    by_a, by_u = scales_of(task, guess)
    u = np.clip(values[1 + 3 * size : 1 + 3 * size + (N + 1) * m].reshape(-1, m) * by_u, -most, most)
    return Points(guess.mesh, float(values[0]), q, v, a * by_a, u)


def most_violated(task: Task, guess: Points, groups: list[Any], g: Numbers) -> str:
    """Return a text on the equation that is violated most: its sort, the joint and the time."""
    worst, text, at = 0.0, "", 0
    N, n = len(guess.mesh) - 1, task.system.nv
    for what, x in groups:
        part = g[at : at + x.numel()].reshape(-1, n)
        at += x.numel()
        row, k = np.unravel_index(int(np.abs(part).argmax()), part.shape)
        if not np.abs(part[row, k]) <= worst:
            worst = float(np.abs(part[row, k]))
            share = guess.mesh[row] if len(part) == N else with_middles(guess.mesh)[row]
            text = f"the {what} of {task.labels[k]!r} at {100.0 * share:.3g} % of the time by {worst:.3g}"
    return text


# --- The error of a plan, and finer meshes ---


def replayed(accelerations: Callable[[Numbers, Numbers, Numbers], Numbers], points: Points) -> tuple[Numbers, Numbers]:
    """Return states [N, SUBSTEPS + 1, 2 nv] of all intervals, integrated from their own starts, and accelerations."""
    n, N = points.q.shape[1], len(points.mesh) - 1
    h = points.duration * np.diff(points.mesh)[:, None] / SUBSTEPS
    x = np.concatenate([points.q[:-1:2], points.v[:-1:2]], axis=1)
    states, rates = [x], []

    def rate(x: Numbers, share: float) -> Numbers:
        u = (1.0 - share) * points.u[:-1] + share * points.u[1:]
        return np.concatenate([x[:, n:], accelerations(x[:, :n], x[:, n:], u)], axis=1)

    for k in range(SUBSTEPS):
        s, step = k / SUBSTEPS, 1.0 / SUBSTEPS
        a = rate(x, s)
        b = rate(x + h / 2.0 * a, s + step / 2.0)
        c = rate(x + h / 2.0 * b, s + step / 2.0)
        d = rate(x + h * c, s + step)
        x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        states.append(x)
        rates.append(a[:, n:])
    rates.append(rate(x, 1.0)[:, n:])
    return np.stack(states, axis=1).reshape(N, SUBSTEPS + 1, 2 * n), np.stack(rates, axis=1)


def beyond_limits(task: Task, states: Numbers, rates: Numbers) -> Numbers:
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


def errors(points: Points, states: Numbers) -> Numbers:
    """Return the error of each interval: of the state at its end, relative to 1 and the largest size of each entry."""
    ends = np.concatenate([points.q[2::2], points.v[2::2]], axis=1)
    sizes = 1.0 + np.abs(np.concatenate([points.q, points.v], axis=1)).max(axis=0)
    return np.nan_to_num(np.abs(states[:, -1] - ends) / sizes, nan=np.inf).max(axis=1)


def refined(points: Points, found: Numbers, tolerance: float, most: int) -> Numbers:
    """Return a mesh whose intervals are divided so that errors, of the fifth order, meet half a tolerance."""
    pieces = np.clip(np.ceil((np.minimum(found, 1e9) / (0.5 * tolerance)) ** 0.2), 1, 4).astype(int)
    if pieces.sum() > most:
        raise InputError(
            f"plan: the tolerance {tolerance:g} takes more than {most} intervals: the error is {found.max():.3g} with "
            f"{len(found)}; give a larger tolerance, or max_intervals"
        )
    parts = [
        np.linspace(a, b, k, endpoint=False) for a, b, k in zip(points.mesh[:-1], points.mesh[1:], pieces, strict=True)
    ]
    return np.concatenate([*parts, [1.0]])


def on_mesh(points: Points, mesh: Numbers) -> Points:
    """Return a motion on another mesh: cubics through values and rates, accelerations and torques linear."""
    from scipy.interpolate import CubicHermiteSpline

    own, new = with_middles(points.mesh), with_middles(mesh)
    T = points.duration
    q = CubicHermiteSpline(own, points.q, T * points.v)(new)
    v = CubicHermiteSpline(own, points.v, T * points.a)(new)
    linear: Callable[[Numbers, Numbers, Numbers], Numbers] = lambda at, x, y: np.stack(  # noqa: E731
        [np.interp(at, x, column) for column in y.T], axis=-1
    )
    return Points(mesh, T, q, v, linear(new, own, points.a), linear(mesh, points.mesh, points.u))
