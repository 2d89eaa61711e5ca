"""RolledProgram: what the loops of a page do to a body of each class; the form that every target reads.

Nothing in it depends on the number of bodies or on their numbers: these are in tables (bound.py), so that one code
serves chains of any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..ir.operations import Op

Key = tuple[str, int]
"""A scalar of a field: the field's name and the scalar's number."""

TABLE = ("const",)
"""The group of inputs that are numbers of a body, by name."""

GLOBAL = ("global",)
"""The group of inputs that all bodies share: gravity, and the place of a frame on its body."""

CLASS, COUNT, PARENT, FIRST_Q, FIRST_V, BODY, ROW, SLOT = range(8)
"""The entries of a segment: class, number of bodies, the parent's row (0: the ground), first coordinate, first degree
of freedom, first body, where its numbers begin in the table and where its slots begin in the workspace."""


@dataclass(frozen=True)
class BodyClass:
    """What bodies have in common that are run by the same code.

    A `lean` joint has one axis, as its parent has, in frames of Denavit and Hartenberg: its placement is
    Rx(alpha) Rz(theta) and (a, 0, b). With `armature` the joint's drive has inertia. With `loaded` an external wrench
    may act on the body.
    """

    kind: str
    lean: bool = False
    armature: bool = False
    loaded: bool = False
    sequence: str = ""


@dataclass(frozen=True)
class Step:
    """Straight-line arithmetic: operations as in a Program, and where their results go.

    Inputs are (Op.INPUT, group, index), with the groups TABLE, GLOBAL, ("array", name), ("slot",), ("in", loop) for
    carries and ("row", loop, "ground" or "frame") for what a loop left there. Targets are ("carry", place),
    ("slot", place), ("out", entry), ("column", row, k) or ("made", place).
    """

    ops: tuple[tuple, ...]
    results: tuple[tuple[tuple, int], ...]


@dataclass(frozen=True)
class Loop:
    """One sweep over all bodies: a step for each class. `keys` are the carries, `ground` what they begin with."""

    index: int
    direction: str
    keys: tuple[Key, ...]
    steps: tuple[Step, ...]
    ground: Step


@dataclass(frozen=True)
class RolledProgram:
    """The loops of a page, then `last` for results of the whole.

    `classes` are those of the bodies. `columns` are the numbers in each class's row of the table, `slots` is the size
    of its row of the workspace. `shared` are the numbers that all bodies share. `output` is the order of the results:
    by "joints", "bodies", "columns" or "whole". With `coordinates` joints give coordinates, otherwise degrees of
    freedom.
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
        """Whether sines of coordinates are needed."""
        return any(is_angle(s.ops, op) for loop in self.loops for s in loop.steps for op in s.ops)


def is_angle(ops: Sequence[tuple], op: tuple) -> bool:
    """Tell whether an operation is the sine or cosine of a coordinate, which is computed before the sweeps."""
    return op[0] in (Op.SIN, Op.COS) and ops[op[1]][:2] == (Op.INPUT, ("array", "q"))
