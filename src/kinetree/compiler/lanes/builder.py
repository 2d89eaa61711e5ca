"""The builder of kernels in Python: arguments, memory, and `with` blocks for nested statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.program import Program
from .expressions import Array, Block, Expressions, Value
from .form import Argument, Call, EachLane, Kernel, Kind, Loop, Memory, Operand, Repeat, Statement, When, While


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

    def array(self, name: str, *shape: int | str, output: bool = False, shared: bool = False) -> Array:
        """Declare the next argument: inputs first, then outputs."""
        self._arguments.append(Argument(name, shape, output, shared))
        return Array(self, self._arguments[-1])

    def block(self, name: str, size: int = 1, kind: Kind = Kind.LANE) -> Block:
        """Declare local memory."""
        self._memory.append(Memory(name, kind, size))
        return Block(self, self._memory[-1])

    def call(self, program: str, source: Block, target: Block, first: Any = 0) -> None:
        """Append the call of a Program; its outputs are written to `target` from entry `first`."""
        self.add(Call(program, source.memory.name, target.memory.name, self.integer(first)))

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
