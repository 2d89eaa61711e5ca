"""Routes to the equations of motion: formulations of the papers and other libraries, with a common interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import unknown_name
from ...formulations import denoc, lagrange, module_recursion, points_dynamics, spatial_operators
from ...model.mechanism import Mechanism
from .answers import Answers, Solver, State, installed


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


def _pinocchio(mechanism: Mechanism) -> Solver:
    with installed():
        from .peers.pinocchio import prepare
    return prepare(mechanism)


def _mujoco(mechanism: Mechanism) -> Solver:
    with installed():
        from .peers.mujoco import prepare
    return prepare(mechanism)


ROUTES: dict[str, Route] = {
    name: Route(name, what, prepare)
    for name, what, prepare in (
        ("denoc", "DeNOC matrices about the joints [Saha2013]", formulation(denoc)),
        ("centre", "DeNOC matrices about the centers of mass [Saha1999]", formulation(denoc, about="centre")),
        ("modules", "kinematic modules [Saha2013]", formulation(module_recursion)),
        ("operators", "spatial operators [Wolinski2015]", formulation(spatial_operators)),
        ("points", "seven equimomental points [Gupta2013]", formulation(points_dynamics)),
        ("lagrange", "Lagrange's equations by differentiation", formulation(lagrange)),
        ("pinocchio", "Pinocchio", _pinocchio),
        ("mujoco", "MuJoCo", _mujoco),
    )
}
"""Every route by name, except for the recursion that all are compared with."""


def chosen(names) -> tuple[Route, ...]:
    """Return routes by name (all for None); Route objects are kept."""
    if names is None:
        return tuple(ROUTES.values())
    out = []
    for name in (names,) if isinstance(names, str | Route) else names:
        if not isinstance(name, Route) and name not in ROUTES:
            raise unknown_name("route", name, ROUTES)
        out.append(name if isinstance(name, Route) else ROUTES[name])
    return tuple(out)
