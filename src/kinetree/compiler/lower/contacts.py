"""Programs of contacts: their motion at a state, and the answers of the mechanism to unit contact forces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import contacts as contact_kinds
from ...dynamics import closed, contact
from ...errors import InputError
from ...model.mechanism import Mechanism
from ..ir.program import Array, Program
from ..ir.trace import Trace
from .build import UNROLLED, tree_maker
from .closed_tree import ClosedTree


def candidate_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the names of all candidates of the contacts of a mechanism, in order."""
    return tuple(label for x in mechanism.contacts for label in contact_kinds.labels(x))


def motion_program(mechanism: Mechanism) -> Program:
    """Return (q, qd[, parameters]) -> (gap, velocity, bias, J, points, axes), with three rows per candidate.

    Gaps [nc] in m; velocities J qd and biases dJ/dt qd [nc, 3] along the normal and two tangents; J [nc, 3, nv]; points
    [nc, 3] and axes [nc, 3, 3], by rows n, t1, t2, in the ground's frame.
    """
    nc, nv = len(candidate_names(mechanism)), mechanism.nv
    shapes = {
        "gap": (nc,), "velocity": (nc, 3), "bias": (nc, 3), "J": (nc, 3, nv), "points": (nc, 3), "axes": (nc, 3, 3),
    }  # fmt: skip

    def page(given: dict[str, Any]) -> tuple:
        return contact.contact_motion(ClosedTree(mechanism, given))

    return _program("contact_motion", mechanism, ("q", "qd"), shapes, page)


def response_program(mechanism: Mechanism) -> Program:
    """Return (q[, parameters]) -> (W, X): the Delassus matrix [3 nc, 3 nc] and the accelerations X [nv, 3 nc]."""
    rows, nv = 3 * len(candidate_names(mechanism)), mechanism.nv
    make = tree_maker(mechanism)
    shapes = {"W": (rows, rows), "X": (nv, rows)}
    return _program(
        "contact_response", mechanism, ("q",), shapes, lambda x: contact.contact_response(make(mechanism, x))
    )


def answer_program(mechanism: Mechanism) -> Program:
    """Return (q, tau[, parameters]) -> qdd: the accelerations of torques at rest without gravity, loops closed.

    A batch of columns of J^T as torques gives X = I^-1 J^T: the same as `response_program` with far less code where
    there are many candidates.
    """
    make, zero = tree_maker(mechanism), [0.0] * len(mechanism.closures)
    shapes = {"qdd": (mechanism.nv,)}
    return _program(
        "contact_answer", mechanism, ("q", "tau"), shapes, lambda x: [closed.response(make(mechanism, x), zero)]
    )


def _program(name: str, mechanism: Mechanism, inputs: tuple[str, ...], shapes: dict, page: Callable) -> Program:
    _refuse(mechanism)
    sizes = {"q": mechanism.nq, "qd": mechanism.nv, "tau": mechanism.nv}
    arrays = [Array(x, (sizes[x],)) for x in inputs]
    if mechanism.free_parameters:
        arrays.append(Array("parameters", (len(mechanism.free_parameters),)))
    trace = Trace()
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(arrays)}
    outputs = tuple(Array(x, shape) for x, shape in shapes.items())
    return Program.of_trace(name, tuple(arrays), outputs, trace, [list(x) for x in page(given)])


def _refuse(mechanism: Mechanism) -> None:
    if not mechanism.contacts or not mechanism.nv:
        lacks = "contacts" if mechanism.nv else "degrees of freedom"
        raise InputError(f"{mechanism.name!r} has no {lacks}: no contact can act on it")
    if len(mechanism.bodies) > UNROLLED:
        raise InputError(
            f"{mechanism.name!r} has {len(mechanism.bodies)} bodies; contacts are compiled for {UNROLLED} at most: "
            "simulate a part of it, or use forces such as SpringDamper"
        )
