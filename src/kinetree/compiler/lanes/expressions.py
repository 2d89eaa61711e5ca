"""Expressions of the lane language (values, blocks of memory, arrays of the caller), and the builder of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from ..ir.program import Program
from .form import (
    WIDE,
    Argument,
    Call,
    Constant,
    EachLane,
    Gathered,
    Kernel,
    Kind,
    Let,
    Loop,
    Meet,
    Memory,
    Operand,
    Put,
    Repeat,
    Statement,
    Store,
    When,
    While,
)

TRUTH = {
    Kind.LANE: Kind.MASK,
    Kind.DOUBLE: Kind.MASK,
    Kind.INDEX: Kind.MASK,
    Kind.MASK: Kind.MASK,
    Kind.SCALAR: Kind.FLAG,
    Kind.COUNT: Kind.FLAG,
    Kind.FLAG: Kind.FLAG,
}
"""The kind of the result of comparing two values, by their kind."""


class Value:
    """A value of a kernel under construction; constants in the same operation take its kind."""

    __slots__ = ("builder", "kind", "operand")

    def __init__(self, builder: Expressions, operand: Operand, kind: Kind) -> None:
        """Refer to a value by its number, or to a constant."""
        self.builder, self.operand, self.kind = builder, operand, kind

    def __add__(self, other: Given) -> Value:
        return self.builder.operate("add", self, other)

    def __radd__(self, other: Given) -> Value:
        return self.builder.operate("add", other, self)

    def __sub__(self, other: Given) -> Value:
        return self.builder.operate("sub", self, other)

    def __rsub__(self, other: Given) -> Value:
        return self.builder.operate("sub", other, self)

    def __mul__(self, other: Given) -> Value:
        return self.builder.operate("mul", self, other)

    def __rmul__(self, other: Given) -> Value:
        return self.builder.operate("mul", other, self)

    def __truediv__(self, other: Given) -> Value:
        return self.builder.operate("div", self, other)

    def __abs__(self) -> Value:
        return self.builder.operate("abs", self)

    def sqrt(self) -> Value:
        """Return the square root."""
        return self.builder.operate("sqrt", self)

    def __lt__(self, other: Given) -> Value:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Given) -> Value:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Given) -> Value:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Given) -> Value:
        return self.builder.compare("ge", self, other)

    def equals(self, other: Given) -> Value:
        """Return whether two values are equal."""
        return self.builder.compare("eq", self, other)

    def __and__(self, other: Given) -> Value:
        return self.builder.operate("and", self, other)

    def __or__(self, other: Given) -> Value:
        return self.builder.operate("or", self, other)

    def __invert__(self) -> Value:
        return self.builder.operate("not", self)

    def where(self, yes: Given, no: Given) -> Value:
        """Return `yes` where this mask or flag is true, `no` elsewhere."""
        return self.builder.select(self, yes, no)

    def __bool__(self) -> bool:
        """Raise TypeError: a value is true or false only when the kernel runs."""
        raise TypeError("a value of a kernel is neither true nor false in Python; use `where`, `when` or `whilst`")


Given: TypeAlias = Value | float
"""A value, or a constant of the same kind: a number, an integer or a boolean."""
Index: TypeAlias = Value | int
"""An index in the kernel, or a constant one."""


class Block:
    """Local memory; `block[index]` reads and writes, for an index of each lane another entry in each lane."""

    def __init__(self, builder: Expressions, memory: Memory) -> None:
        """Refer to the memory."""
        self.builder, self.memory = builder, memory

    def __getitem__(self, index: Index) -> Value:
        at = self.builder.place(index, self.memory)
        return self.builder.let(self.memory.kind, "load", self.memory.name, at)

    def __setitem__(self, index: Index, value: Any) -> None:
        at = self.builder.place(index, self.memory)
        self.builder.add(Store(self.memory.name, at, self.builder.cast(value, self.memory.kind).operand))

    @property
    def value(self) -> Value:
        """The first entry, for a block that is a single variable."""
        return self[0]

    @value.setter
    def value(self, x: Given) -> None:
        self[0] = x


Part: TypeAlias = tuple[Block, int, int]
"""Some entries of a block: it, the first one, and their number."""


class Array:
    """An array of the caller; `array[i, j]` reads the lane's own sample, or the first if all lanes share it."""

    def __init__(self, builder: Expressions, argument: Argument) -> None:
        """Refer to the argument."""
        self.builder, self.argument = builder, argument

    def _places(self, indices: Index | tuple[Index, ...]) -> list[Value]:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.argument.shape):
            raise TypeError(
                f"{self.argument.name} has {len(self.argument.shape)} axes, but {len(given)} indices are given"
            )
        return [x if isinstance(x, Value) else self.builder.constant(x, Kind.COUNT) for x in given]

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Value:
        places = self._places(indices)
        operands = (self.argument.name, *(x.operand for x in places))
        if self.argument.shared:
            own = any(not x.kind.uniform for x in places)
            return self.builder.let(Kind.LANE if own else Kind.SCALAR, "shared", *operands)
        self.builder.only_in_lane(self.argument.name)
        return self.builder.let(self.kind, "own", *operands)

    @property
    def kind(self) -> Kind:
        """The kind of the entries of a sample."""
        return Kind.DOUBLE if self.argument.type == "float64" else Kind.LANE

    def __setitem__(self, indices: Index | tuple[Index, ...], value: Given) -> None:
        self.builder.only_in_lane(self.argument.name)
        places = tuple(x.operand for x in self._places(indices))
        self.builder.add(Put(self.argument.name, places, self.builder.cast(value, self.kind).operand))


