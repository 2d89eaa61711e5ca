"""Verification of closed mechanisms: accelerations with the loops closed, by dense equations and other libraries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import AssemblyError, ModelError
from ...formulations.closed_system import ClosedEquations, closed_equations
from ...model.mechanism import Mechanism
from ...model.scales import loop_units, torque_units
from ..loops.assembly import assemble
from .answers import NotRun, installed
from .comparisons import Comparison, Row

Solve = Callable[[Numbers, Numbers, Numbers], Numbers]


def closed_rows(system: CompiledMechanism, states: int, tol: float, rng: np.random.Generator) -> tuple[Row, ...]:
    """Compare forward dynamics on closed states with the routes that support loops; a row per route, qdd alone.

    The bound is tol times the condition number of the inertia matrix times the square of that of J, both scaled by the
    masses.
    """
    mechanism = system.mechanism
    routes: list[tuple[str, str, Callable[[Mechanism], Solve]]] = [
        ("loops", "dense equations with multipliers [Saha2013] (50)-(54)", _dense),
        ("pin-loops", "Pinocchio's constraint dynamics", _pinocchio),
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
    return q, qd, tau, system.forward_dynamics(q, qd, tau)


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
    """Return the condition number of accelerations with loops: that of I, and of J I^-1 J^T where it is not singular.

    `units` are the values of one unit of each equation [rad or m].
    """
    scale = 1 / np.sqrt(np.diag(e.I))
    sizes = np.linalg.svd(e.J * scale / units[:, None], compute_uv=False)
    real = sizes[sizes > 1e-7 * sizes.max(initial=0.0)]
    squared = (real.max() / real.min()) ** 2 if len(real) else 1.0
    return float(np.linalg.cond(scale[:, None] * e.I * scale) * squared)


def _dense(mechanism: Mechanism) -> Solve:
    return lambda q, qd, tau: closed_equations(mechanism, q, qd).acceleration(tau)


def _pinocchio(mechanism: Mechanism) -> Solve:
    if mechanism.couplings:
        raise NotRun("Pinocchio's constraints have no couplings")
    with installed():
        from .peers.pinocchio_loops import closed_dynamics
    return closed_dynamics(mechanism)
