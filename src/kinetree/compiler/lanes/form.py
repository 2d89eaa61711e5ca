"""The intermediate representation of the lane language: a kernel as nested statements, which targets read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ..ir.program import Program


class Kind(StrEnum):
    """The kind of a value: a number, a boolean or an integer, per lane or uniform.

    DOUBLE is a number per lane in float64, whatever the precision of the kernel.
    """

    LANE = "lane"
    DOUBLE = "double"
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
    """A number, boolean or integer that is fixed when the kernel is built."""

    kind: Kind
    value: float | int | bool


Operand = int | Constant
"""The index of a value, or a constant."""

OPERATIONS = (
    "add", "sub", "mul", "div", "abs", "sqrt",
    "lt", "le", "gt", "ge", "eq", "and", "or", "not", "select", "choose", "any",
    "splat", "number", "whole", "round", "bits", "unbits",
    "load", "own", "shared", "extent",
)  # fmt: skip
"""The operations of `Let`.

Comparisons with NaN are false. `choose` takes an index and the constants of a table. `splat` copies a uniform value
to every lane. `number` and `whole` convert counts to scalars and back, the latter rounded toward zero. `round` gives
a DOUBLE the precision of the kernel. `bits` is the bit pattern of a number, read as a signed integer and converted to
a number, `unbits` the reverse. `load` takes the name of a memory block and an index, uniform or of each lane. `own`
and `shared` take the name of an argument and indices in the lane's own sample or in the first. `extent` is the length
of axis `t`. A product may be fused with a sum only where a lane runs alone, as on a graphics card.
"""


@dataclass(frozen=True)
class Let:
    """The computation of a value; `to` is its index."""

    to: int
    kind: Kind
    op: str
    args: tuple[Operand | str, ...]

    @property
    def array(self) -> str:
        """The memory or the array of which an operation reads an entry."""
        return str(self.args[0])

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands: the indices of the entry if an operation reads one, otherwise all arguments."""
        return tuple(x for x in self.args if not isinstance(x, str))


@dataclass(frozen=True)
class Store:
    """A write into the kernel's memory; with an index per lane, each lane writes its own entry."""

    memory: str
    index: Operand
    value: Operand


@dataclass(frozen=True)
class Put:
    """A write into an output of the lane's own sample, only inside `EachLane`."""

    argument: str
    indices: tuple[Operand, ...]
    value: Operand


@dataclass(frozen=True)
class Call:
    """The call of a Program for all lanes; its inputs are consecutive in one block, its outputs are written to another.

    The outputs begin at the entry `first`, a count.
    A target may replace angles in the input block by equal ones within one revolution.
    """

    program: str
    source: str
    target: str
    first: Operand


@dataclass(frozen=True)
class Loop:
    """Statements that run for each value of a counter 0, 1, ... below `stop`."""

    counter: int
    stop: Operand
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Repeat:
    """Statements that run once, and again while a condition holds that they compute."""

    body: tuple[Statement, ...]
    again: Operand


@dataclass(frozen=True)
class While:
    """Statements that run while a condition holds that `test` computes."""

    test: tuple[Statement, ...]
    condition: Operand
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Gathered:
    """Lanes of a mask that a target may gather from several blocks, so that all lanes of a vector have work.

    The statements inside read entries that they have not written only of `takes`, and only entries of `gives` are read
    afterwards: names of memory of numbers, the first entries, and their numbers. The mask is true in gathered lanes.
    """

    mask: str
    takes: tuple[tuple[str, int, int], ...]
    gives: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class When:
    """Statements that run if a condition holds; with `gathered`, if a mask holds in any lane, and for its lanes alone.

    Lanes outside of the mask keep the entries that `gathered` gives.
    """

    condition: Operand
    body: tuple[Statement, ...]
    gathered: Gathered | None = None


@dataclass(frozen=True)
class EachLane:
    """Statements that run for each lane separately, on the values of that lane."""

    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Meet:
    """A place that the threads of a block on a graphics card leave together, so that they share the code in its cache.

    All samples must reach it as often; elsewhere it has no effect.
    """


Statement = Let | Store | Put | Call | Loop | Repeat | While | When | EachLane | Meet


@dataclass(frozen=True)
class Argument:
    """An array of the caller: its shape per sample, with "t" for the axis of times.

    Of a `shared` array, only the first sample is read. Outputs are written by `Put` only. `type` is that of the entries
    in memory, one of TYPES, where it is not the precision of the kernel; on the CPU, kernels have arrays of numbers.
    """

    name: str
    shape: tuple[int | str, ...]
    output: bool = False
    shared: bool = False
    type: str = ""


TYPES = ("float64", "float32", "int64", "bool")
"""The types of entries of arrays. Those of float64 are read and written as DOUBLE, all others as LANE; true is 1."""


@dataclass(frozen=True)
class Memory:
    """Local memory of a kernel: a block of values of one kind, not initialized."""

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
        """A digest of the whole kernel."""
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
        """The core dimensions in the notation of NumPy, such as (6),(6),(t),()->(t,6),(t,6)."""
        shapes = ["(" + ",".join(map(str, a.shape)) + ")" for a in self.arguments]
        inputs = self.arity[0]
        return ",".join(shapes[:inputs]) + "->" + ",".join(shapes[inputs:])

    @property
    def dimensions(self) -> tuple[int | str, ...]:
        """The distinct core dimensions in the order of their first appearance."""
        return tuple(dict.fromkeys(d for a in self.arguments for d in a.shape))


# --- Visits of the statements of a kernel, for targets and checks: one by one, all that are nested, and their
# operands.

METHODS = {
    Let: "let",
    Store: "store",
    Put: "put",
    Call: "call",
    Loop: "loop",
    Repeat: "repeat",
    While: "while_",
    When: "when",
    EachLane: "each_lane",
    Meet: "meet",
}
"""The method of a visitor for each kind of statement, which is its only argument."""


def visit(visitor: object, body: Iterable[Statement]) -> None:
    """Call the method of each statement in order; statements inside of others are left to these methods."""
    for statement in body:
        getattr(visitor, METHODS[type(statement)])(statement)


def nested_statements(s: Statement) -> tuple[Statement, ...]:
    """Return the statements directly inside of a statement."""
    if isinstance(s, While):
        return (*s.test, *s.body)
    return s.body if isinstance(s, Loop | Repeat | When | EachLane) else ()


def every(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements, each before those inside of it."""
    for s in body:
        yield s
        yield from every(nested_statements(s))


def operands(s: Statement) -> tuple[Operand | str, ...]:
    """Return the operands of a statement itself, without the statements inside of it."""
    match s:
        case Let():
            return s.args
        case Store():
            return (s.index, s.value)
        case Put():
            return (*s.indices, s.value)
        case Call():
            return (s.first,)
        case Loop():
            return (s.stop,)
        case Repeat():
            return (s.again,)
        case While() | When():
            return (s.condition,)
        case EachLane() | Meet():
            return ()
