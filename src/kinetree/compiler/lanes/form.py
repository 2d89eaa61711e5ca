"""The intermediate form of the lane language: a kernel as nested statements, plain data that targets walk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ..ir.program import Program


class Kind(StrEnum):
    """What a value is: a number, a truth or an integer, of one lane or of all."""

    LANE = "lane"
    MASK = "mask"
    INDEX = "index"
    SCALAR = "scalar"
    FLAG = "flag"
    COUNT = "count"

    @property
    def uniform(self) -> bool:
        """Whether all lanes share the value."""
        return self in WIDE


WIDE = {Kind.SCALAR: Kind.LANE, Kind.FLAG: Kind.MASK, Kind.COUNT: Kind.INDEX}
"""The kind per lane of each uniform kind."""


@dataclass(frozen=True)
class Constant:
    """A number, a truth or an integer that is known when the kernel is written."""

    kind: Kind
    value: float | int | bool


Operand = int | Constant
"""A value by its number, or a constant."""

OPERATIONS = (
    "add", "sub", "mul", "div", "abs", "sqrt",
    "lt", "le", "gt", "ge", "eq", "and", "or", "not", "select", "any",
    "splat", "number", "whole", "bits", "unbits",
    "load", "own", "shared", "extent",
)  # fmt: skip
"""The operations of `Let`.

Comparisons with NaN are false. `splat` gives every lane a uniform value, `number` and `whole` convert counts to
scalars and back, the latter towards zero. `bits` is the bit pattern of a number read as a signed integer and converted
to a number, `unbits` the reverse. `load` takes a name of the memory and an index, `own` and `shared` the name of an
argument and its indices: of the lane's own sample, and of the first sample. `extent` is the length of the axis `t`.
No product is fused with a sum.
"""


@dataclass(frozen=True)
class Let:
    """A value, computed once where it stands; `to` is its number."""

    to: int
    kind: Kind
    op: str
    args: tuple[Operand | str, ...]


@dataclass(frozen=True)
class Store:
    """A write into the kernel's memory."""

    memory: str
    index: Operand
    value: Operand


@dataclass(frozen=True)
class Put:
    """A write into an output of the lane's own sample; inside `EachLane` only."""

    argument: str
    indices: tuple[Operand, ...]
    value: Operand


@dataclass(frozen=True)
class Call:
    """A Program on all lanes: its inputs stand in a block one after the other, its outputs are written to another.

    A target may replace angles in the input block by equal ones within one turn.
    """

    program: str
    source: str
    target: str
    first: int


@dataclass(frozen=True)
class Loop:
    """A body for the counter 0, 1, ... below `stop`."""

    counter: int
    stop: Operand
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Repeat:
    """A body once, and again while the condition holds that it computed."""

    body: tuple[Statement, ...]
    again: Operand


@dataclass(frozen=True)
class While:
    """A body as long as the condition holds that `test` computes."""

    test: tuple[Statement, ...]
    condition: Operand
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class When:
    """A body under a condition."""

    condition: Operand
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class EachLane:
    """A body for every lane by itself, in which values per lane are those of that lane."""

    body: tuple[Statement, ...]


Statement = Let | Store | Put | Call | Loop | Repeat | While | When | EachLane


@dataclass(frozen=True)
class Argument:
    """An array of the caller: its shape per sample, with "t" for the axis of times; of `shared` ones the first counts.

    Outputs are written by `Put` only.
    """

    name: str
    shape: tuple[int | str, ...]
    output: bool = False
    shared: bool = False


@dataclass(frozen=True)
class Memory:
    """Local memory of a kernel: a block of values of one kind, uninitialised at the start."""

    name: str
    kind: Kind
    size: int


@dataclass(frozen=True)
class Kernel:
    """A function of arrays of samples, one run per sample."""

    name: str
    arguments: tuple[Argument, ...]
    programs: tuple[tuple[str, Program], ...]
    memory: tuple[Memory, ...]
    body: tuple[Statement, ...]

    @cached_property
    def hash(self) -> str:
        """A digest of everything that the kernel does."""
        programs = [(name, program.hash) for name, program in self.programs]
        text = repr((self.name, self.arguments, programs, self.memory, self.body))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def arity(self) -> tuple[int, int]:
        """The numbers of inputs and outputs."""
        outputs = sum(a.output for a in self.arguments)
        return len(self.arguments) - outputs, outputs

    @property
    def signature(self) -> str:
        """The core dimensions as NumPy writes them, e.g. (6),(6),(t),()->(t,6),(t,6)."""
        shapes = ["(" + ",".join(map(str, a.shape)) + ")" for a in self.arguments]
        inputs = self.arity[0]
        return ",".join(shapes[:inputs]) + "->" + ",".join(shapes[inputs:])

    @property
    def dimensions(self) -> tuple[int | str, ...]:
        """The distinct core dimensions in the order of their first appearance."""
        return tuple(dict.fromkeys(d for a in self.arguments for d in a.shape))
