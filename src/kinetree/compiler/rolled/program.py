"""RolledProgram: the loops of an algorithm, with one step per class of bodies; the input of every target.

It does not depend on the number of bodies or on their masses and lengths, which are in tables (bound.py). The same code
therefore serves chains of any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..ir.operations import Op

Key = tuple[str, int]
"""A scalar of a field: the field's name and the scalar's number."""

TABLE = ("const",)
"""The group of inputs that are numbers of one body, by name."""

GLOBAL = ("global",)
"""The group of inputs that all bodies share: gravity, and the placement of a frame on its body."""

CLASS, COUNT, PARENT, FIRST_Q, FIRST_V, BODY, ROW, SLOT = range(8)
"""The entries of a segment.

They are its class, its number of bodies, the parent's row (0: the ground), the first coordinate, degree of freedom and
body, the start of its numbers in the table, and the start of its slots in the workspace."""


@dataclass(frozen=True)
class BodyClass:
    """The properties shared by all bodies that the same code serves.

    A `lean` joint has one axis, as its parent has, in frames of Denavit and Hartenberg: its placement is
    Rx(alpha) Rz(theta) and (a, 0, b). With `armature`, the drive of the joint has inertia. With `loaded`, an
    external wrench may act on the body.
    """

    kind: str
    lean: bool = False
    armature: bool = False
    loaded: bool = False
    sequence: str = ""


@dataclass(frozen=True)
class Step:
    """Straight-line arithmetic: operations as in a Program, and the targets of their results.

    Inputs are (Op.INPUT, group, index), with the groups TABLE, GLOBAL, ("array", name), ("slot",), ("in", loop) for
    carries and ("row", loop, "ground" or "frame") for the carries of a loop there. Targets are ("carry", place),
    ("slot", place), ("out", entry), ("column", row, k) or ("made", place).
    """

    ops: tuple[tuple, ...]
    results: tuple[tuple[tuple, int], ...]


@dataclass(frozen=True)
class Loop:
    """One sweep over all bodies: one step per class. `keys` are the carries, `ground` computes their initial values."""

    index: int
    direction: str
    keys: tuple[Key, ...]
    steps: tuple[Step, ...]
    ground: Step


@dataclass(frozen=True)
class RolledProgram:
    """The loops of an algorithm, then the step `last` for results of the whole mechanism.

    `classes` are the classes of bodies. `columns` names the numbers of a body in the table, `slots` is its number of
    slots in the workspace, both per class. `shared` names the numbers that all bodies share. `output` is the order of
    the results: by "joints", "bodies", "columns" or "whole". With `coordinates`, results by joints have one entry per
    coordinate, otherwise one per degree of freedom.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    classes: tuple[BodyClass, ...]
    loops: tuple[Loop, ...]
    last: Step
    columns: tuple[tuple[str, ...], ...]
    slots: tuple[int, ...]
    shared: tuple[str, ...]
    coordinates: bool

    @cached_property
    def angles(self) -> bool:
        """Whether steps read sines or cosines of coordinates."""
        return any(is_angle(s.ops, op) for loop in self.loops for s in loop.steps for op in s.ops)


def is_angle(ops: Sequence[tuple], op: tuple) -> bool:
    """Return whether an operation is the sine or cosine of a coordinate, which is computed before the loops."""
    return op[0] in (Op.SIN, Op.COS) and ops[op[1]][:2] == (Op.INPUT, ("array", "q"))
