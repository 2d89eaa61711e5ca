"""Pinocchio's constraint dynamics: the loops of a Mechanism as rigid point constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .... import loops
from ....model.mechanism import Mechanism, resolved
from ....model.parts import GROUND, Placement
from ....model.scales import characteristic_length, characteristic_mass
from ..answers import NotRun
from .pinocchio import build, pin, se3

Points = tuple[tuple[float, float, float], ...]
POINTS: dict[str, Points] = {name: kind.points for name, kind in loops.KINDS.items() if kind.points}
"""The points of each kind of loop at which both sides coincide, along the axes of the loop [lengths]."""


def closed_dynamics(mechanism: Mechanism, *, accuracy: float = 1e-14, mu: float = 1e-10) -> Callable[..., np.ndarray]:
    """Return the function (q, qd, tau) -> qdd for one closed state, with q, qd and qdd in Kinetree's order.

    `accuracy` and `mu` are those of Pinocchio's proximal iteration, which redundant equations require. Their units are
    the mechanism's own: its length per s^2, and the inverse of its mass.
    """
    model, _, order = build(mechanism)
    constraints = pin.StdVec_RigidConstraintModel()
    constraints.extend(rigid_constraints(mechanism))
    data, states = model.createData(), pin.StdVec_RigidConstraintData()
    states.extend([c.createData() for c in constraints])
    length, mass = characteristic_length(mechanism), characteristic_mass(mechanism)
    settings = pin.ProximalSettings(accuracy * length, mu / mass, 100)
    pin.initConstraintDynamics(model, data, constraints, states)
    back = np.argsort(order)

    def solve(q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        out = pin.constraintDynamics(model, data, q, qd[order], tau[order], constraints, states, settings)
        return np.array(out)[back]

    return solve


def rigid_constraints(mechanism: Mechanism, *, points: Mapping[str, Points] = POINTS) -> list[Any]:
    """Return Pinocchio's constraints for the loops of a mechanism: the `points` of each kind of loop coincide.

    Points are in units of the mechanism's length, so that constraints of one loop have forces of similar size.
    """
    model, carriers, _ = build(mechanism)
    index = {b.name: i for i, b in enumerate(mechanism.bodies)}
    length, out = characteristic_length(mechanism), []
    for loop in resolved(mechanism.loops, mechanism.values()):
        if loop.kind not in points:
            raise NotRun(f"Pinocchio's constraints have no {loop.kind} loop ({loop.name!r})")
        axes = length * np.array(loops.frame(loop), dtype=float)
        for point in points[loop.kind]:
            sides = []
            for body, placement in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
                number, place = (0, pin.SE3.Identity()) if body == GROUND else carriers[index[body]]
                at = np.array(placement.translation) + np.array(placement.rotation) @ axes @ point
                sides += [number, place * se3(Placement(tuple(at)))]  # type: ignore[arg-type]
            out.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *sides, pin.ReferenceFrame.LOCAL))
    return out
