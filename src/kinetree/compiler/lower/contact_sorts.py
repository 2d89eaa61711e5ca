"""Contacts in sorts, each of which has the same operations: code then grows with the bodies, not with the contacts.

A pair is a body and a surface that it may touch. Its motion determines that of all its contacts. What they
differ in are numbers, such as the centers of balls, which are inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import contact_geometry as contact_kinds
from ...algebra.propagation import Propagation
from ...algebra.rotations import Full, Rotation
from ...algebra.scalars import is_number
from ...algebra.vectors import Vector, add, dot, matmul, times, transpose
from ...contact_geometry.features import Feature, features
from ...dynamics.closure import Relative, Row, row_of
from ...model.contacts import Contact, Surface
from ...model.mechanism import Mechanism
from ...model.parts import GROUND, Placement
from ..ir.program import Array

FIELDS = (("center", 3), ("radius", 1), ("friction", 1), ("restitution", 1), ("turn", 9))
"""The numbers of a feature of a shape: its center and the axes of a rim in the working frame of its body, and its laws;
the center of a rim is given in these axes."""


MOTION, RATES, FRAME = 18, 6, 12
"""The numbers of a pair: rotation, position and twist of the working frame of the body relative to the surface; a rate
or a change of this twist; and, where surfaces move, the frame of the surface on its own body."""


@dataclass(frozen=True)
class Sort:
    """Contacts with the same operations: those of a feature with a surface, under a law of restitution."""

    surface: Surface
    feature: str
    law: str
    elastic: bool

    @property
    def count(self) -> int:
        """The number of candidates of a feature."""
        return contact_kinds.count_of(self.surface, Feature(rim=self.feature == "rim"))


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
    data: list[Any] = []
    batches = []
    for s, group in enumerate(groups):
        found: dict[int, list[tuple[int, list[Any]]]] = {}
        for k in group:
            at = firsts[k]
            for feature in features(laws[k]):
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
    plain = replace(laws.surface, body=GROUND, placement=Placement())
    elastic = not (is_number(laws.restitution) and laws.restitution == 0.0)
    return Sort(plain, feature.sort, laws.law if elastic else "newton", elastic)


def _numbers(record: Any, feature: Feature) -> list[Any]:
    """Return the numbers of FIELDS of a feature; those of the turn only of a rim."""
    turn, center = record.b.R, add(record.b.r, times(record.b.R, feature.at))
    center = times(transpose(turn), center) if feature.rim else center
    more = [x for row in turn for x in row] if feature.rim else []
    return [*center, feature.radius, record.contact.friction, record.contact.restitution, *more]


def _column(numbers: list[Any], data: list[Any]) -> Column:
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

    gap: Any
    point: Any
    axes: Any
    equations: Any
    rows: list[Row]
    changes: list[Any]


def touches_of(sort: Sort, given: dict[str, Any], *, moves: bool = False) -> list[Touch]:
    """Return the candidates of a feature of a sort, from the inputs of `sort_inputs`."""
    pair, rim = given["pair"], sort.feature == "rim"
    R, r, w, v = matrix_of(pair), vector_of(pair, 9), vector_of(pair, 12), vector_of(pair, 15)
    dw, dv = vector_of(pair, 18), vector_of(pair, 21)
    A = Propagation(vector_of(pair, 33), Rotation((Full(matrix_of(pair[24:33])),))) if moves else Propagation()
    feature = Feature(vector_of(given["center"]), 0.0 if sort.feature == "point" else given["radius"][0], rim)
    turned = matmul(R, matrix_of(given["turn"])) if rim else R
    motion, ends, out = Relative(r, R, w, v, dw, dv), _Ends(_End(A), _End(Propagation())), []
    for x in contact_kinds.of_feature(sort.surface, feature, r, turned, w, v):
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


def matrix_of(x: Sequence[Any]) -> Any:
    """Return nine scalars as a matrix, row by row."""
    return tuple(x[:3]), tuple(x[3:6]), tuple(x[6:9])


def vector_of(x: Sequence[Any], first: int = 0) -> Vector:
    """Return three scalars from one on as a vector."""
    return x[first], x[first + 1], x[first + 2]
