"""Pinocchio as a route: a model built joint by joint from a Mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ... import loops
from ...algebra.vectors import from_moments, to_vector
from ...joints import ROTATION, TRANSLATION, kind
from ...model.mechanism import Mechanism, resolve_parts
from ...model.parameters import plain_number
from ...model.parts import GROUND, Body, Joint, Placement
from ...model.scales import characteristic_length, characteristic_mass
from .comparisons import Answers, NotRun, Solver, State

pin: Any = import_module("pinocchio")


def prepare(mechanism: Mechanism) -> Solver:
    """Return the Solver of a mechanism, with its model built once."""
    model, carriers, order = build(mechanism)
    data = model.createData()

    def solve(s: State) -> Answers:
        qd, qdd, tau = s.qd[order], s.qdd[order], s.tau[order]
        zero = np.zeros(model.nv)
        forces = _forces(model, carriers, s.wrenches)
        upper = np.triu(np.array(pin.crba(model, data, s.q)))  # older versions fill only the upper triangle
        inertia = upper + np.triu(upper, 1).T
        back = np.argsort(order)
        return Answers(
            tau=np.array(pin.rnea(model, data, s.q, qd, qdd, forces))[back],
            I=inertia[np.ix_(back, back)],
            gravity=np.array(pin.computeGeneralizedGravity(model, data, s.q))[back],
            bias=np.array(pin.rnea(model, data, s.q, qd, zero, forces))[back],
            qdd=np.array(pin.aba(model, data, s.q, qd, tau, forces))[back] if s.invertible else None,
        )

    return solve


def build(mechanism: Mechanism) -> tuple[Any, list, np.ndarray]:
    """Return the model, the joint and pose of each body in the model, and the order of velocities.

    The velocities of a free joint are [v; omega] in Pinocchio and [omega; v] here. Bodies on fixed joints become parts
    of their parents.
    """
    model = pin.Model()
    values = mechanism.values()
    model.gravity.linear = np.array(resolve_parts(mechanism.gravity, values), dtype=float)
    carriers: list[tuple[int, Any]] = []
    order: list[int] = []
    armature: list[float] = []
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        body, joint = resolve_parts(body, values), resolve_parts(joint, values)
        parent = mechanism.parents[i]
        above, place = carriers[parent] if parent >= 0 else (0, pin.SE3.Identity())
        place = place * se3(joint.placement)
        nv = kind(joint.kind).NV
        if not nv:
            carriers.append((above, place))
        else:
            made = _joint(joint)
            number = model.addJoint(above, made, place, joint.name)
            carriers.append((number, pin.SE3.Identity()))
            mine = np.arange(len(order), len(order) + nv)
            shuffled = mine[[3, 4, 5, 0, 1, 2]] if _flies(joint) else mine
            own = joint.armature or (0.0,) * len(mine)
            armature += [own[k - mine[0]] for k in shuffled]
            order += shuffled.tolist()
        number, place = carriers[-1]
        if number > 0:
            model.appendBodyToJoint(number, _inertia(body), place)
    model.armature = np.array(armature, dtype=float)
    return model, carriers, np.array(order, dtype=int)


def _inertia(body: Body) -> Any:
    try:
        return pin.Inertia(
            plain_number(body.mass), np.array(body.com, float), np.array(from_moments(body.inertia), float)
        )
    except (RuntimeError, ValueError) as error:
        raise NotRun(f"Pinocchio refuses the inertia of body {body.name!r}: {error}") from None


def _flies(joint: Joint) -> bool:
    return kind(joint.kind).PEERS.get("pinocchio") == "JointModelFreeFlyer"


def _joint(joint: Joint) -> Any:
    own, steps = kind(joint.kind), kind(joint.kind).steps(joint)
    if steps is None:
        name = own.PEERS.get("pinocchio")
        if name is None:
            raise NotRun(f"Pinocchio has no {joint.kind} joint (joint {joint.name!r})")
        if "axis" not in own.DATA:
            return getattr(pin, name)()
        axis = np.array(joint.axis, dtype=float)
        return getattr(pin, name)(axis / np.linalg.norm(axis), *(float(getattr(joint, key)) for key in own.DATA[1:]))
    made = {ROTATION: pin.JointModelRevoluteUnaligned, TRANSLATION: pin.JointModelPrismaticUnaligned}
    single = [made[what](np.array(axis, dtype=float)) for what, axis in steps]
    if len(single) == 1:
        return single[0]
    whole = pin.JointModelComposite(len(single))
    for one in single:
        whole.addJoint(one)
    return whole


def se3(placement: Placement) -> Any:
    """Return a placement as Pinocchio's SE3."""
    return pin.SE3(np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float))


def _forces(model: Any, carriers: list, wrenches: np.ndarray) -> Any:
    """Return the external forces about the joints' origins, in the joints' frames."""
    total = [pin.Force.Zero() for _ in range(model.njoints)]
    for (number, place), w in zip(carriers, wrenches, strict=True):
        if number > 0:
            total[number] = total[number] + place.act(pin.Force(w[3:], w[:3]))
    forces = pin.StdVec_Force()
    forces.extend(total)
    return forces


# --- Pinocchio's constraint dynamics: the loops of a Mechanism as rigid point constraints ---

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
    for loop in resolve_parts(mechanism.loops, mechanism.values()):
        if loop.kind not in points:
            raise NotRun(f"Pinocchio's constraints have no {loop.kind} loop ({loop.name!r})")
        axes = length * np.array(loops.frame(loop), dtype=float)
        for point in points[loop.kind]:
            sides = []
            for body, placement in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
                number, place = (0, pin.SE3.Identity()) if body == GROUND else carriers[index[body]]
                at = np.array(placement.translation) + np.array(placement.rotation) @ axes @ point
                sides += [number, place * se3(Placement(to_vector(at)))]
            out.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *sides, pin.ReferenceFrame.LOCAL))
    return out
