"""Programs of contacts: their motion at a state, and the answers of the mechanism to unit contact forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import contact_geometry as contact_kinds
from ...algebra.propagation import Pose, Propagation
from ...algebra.rotations import Full, Rotation
from ...algebra.scalars import Scalar, is_number
from ...algebra.vectors import Matrix, Vector, add, dot, matmul, times, transpose
from ...contact_geometry import Feature
from ...dynamics import closed, contact, kinematics
from ...dynamics.closure import Relative, Row, of_row, row_of
from ...errors import InputError
from ...model.contacts import Contact, Surface
from ...model.mechanism import Mechanism
from ...model.parts import GROUND, Placement
from ..ir.program import Array, Program
from ..ir.trace import Trace
from .build import UNROLLED, ClosedTree, tree_maker

# --- Contacts in sorts, each of which has the same operations: code then grows with the bodies, not with the contacts
#
# A pair is a body and a surface that it may touch. Its motion determines that of all its contacts. What they
# differ in are numbers, such as the centers of balls, which are inputs.

FIELDS = (
    ("center", 3), ("radius", 1), ("friction", 1), ("restitution", 1), ("turn", 9), ("half", 3), ("mark", 3),
    ("solid", 3),
)  # fmt: skip
"""The numbers of a feature of a shape: its center, its laws, and what rims and features on solids have besides: axes in
the working frame of its body, in which the center is given then, and for solids the numbers of a Feature and the sizes
of the solid."""


MOTION, RATES, FRAME = 18, 6, 15
"""The numbers of a pair: rotation, position and twist of the working frame of the body relative to the surface; a rate
or a change of this twist; and, where surfaces move, the frame of the surface on its own body, and gravity in it."""
GRAVITY = MOTION + RATES + 12
"""The place of gravity among the numbers of a pair."""


@dataclass(frozen=True)
class Sort:
    """Contacts with the same operations: those of a feature with a surface, under a law of restitution.

    `carried` tells whether the surface is fixed to a body, not to the ground.
    """

    surface: Surface
    feature: str
    law: str
    elastic: bool
    carried: bool

    @property
    def count(self) -> int:
        """The number of candidates of a feature."""
        part = "" if self.feature in ("point", "ball") else self.feature
        return len(contact_kinds.sides_of(self.surface, Feature(part=part)))

    @property
    def solid(self) -> bool:
        """Whether the surface is a solid."""
        return self.surface.kind in contact_kinds.SOLIDS


@dataclass(frozen=True)
class Column:
    """A number of each feature of a batch: constants, or consecutive entries of the data from the first one on."""

    numbers: tuple[float, ...] = ()
    first: int = 0


@dataclass(frozen=True)
class Batch:
    """The features of one sort on one pair, with the first candidate of each and a column per number of FIELDS."""

    pair: int
    sort: int
    candidates: tuple[int, ...]
    columns: tuple[Column, ...]


def pairs_of(mechanism: Mechanism) -> list[list[int]]:
    """Return the contacts of each body with each surface, by number."""
    found: list[list[int]] = []
    for k, x in enumerate(mechanism.contacts):
        for group in found:
            first = mechanism.contacts[group[0]]
            if first.body == x.body and first.surface == x.surface:
                group.append(k)
                break
        else:
            found.append([k])
    return found


def batches_of(groups: list[list[int]], records: list[Any]) -> tuple[list[Sort], list[Batch], list]:
    """Return the sorts of contacts, the batches of their features, and the numbers that depend on parameters."""
    laws: list[Contact] = [x.contact for x in records]
    firsts = [0]
    for x in laws:
        firsts.append(firsts[-1] + len(contact_kinds.labels(x)))
    sorts: list[Sort] = []
    data: list[Scalar] = []
    batches = []
    for s, group in enumerate(groups):
        found: dict[int, list[tuple[int, list[Scalar]]]] = {}
        for k in group:
            at = firsts[k]
            for feature in contact_kinds.features_of(laws[k]):
                sort = _sort_of(laws[k], feature)
                if sort not in sorts:
                    sorts.append(sort)
                found.setdefault(sorts.index(sort), []).append((at, _numbers(records[k], feature)))
                at += sort.count
        for sort, members in found.items():
            columns = [_column(list(x), data) for x in zip(*(numbers for _, numbers in members), strict=True)]
            batches.append(Batch(s, sort, tuple(at for at, _ in members), tuple(columns)))
    return sorts, batches, data


def _sort_of(laws: Contact, feature: Feature) -> Sort:
    plain = replace(laws.surface, body=GROUND, placement=Placement(), size=())
    elastic = not (is_number(laws.restitution) and laws.restitution == 0.0)
    return Sort(plain, feature.sort, laws.law if elastic else "newton", elastic, laws.surface.body != GROUND)


def _numbers(record: Scalar, feature: Feature) -> list[Scalar]:
    """Return the numbers of FIELDS of a feature; those from the turn on only where it needs them."""
    contact, turn, center = record.contact, record.b.R, add(record.b.r, times(record.b.R, feature.at))
    solid = contact.surface.kind in contact_kinds.SOLIDS
    more = []
    if feature.part == "rim" or solid:
        turn = feature.turned(turn)
        center = times(transpose(turn), center)
        more = [x for row in turn for x in row]
    if solid:
        more += [*feature.half, *feature.mark, *contact.surface.size, *[0.0] * (3 - len(contact.surface.size))]
    return [*center, feature.radius, contact.friction, contact.restitution, *more]


def _column(numbers: list[Scalar], data: list[Scalar]) -> Column:
    if all(is_number(x) for x in numbers):
        return Column(tuple(map(float, numbers)))
    data += numbers
    return Column(first=len(data) - len(numbers))


def sort_inputs(*, moves: bool) -> tuple[Array, ...]:
    """Return the inputs of the Programs of sorts: a pair, then FIELDS."""
    sizes = (("pair", MOTION + RATES + (FRAME if moves else 0)), *FIELDS)
    return tuple(Array(name, (size,)) for name, size in sizes)


@dataclass(frozen=True)
class Touch:
    """A candidate of a feature: its gap, point and axes, its equations as rows, and the changes of their rates.

    Points and axes are in the frame of the surface.
    """

    gap: Scalar
    point: Vector
    axes: Matrix
    equations: Any
    rows: list[Row]
    changes: list[Scalar]


def touches_of(sort: Sort, given: dict[str, Any], *, moves: bool = False) -> list[Touch]:
    """Return the candidates of a feature of a sort, from the inputs of `sort_inputs`."""
    pair, rim, surface = given["pair"], sort.feature == "rim", sort.surface
    R, r, w, v = matrix_of(pair), vector_of(pair, 9), vector_of(pair, 12), vector_of(pair, 15)
    dw, dv = vector_of(pair, 18), vector_of(pair, 21)
    A = Propagation(vector_of(pair, 33), Rotation((Full(matrix_of(pair[24:33])),))) if moves else Propagation()
    radius = 0.0 if sort.feature == "point" else given["radius"][0]
    feature = Feature(vector_of(given["center"]), radius, "rim" if rim else "")
    turned = matmul(R, matrix_of(given["turn"])) if rim or sort.solid else R
    if sort.solid:
        part = "" if sort.feature in ("point", "ball") else sort.feature
        feature = replace(feature, part=part, half=vector_of(given["half"]), mark=vector_of(given["mark"]))
        sizes = len(contact_kinds.SOLIDS[surface.kind].sizes)
        surface = replace(surface, size=tuple(given["solid"][:sizes]))
    motion, ends, out = Relative(r, R, w, v, dw, dv), _Ends(_End(A), _End(Propagation())), []
    for x in contact_kinds.of_feature(surface, feature, r, turned, w, v):
        rows = [row_of(ends, motion, e) for e in x.equations]
        changes = [dot(e.n, dw) + dot(e.f, dv) for e in x.equations]
        out.append(Touch(x.gap, add(r, x.arm), x.axes, x.equations, rows, changes))
    return out


@dataclass(frozen=True)
class _End:
    """An end of the rows of a contact, without its body."""

    A: Propagation
    record: Any = None


@dataclass(frozen=True)
class _Ends:
    a: _End
    b: _End
    chain_a: tuple = ()
    chain_b: tuple = ()


def matrix_of(x: Sequence[Scalar]) -> Matrix:
    """Return nine scalars as a matrix, row by row."""
    return tuple(x[:3]), tuple(x[3:6]), tuple(x[6:9])


def vector_of(x: Sequence[Scalar], first: int = 0) -> Vector:
    """Return three scalars from one on as a vector."""
    return x[first], x[first + 1], x[first + 2]


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
        "gap": (nc,),
        "velocity": (nc, 3),
        "bias": (nc, 3),
        "J": (nc, 3, nv),
        "points": (nc, 3),
        "axes": (nc, 3, 3),
    }

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
