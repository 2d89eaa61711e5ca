"""Routes to the equations of motion: the formulations of the papers and other libraries, all with one face."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import KinetreeError, unknown_name
from ...model.mechanism import Mechanism

Numbers = NDArray[np.float64]


class NotRun(KinetreeError):
    """A route that cannot take a mechanism, or is not installed; the message says why."""


@dataclass(frozen=True)
class State:
    """One state: q [nq], qd, qdd and tau [nv], external wrenches [nb, 6], and whether I can be inverted."""

    q: Numbers
    qd: Numbers
    qdd: Numbers
    tau: Numbers
    wrenches: Numbers
    invertible: bool


@dataclass(frozen=True)
class Answers:
    """What a route says of a state: torques of qdd, inertia matrix, gravity and bias torques, accelerations of tau.

    Torques, bias and accelerations are under the external wrenches, gravity is alone; qdd is None where I is singular.
    """

    tau: Numbers
    I: Numbers  # noqa: E741 - the papers' letter
    gravity: Numbers
    bias: Numbers
    qdd: Numbers | None


Solver = Callable[[State], Answers]


@dataclass(frozen=True)
class Route:
    """A way to the equations: `prepare` takes a mechanism and returns what answers for a state, or raises NotRun."""

    name: str
    what: str
    prepare: Callable[[Mechanism], Solver]


def formulation(module: str, **options: Any) -> Callable[[Mechanism], Solver]:
    """Return `prepare` of a formulation, whose Equations hold I, C qd, g and N^T w_ext.

    A formulation with recursions of its own answers for tau and qdd by these, the others by the matrices.
    """

    def prepare(mechanism: Mechanism) -> Solver:
        made = _imported(f"...formulations.{module}")
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


def peer(module: str) -> Callable[[Mechanism], Solver]:
    """Return `prepare` of another library, which is imported when asked for."""
    return lambda mechanism: _imported(f".peers.{module}").prepare(mechanism)


def _imported(module: str) -> Any:
    """Return a module; a package that is missing outside Kinetree is a reason, not an error."""
    try:
        return import_module(module, __package__)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kinetree"):
            raise
        raise NotRun(f"{error.name} is not installed") from None


ROUTES: dict[str, Route] = {
    name: Route(name, what, prepare)
    for name, what, prepare in (
        ("denoc", "DeNOC matrices about the joints [Saha2013]", formulation("denoc")),
        ("centre", "DeNOC matrices about the mass centres [Saha1999]", formulation("denoc", about="centre")),
        ("modules", "kinematic modules [Saha2013]", formulation("module_recursion")),
        ("operators", "spatial operators [Wolinski2015]", formulation("spatial_operators")),
        ("points", "seven equimomental points [Gupta2013]", formulation("points_dynamics")),
        ("lagrange", "Lagrange's equations by differentiation", formulation("lagrange")),
        ("pinocchio", "Pinocchio", peer("pinocchio")),
        ("mujoco", "MuJoCo", peer("mujoco")),
    )
}
"""Every route but the recursive one, which all are compared with."""


def chosen(names) -> tuple[Route, ...]:
    """Return routes by name (all for None); a Route stands for itself."""
    if names is None:
        return tuple(ROUTES.values())
    out = []
    for name in (names,) if isinstance(names, str | Route) else names:
        if not isinstance(name, Route) and name not in ROUTES:
            raise unknown_name("route", name, ROUTES)
        out.append(name if isinstance(name, Route) else ROUTES[name])
    return tuple(out)
