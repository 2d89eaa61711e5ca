"""Routes to the equations of motion: formulations of the papers and other libraries, with a common interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import AssemblyError, ModelError, unknown_name
from ...formulations import denoc, lagrange, module_recursion, points, spatial_operators
from ...formulations.closed_system import ClosedEquations, closed_equations
from ...model.mechanism import Mechanism
from ...model.scales import loop_units, torque_units
from ...runtime.compiled import CompiledMechanism
from ..loops.batch_assembly import assemble
from .comparisons import Answers, Comparison, NotRun, Row, Solver, State, require_installed


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
    """Compare forward dynamics on closed states with the routes that support loops; a row per route, qdd alone.

    The bound is tol times cond(I) times the square of cond(J), both scaled by the
    masses.
    """
    mechanism = system.mechanism
    routes: list[tuple[str, str, Callable[[Mechanism], Solve]]] = [
        ("loops", "dense equations with multipliers [Saha2013] (50)-(54)", _dense),
        ("pin-loops", "Pinocchio's constraint dynamics", _pinocchio_of_closed),
    ]
    try:
        samples = [_sample(system, rng) for _ in range(states)]
    except (AssemblyError, ModelError) as error:
        return tuple(Row(name, what, {}, reason=str(error)) for name, what, _ in routes)
    return tuple(_row(mechanism, name, what, prepare, samples, tol) for name, what, prepare in routes)


def _sample(system: CompiledMechanism, rng: np.random.Generator) -> tuple[Numbers, ...]:
    """Return a closed state away from the guess, torques, and the accelerations of the compiled function for them."""
    start = assemble(system)
    speeds, torques = loop_units(system.mechanism)[1], torque_units(system.mechanism)
    away = system.closing_speed(start, speeds * rng.normal(size=system.nv))
    q = assemble(system, system.integrate(start, 0.2 * away / max(1.0, float(np.abs(away / speeds).max()))))
    qd = system.closing_speed(q, speeds * rng.normal(size=system.nv))
    tau = torques * rng.normal(size=system.nv)
    return q, qd, tau, system.forward_dynamics(q, qd, tau, forces=False)


def _row(mechanism: Mechanism, name: str, what: str, prepare, samples, tol: float) -> Row:
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
