"""Inverse dynamics on the ground: joint torques and contact forces that realize a motion of a floating mechanism.

The equations of motion are I qdd + h = S tau + J^T f. Those of the axes without a drive, such as the six of a floating
base, contain the contact forces alone. These are the smallest in their friction cones that satisfy them, or come
nearest. The torques of the drives follow from the other equations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...compiler.lower.contacts import candidate_names, motion_program
from ...compiler.runtime.native import native
from ...errors import InputError
from ...joints import kind
from ...model.axes import axis_labels, axis_names
from ...model.contact_numbers import ContactNumbers
from ...model.contacts import Contact, fitting
from ...model.mechanism import Mechanism
from ...model.parameter_values import Named
from ...model.parts import GROUND
from ...numbers import positive
from ..loops.acting import Acting
from ..loops.actuation import dofs
from .cones import Cones
from .least_squares import Smallest, smallest_forces
from .result import GroundForces
from .touching import Touch, given_touch, touch_of
from .undriven import undriven

TOL = 1e-6
"""The default tolerance of gaps, velocities and accelerations of contacts, in parts of l, sqrt(g l) and g: motions that
were designed, or differentiated numerically, have about as many digits."""
FLIGHT = 1e-4
"""The least size of the required forces to which missing ones are compared, in parts of the weight: in free flight,
rounding is all that is required."""


def ground_forces(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    contacts: Contact | Iterable[Contact] | None = None,
    actuated: str | Iterable[str] | None = None,
    touching: Any = None,
    wrenches: ArrayLike | None = None,
    forces: bool = False,
    parameters: Named | None = None,
    tol: float = TOL,
) -> GroundForces:
    """Return joint torques and ground forces of a motion, [..., nq] and [..., nv], for many instants at once.

    `contacts` are those of the mechanism by default. `actuated` names the joints with a drive, by default all but the
    free joints on the ground. `touching` names the contacts that carry a force by sticking, or has truth values
    [..., nc]; by default they follow from the motion, with tolerances `tol`. With `forces`, the forces of the
    mechanism act too; `parameters` are one set.
    """
    own = system.mechanism
    mechanism = own if contacts is None else replace(own, contacts=fitting(own, contacts))
    acting = Acting.of(system, wrenches, forces, parameters)
    if acting.parameters is not None and acting.parameters.ndim > 1:
        raise InputError(f"parameters have shape {acting.parameters.shape}; give one set of them")
    driven = _driven(mechanism, actuated)
    need = np.asarray(acting.torques(q, qd, qdd), dtype=float)
    lead = need.shape[:-1]
    q, qd, qdd = (np.broadcast_to(np.asarray(x, dtype=float), (*lead, np.shape(x)[-1])) for x in (q, qd, qdd))
    numbers, (gap, v, bias, J, points, axes) = contact_motion(system, mechanism, q, qd, acting.parameters)
    names = candidate_names(mechanism)
    if touching is None:
        touch = touch_of(numbers, gap, v, np.einsum("...ckv,...v->...ck", J, qdd) + bias, positive(tol, "tol"))
    else:
        touch = given_touch(names, touching, lead)
    units = ["N m" if unit == "rad" else "N" for _, _, unit in axis_names(mechanism, 1)]
    scale = np.array([1.0 / numbers.length if unit == "N m" else 1.0 for unit in units])
    free = undriven(system, (q, qd, qdd), driven, scale, acting.parameters, tol=tol)
    b = free.along(need)
    found = _smallest(b, free.along(J), touch, numbers.friction)
    required = np.maximum(np.linalg.norm(b, axis=-1), FLIGHT * numbers.weight)
    missing = np.linalg.norm(found.residual, axis=-1) / np.where(required > 0.0, required, 1.0)
    tau, residual = free.shared(need - np.einsum("...ckv,...ck->...v", J, found.forces))
    return GroundForces(
        tau, found.forces, residual, missing, touch.modes, touch.inward, found.settled, points, axes, numbers.friction,
        numbers.grounded, names, tuple(axis_labels(mechanism, 1)), tuple(units),
    )  # fmt: skip


def contact_motion(
    system: CompiledMechanism, mechanism: Mechanism, q: Numbers, qd: Numbers, parameters: Numbers | None
) -> tuple[ContactNumbers, tuple[Numbers, ...]]:
    """Return the numbers of the contacts, and gaps, velocities, biases, J, points and axes of their candidates."""
    # one function for all coefficients of friction, such as those of a sweep
    geometry = tuple((c.body, c.shape, c.size, c.placement, c.surface) for c in mechanism.contacts)
    motion = system._part(("contact motion", geometry), lambda: native(motion_program(mechanism)))
    if parameters is None and mechanism.free_parameters:
        parameters = np.array([p.value for p in mechanism.free_parameters], dtype=float)
    numbers = ContactNumbers.of(mechanism, None if parameters is None else parameters.tolist())
    return numbers, motion(q, qd, *(() if parameters is None else (parameters,)))


def _smallest(b: Numbers, J: Numbers, touch: Touch, mu: Numbers) -> Smallest:
    """Return the forces for b [..., m] and J [..., nc, 3, m]."""
    *lead, m = b.shape
    nc = J.shape[-3]
    cones = Cones.of(touch.modes.reshape(-1, nc), mu, touch.slip.reshape(-1, nc, 2))
    found = smallest_forces(np.moveaxis(J.reshape(-1, nc, 3, m), -1, 1), b.reshape(-1, m), cones)
    return Smallest(found.forces.reshape(*lead, nc, 3), found.residual.reshape(b.shape), found.settled.reshape(lead))


def _driven(mechanism: Mechanism, actuated: str | Iterable[str] | None) -> list[int]:
    """Return the axes with a drive."""
    if actuated is not None:
        return dofs(mechanism, actuated)
    floats = [j for j in mechanism.joints if j.parent == GROUND and kind(j.kind).NV == 6]
    return dofs(mechanism, [j.name for j in mechanism.joints if j not in floats and kind(j.kind).NV])
