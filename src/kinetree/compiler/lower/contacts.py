"""Programs of contacts: their motion at a state, and the answers of the mechanism to unit contact forces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import contact_geometry as contact_kinds
from ...algebra.poses import Pose
from ...algebra.vectors import matmul, transpose
from ...dynamics import closed, contact, kinematics
from ...dynamics.closure import of_row
from ...errors import InputError
from ...model.mechanism import Mechanism
from ..ir.program import Array, Program
from ..ir.trace import Trace
from .build import UNROLLED, ClosedTree, tree_maker
from .contact_sorts import (
    MOTION,
    RATES,
    Batch,
    Sort,
    batches_of,
    matrix_of,
    pairs_of,
    sort_inputs,
    touches_of,
    vector_of,
)


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


@dataclass(frozen=True)
class SortedMotion:
    """The same in parts, whose code grows with the bodies alone.

    `pairs` is (q, qd[, parameters]) -> (motions, units, data). Motions [pairs, 36] are those of contact_sorts.py with
    the twist rate for qdd = 0, then position and rotation of the surface in the ground's frame. Units [pairs, 6, nv]
    are J of the relative twist. A Program of `sorts` is (pair, fields, place) -> (gap, velocity, bias, wrenches,
    points, axes) of the candidates of a feature, with unit wrenches [3, 6] in the frame of the surface.
    """

    pairs: Program
    sorts: tuple[Program, ...]
    kinds: tuple[Sort, ...]
    batches: tuple[Batch, ...]


def sorted_motion(mechanism: Mechanism) -> SortedMotion:
    """Return the parts of `motion_program`."""
    groups, parts = pairs_of(mechanism), []

    def page(given: dict[str, Any]) -> tuple:
        tree = ClosedTree(mechanism, given)
        kinds, batches, data = batches_of(groups, tree.contacts)
        parts.append((kinds, batches))
        pairs = [contact.Pair([tree.contacts[k] for k in group]) for group in groups]
        kinematics.place(tree)
        motions, units = [], []
        for pair in pairs:
            place = pair.surface()
            motions += [
                *pair.entries(),
                *pair.motion.dw,
                *pair.motion.dv,
                *place.r,
                *(x for row in place.R for x in row),
            ]
            for row in map(of_row, pair.units):
                units += [row.get(k, 0.0) for k in range(mechanism.nv)]
        return motions, units, data or [0.0]

    count = len(groups)
    shapes = {"motions": (count, MOTION + RATES + 12), "units": (count, 6, mechanism.nv), "data": None}
    pairs = _program("contact_pairs", mechanism, ("q", "qd"), shapes, page)
    ((kinds, batches),) = parts
    return SortedMotion(pairs, tuple(_sort_motion(k, x) for k, x in enumerate(kinds)), tuple(kinds), tuple(batches))


def _sort_motion(number: int, sort: Sort) -> Program:
    """Return the Program of the candidates of a feature."""
    inputs, trace = (*sort_inputs(moves=False), Array("place", (12,))), Trace()
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    place = Pose(matrix_of(given["place"][3:]), vector_of(given["place"]))
    found = touches_of(sort, given)
    axes = [transpose(matmul(place.R, transpose(x.axes))) for x in found]
    results = {
        "gap": [x.gap for x in found],
        "velocity": [row.rate for x in found for row in x.rows],
        "bias": [row.bias for x in found for row in x.rows],
        "wrenches": [y for x in found for e in x.equations for y in (*e.n, *e.f)],
        "points": [y for x in found for y in place.place(x.point)],
        "axes": [y for x in axes for row in x for y in row],
    }
    n = sort.count
    shapes = ((n,), (n, 3), (n, 3), (n, 3, 6), (n, 3), (n, 3, 3))
    outputs = [Array(name, shape) for name, shape in zip(results, shapes, strict=True)]
    return Program.of_trace(f"contact_sort{number}", inputs, outputs, trace, list(results.values()))


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
    results = [list(x) for x in page(given)]
    outputs = tuple(Array(name, shape or (len(x),)) for (name, shape), x in zip(shapes.items(), results, strict=True))
    return Program.of_trace(name, tuple(arrays), outputs, trace, results)


def _refuse(mechanism: Mechanism) -> None:
    if not mechanism.contacts or not mechanism.nv:
        lacks = "contacts" if mechanism.nv else "degrees of freedom"
        raise InputError(f"{mechanism.name!r} has no {lacks}: no contact can act on it")
    if len(mechanism.bodies) > UNROLLED:
        raise InputError(
            f"{mechanism.name!r} has {len(mechanism.bodies)} bodies; contacts are compiled for {UNROLLED} at most: "
            "simulate a part of it, or use forces such as SpringDamper"
        )