class Expressions:
    """The part of a kernel under construction that values use: it appends operations and checks kinds."""

    def __init__(self) -> None:
        """Start without statements."""
        self._bodies: list[list[Statement]] = [[]]
        self._count, self._in_lane = 0, False

    def add(self, statement: Statement) -> None:
        """Append a statement."""
        self._bodies[-1].append(statement)

    def let(self, kind: Kind, op: str, *args: Operand | str) -> Value:
        """Append an operation and return its value."""
        self._count += 1
        self.add(Let(self._count, kind, op, args))
        return Value(self, self._count, kind)

    def constant(self, x: float | bool, kind: Kind) -> Value:
        """Return a constant as a value."""
        made = float(x) if kind in (Kind.LANE, Kind.SCALAR, Kind.DOUBLE) else x
        return Value(self, Constant(kind, made), kind)

    def cast(self, x: Given, kind: Kind) -> Value:
        """Convert a value or constant to a kind; a uniform value is copied to every lane."""
        if not isinstance(x, Value):
            return self.constant(x, kind)
        if x.kind is kind:
            return x
        if WIDE.get(x.kind) is not kind:
            raise TypeError(f"the value is a {x.kind}; expected a {kind}")
        return self.let(kind, "splat", x.operand)

    def common(self, *given: Given) -> tuple[Kind, list[Value]]:
        """Convert values, some of which may be constants, to one kind."""
        kinds = [x.kind for x in given if isinstance(x, Value)]
        kind = next((k for k in kinds if not k.uniform), kinds[0])
        return kind, [self.cast(x, kind) for x in given]

    def operate(self, op: str, *given: Given) -> Value:
        """Append an operation whose result has the kind of its operands."""
        kind, values = self.common(*given)
        return self.let(kind, op, *(x.operand for x in values))

    def compare(self, op: str, *given: Given) -> Value:
        """Append a comparison."""
        kind, values = self.common(*given)
        return self.let(TRUTH[kind], op, *(x.operand for x in values))

    def select(self, condition: Value, yes: Given, no: Given) -> Value:
        """Append a choice; at least one of `yes` and `no` is a value, not a constant."""
        kind, values = self.common(yes, no)
        if not condition.kind.uniform and kind.uniform:
            kind = WIDE[kind]
            values = [self.cast(x, kind) for x in values]
        return self.let(kind, "select", condition.operand, *(x.operand for x in values))

    def choose(self, index: Value, values: Sequence[Given]) -> Value:
        """Return the value at a uniform index: of a table of constants, or by selects among a few other values."""
        numbers = [x for x in values if not isinstance(x, Value)]
        if len(numbers) == len(values):
            table = (self.constant(x, Kind.SCALAR).operand for x in numbers)
            return self.let(Kind.SCALAR, "choose", index.operand, *table)
        chosen = values[-1]
        for i in reversed(range(len(values) - 1)):
            chosen = self.select(index.equals(i), values[i], chosen)
        assert isinstance(chosen, Value)
        return chosen

    def any(self, mask: Value) -> Value:
        """Return whether a mask holds in any lane."""
        return self.let(Kind.FLAG, "any", mask.operand)

    def number(self, count: Value) -> Value:
        """Return a count as a number."""
        return self.let(Kind.SCALAR, "number", count.operand)

    def whole(self, x: Value) -> Value:
        """Return a number as a count, rounded toward zero; it must be below 2^63."""
        return self.let(Kind.COUNT, "whole", x.operand)

    def round(self, x: Value) -> Value:
        """Return a DOUBLE in the precision of the kernel."""
        return self.let(Kind.LANE, "round", x.operand)

    def bits(self, x: Value) -> Value:
        """Return the bit pattern of a number as a number."""
        return self.operate("bits", x)

    def unbits(self, x: Value) -> Value:
        """Return the number with a bit pattern, the reverse of `bits`."""
        return self.operate("unbits", x)

    def extent(self) -> Value:
        """Return the length of the axis t."""
        return self.let(Kind.COUNT, "extent")

    def integer(self, index: Index) -> Operand:
        """Return a uniform index, which all lanes share."""
        return self.cast(index, Kind.COUNT).operand

    def place(self, index: Index, memory: Memory) -> Operand:
        """Return an index of a block: uniform, or one per lane where the block has entries per lane."""
        if isinstance(index, Value) and index.kind is Kind.INDEX and not memory.kind.uniform:
            return index.operand
        return self.integer(index)

    def only_in_lane(self, name: str) -> None:
        """Raise TypeError for access to a lane's own sample outside `each_lane`."""
        if not self._in_lane:
            raise TypeError(f"{name} can be read and written only inside each_lane")


