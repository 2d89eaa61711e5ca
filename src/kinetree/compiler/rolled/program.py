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


# --- The context of rolled code for every target: an array of 64-bit integers with sizes, addresses and counts.

FIELDS = (
    "bad",  # count of blocks with an input that is not finite
    "bad_any",  # count of blocks with any number that is not finite
    "failed",  # count of workspaces that could not be allocated
    "pool_1",  # a workspace for a single sample, or 0
    "pool",  # a workspace for a vector of samples, or 0
    "segment_count",
    "segments",  # a pointer to the segments; their entries are in program.py
    "table",  # a pointer to the numbers that all bodies share, followed by the numbers of each body
    "shifts",  # a pointer to the thetas of the coordinates
    "vectors",  # the size of a workspace, in vectors
    "input_vectors",  # the size of its part for the inputs
    "coordinates",  # the number of coordinates whose sines are computed
    "entries",  # the number of entries of the table
    "code",  # a pointer: for each entry of the table the index of its computed number, or -1
    "make_1",  # a pointer to the function that computes numbers from parameters, for one sample
    "make",  # the same for a vector of samples
    "frame",  # the row of the frame's body
    "nv",
)
SHAPE = 3
"""The largest number of core dimensions of an array."""

PAD = 16
"""The granularity of parts of a workspace, in vectors, so that they are whole cache lines for any number of lanes."""


class Layout:
    """The index in the context of each field, of the shape of each array, and of the offset of each workspace part."""

    def __init__(self, program: RolledProgram) -> None:
        """Number the entries of the context."""
        self.arrays = (*program.inputs, "out")
        rows = (f"rows{k}" for k in range(len(program.loops)))
        self.regions = (*program.inputs, "out", "sin", "cos", "slots", "table", "made", *rows)
        names = [*FIELDS, *(f"{a}.{d}" for a in self.arrays for d in range(SHAPE)), *(f"{r}@" for r in self.regions)]
        self.places = {name: k for k, name in enumerate(names)}


@dataclass(frozen=True)
class RolledUnit:
    """A rolled program for a target to compile, with the numbers of core dimensions of its inputs and output.

    If `parametric` is true, the table depends on the last input and is computed again for each block of samples.
    """

    program: RolledProgram
    ranks: tuple[int, ...]
    parametric: bool
