"""Lengths of closed mechanisms as inputs of their pages: a change shows whether the loops still close."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..algebra.scalars import Scalar
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import Expression, Parameter
from ..model.parts import Placement
from ..plots.links import between_points

MOST = 10
"""The largest number of lengths that become inputs; a mechanism with more keeps its numbers."""
SHORT = 1e-9
"""Lengths below this part of the longest one are zeros with rounding errors."""


@dataclass(frozen=True)
class Length:
    """A length that is a parameter, and its body and joint or loop; both are empty for parameters of the model.

    `made` is true for parameters that the model does not have, or that are not free in it.
    """

    parameter: str
    body: str = ""
    end: str = ""
    made: bool = True


def free_lengths(mechanism: Mechanism) -> tuple[Mechanism, tuple[Length, ...]]:
    """Return a mechanism with the lengths of its loops as free parameters, and these lengths.

    Parameters in the placements of joints and loops become free. A placement of numbers keeps its direction, and its
    distance becomes a parameter. Mechanisms without loops, with rolling or with many lengths stay as they are.
    """
    if not mechanism.loops or mechanism.rolls:
        return mechanism, ()
    made = _Freeing(mechanism)
    joints = [
        replace(j, placement=made.placement(j.placement, j.parent, j.name)) if _in_loop(mechanism, j) else j
        for j in mechanism.joints
    ]
    loops = [
        replace(
            x,
            placement_a=made.placement(x.placement_a, x.body_a, x.name),
            placement_b=made.placement(x.placement_b, x.body_b, x.name),
            length=made.distance(x.length, x.name, x.name),
        )
        for x in mechanism.loops
    ]
    if not 0 < len(made.lengths) <= MOST:
        return mechanism, ()
    named = {x.parameter for x in made.lengths}
    parameters = [replace(p, free=p.free or p.name in named) for p in mechanism.parameters]
    freed = replace(mechanism, joints=tuple(joints), loops=tuple(loops), parameters=(*parameters, *made.parameters))
    return freed, tuple(made.lengths)


class _Freeing:
    """The lengths of a mechanism that become parameters, one after the other."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.short = SHORT * max(mechanism.lengths, default=1.0)
        self.taken = {p.name for p in mechanism.parameters}
        self.free = {p.name for p in mechanism.free_parameters}
        self.lengths: list[Length] = []
        self.parameters: list[Parameter] = []

    def placement(self, placement: Placement, body: str, end: str) -> Placement:
        along = placement.translation
        if any(isinstance(x, Expression) for x in along):
            for x in along:
                self.named(x)
            return placement
        if (distance := math.hypot(*along)) <= self.short:
            return placement
        unit = self.distance(distance, body, end)
        return replace(placement, translation=tuple(float(x) / distance * unit if x else 0.0 for x in along))

    def distance(self, value: Scalar, body: str, end: str) -> Scalar:
        if isinstance(value, Expression):
            return self.named(value)
        if not value:
            return value
        name = f"length_{len(self.lengths) + 1}"
        while name in self.taken:
            name += "_"
        self.lengths.append(Length(name, body, end))
        self.parameters.append(Parameter(name, float(value), free=True, unit="m"))
        return Expression("name", (name,))

    def named(self, value: object) -> Scalar:
        known = {x.parameter for x in self.lengths}
        if isinstance(value, Expression):
            self.lengths += [Length(name, made=name not in self.free) for name in sorted(value.names() - known)]
        return value


def with_lengths(mechanism: Mechanism, values: Sequence[float]) -> Mechanism:
    """Return a mechanism with its free parameters, and the lengths that `free_lengths` adds to them, at given values.

    What was a number is a number again, and what was a parameter has another value.
    """
    freed, lengths = free_lengths(mechanism)
    given = dict(zip((p.name for p in freed.free_parameters), map(float, values), strict=True))
    own = {p.name: replace(p, value=given.get(p.name, p.value)) for p in mechanism.parameters}
    if not lengths:
        return replace(mechanism, parameters=tuple(own.values()))
    terms: dict[str, Scalar] = given | {name: Expression("name", (name,)) for name in own}
    return replace(
        mechanism,
        joints=resolve_parts(freed.joints, terms),
        loops=resolve_parts(freed.loops, terms),
        parameters=tuple(own.values()),
    )


def length_table(mechanism: Mechanism, lengths: tuple[Length, ...]) -> list[dict[str, object]]:
    """Return the lengths for the page: the place of the parameter among the free ones, and a label in words."""
    places = {p.name: k for k, p in enumerate(mechanism.free_parameters)}
    notes = {p.name: p.note for p in mechanism.free_parameters}
    index = {body.name: i for i, body in enumerate(mechanism.bodies)}
    of = Counter(x.body for x in lengths)
    return [
        {
            "parameter": places[x.parameter],
            "body": index.get(x.body, -1),
            "made": x.made,
            "label": x.parameter if not x.body else x.body if of[x.body] == 1 else f"{x.body} to {x.end}",
            "note": notes[x.parameter],
        }
        for x in lengths
    ]


def placements_program(mechanism: Mechanism) -> Program | None:
    """Return the Program (parameters) -> (frames, loops, forces) of placements, with those that exist, or None.

    `frames` are those of the named frames on their bodies, `loops` those of both ends of each loop, each as the sixteen
    entries of its matrix, row by row. `forces` are both points of each force element between points.
    """
    free = mechanism.free_parameters
    trace = Trace()
    given = mechanism.values([trace.input(0, k) for k in range(len(free))])
    ends = [end for x in mechanism.loops for end in (x.placement_a, x.placement_b)]
    elements = between_points(mechanism.forces, mechanism.joints)
    entries = {
        "frames": [x for frame in mechanism.frames for x in _entries(frame.placement, given)],
        "loops": [x for end in ends for x in _entries(end, given)],
        "forces": [x for e in elements for point in (e.point_a, e.point_b) for x in resolve_parts(point, given)],
    }
    outputs = {name: numbers for name, numbers in entries.items() if numbers}
    if not free or not outputs:
        return None
    arrays = [Array(name, (len(entries),)) for name, entries in outputs.items()]
    return Program.of_trace("placements", [Array("parameters", (len(free),))], arrays, trace, list(outputs.values()))


def _entries(placement: Placement, values: dict[str, Any]) -> list[Scalar]:
    R, p = resolve_parts(placement.rotation, values), resolve_parts(placement.translation, values)
    return [x for row, at in zip(R, p, strict=True) for x in (*row, at)] + [0.0, 0.0, 0.0, 1.0]


def _in_loop(mechanism: Mechanism, joint: Any) -> bool:
    """Return whether loops pass through a joint: its body, or one beyond it, is an end of a loop."""
    children: dict[str, list[str]] = {}
    for j in mechanism.joints:
        children.setdefault(j.parent, []).append(j.child)
    ends = {body for x in mechanism.loops for body in (x.body_a, x.body_b)}
    beyond = [joint.child]
    for body in beyond:
        beyond += children.get(body, [])
    return bool(ends & set(beyond))