# --- The builder of kernels in Python: arguments, memory, and `with` blocks for nested statements ---


class Turn:
    """One iteration of `repeat`; `again` is the condition for another one."""

    again: Value


class Builder(Expressions):
    """A kernel under construction: its arguments, its memory, and its statements in order."""

    def __init__(self, name: str, programs: dict[str, Program]) -> None:
        """Start an empty kernel that calls Programs by name."""
        super().__init__()
        self.name, self.programs = name, programs
        self._arguments: list[Argument] = []
        self._memory: list[Memory] = []

    def kernel(self) -> Kernel:
        """Return the finished kernel."""
        assert len(self._bodies) == 1, "a block of the kernel is still open"
        programs = tuple(self.programs.items())
        return Kernel(self.name, tuple(self._arguments), programs, tuple(self._memory), tuple(self._bodies[0]))

    def array(self, name: str, *shape: int | str, output: bool = False, shared: bool = False, type: str = "") -> Array:
        """Declare the next argument: inputs first, then outputs."""
        self._arguments.append(Argument(name, shape, output, shared, type))
        return Array(self, self._arguments[-1])

    def block(self, name: str, size: int = 1, kind: Kind = Kind.LANE) -> Block:
        """Declare local memory, with a name of its own."""
        assert all(m.name != name for m in self._memory), f"two blocks of the kernel {self.name} are named {name}"
        self._memory.append(Memory(name, kind, size))
        return Block(self, self._memory[-1])

    def call(self, program: str, source: Block, target: Block, first: Any = 0) -> None:
        """Append the call of a Program; its outputs are written to `target` from entry `first`."""
        self.add(Call(program, source.memory.name, target.memory.name, self.integer(first)))

    def meet(self) -> None:
        """Append a place that the threads of a block leave together."""
        self.add(Meet())

    @contextmanager
    def loop(self, stop: Any) -> Iterator[Value]:
        """Nest statements that run for each value of a counter below `stop`."""
        end = self.integer(stop)
        self._count += 1
        counter = self._count
        with self._nested() as body:
            yield Value(self, counter, Kind.COUNT)
        self.add(Loop(counter, end, tuple(body)))

    @contextmanager
    def repeat(self) -> Iterator[Turn]:
        """Nest statements that run once, and again while `turn.again` holds."""
        turn = Turn()
        with self._nested() as body:
            yield turn
        self.add(Repeat(tuple(body), self._decided(turn.again)))

    @contextmanager
    def whilst(self, test: Callable[[], Value]) -> Iterator[None]:
        """Nest statements that run while a condition holds; `test` appends its evaluation and returns it."""
        with self._nested() as tested:
            condition = test()
        with self._nested() as body:
            yield
        self.add(While(tuple(tested), self._decided(condition), tuple(body)))

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Nest statements that run if a condition holds."""
        with self._nested() as body:
            yield
        self.add(When(self._decided(condition), tuple(body)))

    @contextmanager
    def gathered(self, mask: Block, takes: Sequence[Part], gives: Sequence[Part]) -> Iterator[None]:
        """Nest statements that run if a mask holds in any lane, and may run for such lanes of several blocks together.

        `takes` are all entries that the statements read before they write them, and `gives` those that are read
        afterwards: blocks with a first entry and a number. In other lanes, the statements must leave the latter alone.
        """
        condition = self.any(mask.value)
        with self._nested() as body:
            yield
        taken, given = (tuple((b.memory.name, first, n) for b, first, n in parts) for parts in (takes, gives))
        gathered = Gathered(mask.memory.name, taken, given)
        self.add(When(self._decided(condition), tuple(body), gathered))

    @contextmanager
    def each_lane(self) -> Iterator[None]:
        """Nest statements that run for each lane separately."""
        assert not self._in_lane, "each_lane inside each_lane"
        self._in_lane = True
        with self._nested() as body:
            yield
        self._in_lane = False
        self.add(EachLane(tuple(body)))

    def _decided(self, condition: Value) -> Operand:
        """Return the operand of a condition: uniform, or inside `each_lane` of one lane."""
        if condition.kind is Kind.FLAG or (self._in_lane and condition.kind is Kind.MASK):
            return condition.operand
        raise TypeError(f"the condition is a {condition.kind}; outside each_lane it must be a flag, such as any(mask)")

    @contextmanager
    def _nested(self) -> Iterator[list[Statement]]:
        self._bodies.append([])
        yield self._bodies[-1]
        self._bodies.pop()
