"""Verification: every route to the equations of motion, compared with the recursion on the same random states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ..._support.checks import generator
from ..._support.progress import show_progress
from ...algebra.scalars import Numbers
from ...errors import AssemblyError, InputError, ModelError, unknown_name
from ...formulations import denoc, lagrange, module_recursion, points, spatial_operators
from ...formulations.closed_system import ClosedEquations, closed_equations
from ...formulations.kinematics import gravity, skew
from ...model.mechanism import Mechanism, resolve_parts
from ...model.scales import loop_units, torque_units, wrench_units
from ...model.topology import depths
from ...runtime.compiled import CompiledMechanism
from ...runtime.singularity import weightless_joints
from ..ledger import BodyMotion, body_motions
from ..loops.actuation import driven_dofs
from ..loops.batch_assembly import assemble
from ..loops.subsystems import subsystem_recursion
from .comparisons import FACTOR, Answers, Comparison, NotRun, Row, Solver, State, Verification, require_installed

# --- Routes to the equations of motion: formulations of the papers and other libraries, with a common interface ---


@dataclass(frozen=True)
class Route:
    """A route to the equations: `prepare` takes a mechanism and returns its Solver, or raises NotRun."""

    name: str
    what: str
    prepare: Callable[[Mechanism], Solver]


def formulation(made: Any, **options: Any) -> Callable[[Mechanism], Solver]:
    """Return `prepare` of a formulation (its module), whose Equations hold I, C qd, g and N^T w_ext.

    A formulation with recursions of its own computes tau and qdd by these, the others by the matrices.
    """

    def prepare(mechanism: Mechanism) -> Solver:
        inverse, forward = (getattr(made, name, None) for name in ("inverse_dynamics", "forward_dynamics"))

        def solve(s: State) -> Answers:
            e = made.equations(mechanism, s.q, s.qd, s.wrenches, **options)
            tau = inverse(mechanism, s.q, s.qd, s.qdd, s.wrenches) if inverse else e.torque(s.qdd)
            qdd = None
            if s.invertible:
                qdd = forward(mechanism, s.q, s.qd, s.tau, s.wrenches) if forward else e.acceleration(s.tau)
            return Answers(tau, e.I, e.g, e.convective + e.g - e.external, qdd)

        return solve

    return prepare


def _lagrange(mechanism: Mechanism) -> Solver:
    with require_installed():
        import_module("casadi")
    return formulation(lagrange)(mechanism)


def _pinocchio(mechanism: Mechanism) -> Solver:
    with require_installed():
        from .pinocchio import prepare
    return prepare(mechanism)


def _mujoco(mechanism: Mechanism) -> Solver:
    with require_installed():
        from .mujoco import prepare
    return prepare(mechanism)


ROUTES: dict[str, Route] = {
    name: Route(name, what, prepare)
    for name, what, prepare in (
        ("denoc", "DeNOC matrices about the joints [Saha2013]", formulation(denoc)),
        ("centre", "DeNOC matrices about the centers of mass [Saha1999]", formulation(denoc, about="centre")),
        ("modules", "kinematic modules [Saha2013]", formulation(module_recursion)),
        ("operators", "spatial operators [Wolinski2015]", formulation(spatial_operators)),
        ("points", "seven equimomental points [Gupta2013]", formulation(points)),
        ("lagrange", "Lagrange's equations by differentiation", _lagrange),
        ("pinocchio", "Pinocchio", _pinocchio),
        ("mujoco", "MuJoCo", _mujoco),
    )
}
"""Every route by name, except for the recursion that all are compared with."""


def choose_routes(names) -> tuple[Route, ...]:
    """Return routes by name (all for None); Route objects are kept."""
    if names is None:
        return tuple(ROUTES.values())
    out = []
    for name in (names,) if isinstance(names, str | Route) else names:
        if not isinstance(name, Route) and name not in ROUTES:
            raise unknown_name("route", name, ROUTES)
        out.append(name if isinstance(name, Route) else ROUTES[name])
    return tuple(out)


# --- Verification of closed mechanisms: accelerations with the loops closed, by dense equations and other libraries.

Solve = Callable[[Numbers, Numbers, Numbers], Numbers]


def closed_rows(system: CompiledMechanism, states: int, tol: float, rng: np.random.Generator) -> tuple[Row, ...]:
    """Compare routes that support loops with the compiled functions on closed states; a row per route.

    Accelerations have the bound tol times cond(I) times the square of cond(J), both scaled by the masses. The torques
    of the recursion between subsystems are compared with those of dense equations.
    """
    mechanism, subsystems = system.mechanism, ("subsystems", "recursion between subsystems [Saha2013] (54)")
    routes: list[tuple[str, str, Callable[[Mechanism], Solve]]] = [
        ("loops", "dense equations with multipliers [Saha2013] (50)-(54)", _dense),
        ("pin-loops", "Pinocchio's constraint dynamics", _pinocchio_of_closed),
    ]
    try:
        samples = [_sample(system, rng) for _ in range(states)]
    except (AssemblyError, ModelError) as error:
        names = (*((name, what) for name, what, _ in routes), subsystems)
        return tuple(Row(name, what, {}, reason=str(error)) for name, what in names)
    rows = (_closed_row(mechanism, name, what, prepare, samples, tol) for name, what, prepare in routes)
    return (*rows, _subsystem_row(system, *subsystems, samples, tol))


def _subsystem_row(system: CompiledMechanism, name: str, what: str, samples, tol: float) -> Row:
    """Compare the torques of subsystems with S tau + J^T lambda = I qdd + h of explicit matrices, all at once.

    The bound is tol times the condition of these equations, with the columns of loops scaled. Torques are relative to
    the largest that the accelerations, the bias torques or the multipliers could cause.
    """
    m = system.mechanism
    worst: Comparison | None = None
    try:
        recursion = subsystem_recursion(system)
        driven, units = driven_dofs(system, recursion.actuated), loop_units(m)
        for q, qd, _, qdd in samples:
            e = closed_equations(m, q, qd)
            A = units[1][:, None] * np.hstack([np.eye(m.nv)[:, driven], e.J.T]) / [*units[1][driven], *units[0]]
            found, _, _, sizes = np.linalg.lstsq(A, units[1] * (e.I @ qdd + e.h), rcond=1e-9)
            mine = recursion.inverse_dynamics(q, qd, qdd, forces=False).tau[driven] * units[1][driven]
            size = units[1] * (np.sqrt(np.diag(e.I) * (qdd @ e.I @ qdd)) + np.abs(e.h)) + np.abs(A) @ np.abs(found)
            real = sizes[sizes > 1e-9 * sizes.max()]
            apart = float(np.abs(mine - found[: len(driven)]).max(initial=0.0)) / _size(size)
            new = Comparison(apart, tol * m.nv * float(real.max() / real.min()))
            worst = new if worst is None or new.ratio > worst.ratio else worst
    except (InputError, ModelError) as error:
        return Row(name, what, {}, reason=str(error))
    except Exception as error:  # as of any other route
        return Row(name, what, {}, failure=f"{type(error).__name__}: {error}")
    return Row(name, what, {} if worst is None else {"tau": worst})


def _sample(system: CompiledMechanism, rng: np.random.Generator) -> tuple[Numbers, ...]:
    """Return a closed state away from the guess, torques, and the accelerations of the compiled function for them."""
    start = assemble(system)
    speeds, torques = loop_units(system.mechanism)[1], torque_units(system.mechanism)
    away = system.closing_speed(start, speeds * rng.normal(size=system.nv))
    q = assemble(system, system.integrate(start, 0.2 * away / max(1.0, float(np.abs(away / speeds).max()))))
    qd = system.closing_speed(q, speeds * rng.normal(size=system.nv))
    tau = torques * rng.normal(size=system.nv)
    return q, qd, tau, system.forward_dynamics(q, qd, tau, forces=False)


def _closed_row(mechanism: Mechanism, name: str, what: str, prepare, samples, tol: float) -> Row:
    worst: Comparison | None = None
    units, speeds = loop_units(mechanism)
    try:
        solve = prepare(mechanism)
        for q, qd, tau, mine in samples:
            e = closed_equations(mechanism, q, qd)
            free = np.linalg.solve(e.I, tau - e.h)
            size = max(1.0, *(float(np.abs(x / speeds).max()) for x in (mine, free)))
            apart = float(np.abs((solve(q, qd, tau) - mine) / speeds).max()) / size
            new = Comparison(apart, tol * condition(e, units))
            worst = new if worst is None or new.ratio > worst.ratio else worst
    except (NotRun, ModelError) as error:
        return Row(name, what, {}, reason=str(error))
    except Exception as error:  # a route may fail in any way; its row has the error, and the others still run
        return Row(name, what, {}, failure=f"{type(error).__name__}: {error}")
    return Row(name, what, {} if worst is None else {"qdd": worst})


def condition(e: ClosedEquations, units: Numbers) -> float:
    """Return the condition number of accelerations with loops: of I, and of J I^-1 J^T where it is not singular.

    `units` are the values of one unit of each equation [rad or m].
    """
    scale = 1 / np.sqrt(np.diag(e.I))
    sizes = np.linalg.svd(e.J * scale / units[:, None], compute_uv=False)
    real = sizes[sizes > 1e-7 * sizes.max(initial=0.0)]
    squared = (real.max() / real.min()) ** 2 if len(real) else 1.0
    return float(np.linalg.cond(scale[:, None] * e.I * scale) * squared)


def _dense(mechanism: Mechanism) -> Solve:
    return lambda q, qd, tau: closed_equations(mechanism, q, qd).acceleration(tau)


def _pinocchio_of_closed(mechanism: Mechanism) -> Solve:
    if mechanism.couplings:
        raise NotRun("Pinocchio's constraints have no couplings")
    with require_installed():
        from .pinocchio import closed_dynamics
    return closed_dynamics(mechanism)


# --- Upper bounds of torques, the scale for their rounding errors ---
#
# By the Cauchy-Schwarz inequality, masses dm with accelerations a cause a torque on axis k of at most sqrt(I_kk)
# sqrt(sum of a^2 dm). It is reached if all mass points act in the same direction. Where contributions cancel, as those
# of gravity about a vertical axis, the torque itself is only rounding and is no scale.


def torque_scale(
    mechanism: Mechanism,
    q: Numbers,
    qd: Numbers | None = None,
    qdd: Numbers | None = None,
    wrenches: Numbers | None = None,
) -> Numbers:
    """Return an upper bound of each torque at one state that no cancellation makes smaller, [nv].

    It is sqrt(I_kk sum of a^2 dm), with gravity as an acceleration, plus |omega| |n| + |v| |f| of every external wrench
    for a unit velocity of the axis, plus the torque on the armature.
    """
    g = gravity(mechanism)
    squares, inertia, pulled, drives = 0.0, *np.zeros((3, mechanism.nv))
    for i, b in enumerate(body_motions(mechanism, q, qd, qdd)):
        state = b.body
        squares += _square(b, g)
        inertia += state.m * (b.N[3:] ** 2).sum(axis=0) + np.einsum("ik,ij,jk->k", b.N[:3], state.I, b.N[:3])
        if wrenches is not None:
            n, f = (np.linalg.norm(x) for x in np.split(np.asarray(wrenches)[i], 2))
            at_origin = b.N[3:] - np.cross(b.N[:3].T, state.d).T
            pulled += n * np.linalg.norm(b.N[:3], axis=0) + f * np.linalg.norm(at_origin, axis=0)
        if qdd is not None:
            drives[state.dofs] = np.abs(state.armature * np.asarray(qdd)[state.dofs])
    return np.sqrt(np.maximum(inertia * squares, 0.0)) + pulled + drives


def _square(b: BodyMotion, g: Numbers) -> float:
    """Return the sum of |a - g|^2 dm over a body: m |a_c - g|^2 + tr(U J U^T), with U r the acceleration about c."""
    U = skew(b.dw) + skew(b.body.w) @ skew(b.body.w)
    J = 0.5 * np.trace(b.body.I) * np.eye(3) - b.body.I
    return float(b.body.m * ((b.dc - g) ** 2).sum() + np.trace(U @ J @ U.T))


EPS = float(np.finfo(float).eps)
SINGULAR = 1e13
"""The condition number of I beyond which accelerations have too few correct digits to compare (1 / eps is 4.5e15)."""


def verify(
    system: CompiledMechanism,
    states: int = 5,
    *,
    tol: float | None = None,
    rng: object = 0,
    routes: Sequence[str | Route] | None = None,
    progress: bool | Callable[[float], None] | None = None,
) -> Verification:
    """Compare every route with the compiled recursion of a System at random states with external wrenches.

    Routes for trees are compared without loops and couplings. Routes that support loops are compared on closed states
    in addition.

    Differences are relative: torques to `torque_scale`, I and qdd to their largest entries. The bound
    is `tol` (20 eps by default) times a condition. The condition is the number of joints from the ground to the
    farthest body; for qdd it includes the condition number of the solution. `rng` seeds the states. `routes` are names
    of routes, or Route objects. `progress` shows a bar, by default on a terminal; a function is called with the part
    that is done.
    """
    if states < 1:
        raise InputError(f"states is {states}; expected 1 or more")
    whole, system = system, system.tree
    mechanism, selected = system.mechanism, choose_routes(routes)
    if mechanism.nv == 0:
        return Verification(mechanism.name, states, 1.0, (), nothing_moves=True)
    tol = FACTOR * EPS if tol is None else tol
    closed = bool(whole.closures) and routes is None
    with show_progress(progress, f"verifying {mechanism.name}") as show:
        samples, expected = _recursion(system, states, generator(rng))
        limits = [_limits(mechanism, s, e, tol) for s, e in zip(samples, expected, strict=True)]
        rows: tuple[Row, ...] = ()
        for k, route in enumerate(selected):
            done = _Done(show, k, len(selected) + closed)
            rows += (_row(mechanism, route, samples, expected, limits, done),)
            done(1.0)
        if closed:
            rows += closed_rows(whole, states, tol, generator(rng))
    conditions = [_condition(e.I) if s.invertible else np.inf for s, e in zip(samples, expected, strict=True)]
    return Verification(mechanism.name, states, max(conditions), rows)


def _recursion(system: CompiledMechanism, count: int, rng: np.random.Generator) -> tuple[list[State], list[Answers]]:
    """Return random states and the results of the compiled recursion for them."""
    mechanism = system.mechanism
    q, qd = system.random_state(rng, count)
    qdd, w = rng.normal(size=(count, mechanism.nv)), rng.normal(size=(count, len(mechanism.bodies), 6))
    speeds = loop_units(mechanism)[1]
    qd, qdd, w = speeds * qd, speeds * qdd, wrench_units(mechanism) * w
    tau, inertia = system.inverse_dynamics(q, qd, qdd, wrenches=w, forces=False), system.inertia_matrix(q)
    invertible = [not weightless_joints(mechanism) and _condition(x) < SINGULAR for x in inertia]
    back = system.forward_dynamics(q, qd, tau, wrenches=w, forces=False) if any(invertible) else [None] * count
    gravity = system.gravity_torque(q, forces=False)
    columns = (tau, inertia, gravity, system.bias_torque(q, qd, wrenches=w, forces=False))
    answers = [
        Answers(*row, qdd=x if possible else None) for *row, x, possible in zip(*columns, back, invertible, strict=True)
    ]
    return [State(*row) for row in zip(q, qd, qdd, tau, w, invertible, strict=True)], answers


def _limits(mechanism: Mechanism, s: State, e: Answers, tol: float) -> dict[str, tuple[float, float]]:
    """Return the scale and the bound of each quantity at a state."""
    if mechanism.has_flexible:
        scales = _flexible_scales(mechanism, s, e)
    else:
        scales = {
            "tau": torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches),
            "I": e.I,
            "gravity": torque_scale(mechanism, s.q),
            "bias": torque_scale(mechanism, s.q, s.qd, wrenches=s.wrenches),
        }
    depth = max(depths(mechanism))  # each joint from the ground to a body adds its own rounding
    out = {name: (_size(scale), tol * depth) for name, scale in scales.items()}
    if e.qdd is not None:
        # The condition of solving I qdd = tau - h: cond(I), and the size of torques that cancel over their sum's.
        lost = np.linalg.norm(np.linalg.inv(e.I), 2) * out["tau"][0] / _size(e.qdd)
        out["qdd"] = (_size(e.qdd), tol * (_condition(e.I) + float(lost)))
    return out


def _flexible_scales(mechanism: Mechanism, s: State, e: Answers) -> dict[str, Numbers]:
    """Return the scales with flexible bodies: bounds by the inertia matrix for accelerations, which add up to torques.

    Masses dm with accelerations a of qdd alone have the sum qdd^T I qdd of a^2 dm; with gravity it is m g^2.
    """
    axes = np.sqrt(np.diag(e.I))
    weight = (
        axes
        * np.sqrt(sum(float(np.asarray(b.mass)) for b in resolve_parts(mechanism.bodies, mechanism.values())))
        * np.linalg.norm(gravity(mechanism))
    )
    bias = weight + np.abs(e.bias)
    return {"tau": axes * np.sqrt(s.qdd @ e.I @ s.qdd) + bias, "I": e.I, "gravity": weight, "bias": bias}


@dataclass(frozen=True)
class _Done:
    """Reports the part of one of several routes that is done as a part of all of them."""

    show: Callable[[float], None] | None
    number: int
    count: int

    def __call__(self, part: float) -> None:
        if self.show is not None:
            self.show((self.number + part) / self.count)


def _row(
    mechanism: Mechanism, route: Route, samples: list[State], expected: list[Answers], limits: list[dict], done: _Done
) -> Row:
    """Return the row of a route; NotRun becomes its reason, any other error a failure."""
    worst: dict[str, Comparison] = {}
    try:
        solve: Solver = route.prepare(mechanism)
        for k, (s, e, limit) in enumerate(zip(samples, expected, limits, strict=True)):
            done(k / len(samples))
            answers = solve(s)
            for name, (scale, bound) in limit.items():
                new = Comparison(float(np.abs(getattr(answers, name) - getattr(e, name)).max()) / scale, bound)
                if name not in worst or new.ratio > worst[name].ratio:
                    worst[name] = new
    except (NotRun, ModelError) as error:
        return Row(route.name, route.what, {}, reason=str(error))
    except Exception as error:  # a route may fail in any way; its row has the error, and the others still run
        return Row(route.name, route.what, worst, failure=f"{type(error).__name__}: {error}")
    return Row(route.name, route.what, worst)


def _size(x: Numbers) -> float:
    return float(np.abs(x).max()) or 1.0


def _condition(I: Numbers) -> float:  # noqa: E741 - the papers' letter
    return float(np.linalg.cond(I))
