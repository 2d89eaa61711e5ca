"""LLVM assembly of single operations: lines with unique names, and the instruction of each operation that has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from ...ir.operations import Op
from .number_types import Lanes, Scalars

ARITHMETIC = {Op.ADD: "fadd", Op.SUB: "fsub", Op.MUL: "fmul", Op.DIV: "fdiv", Op.NEG: "fneg"}
LOGIC = {Op.AND: "and", Op.OR: "or", Op.NOT: "xor"}

Numbers = TypeVar("Numbers", Lanes, Scalars)


class Writer(Generic[Numbers]):
    """Lines of assembly with unique names."""

    def __init__(self, lanes: Numbers) -> None:
        """Start an empty function body."""
        self.lanes, self.lines, self._next = lanes, [], 0
        self.label = "entry"
        self.used: set[str] = set()

    def new(self, text: str) -> str:
        """Append `name = text` and return the name."""
        self._next += 1
        name = f"%v{self._next}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without result."""
        self.lines.append(f"  {text}")

    def block(self, hint: str) -> str:
        """Return a new label."""
        self._next += 1
        return f"{hint}{self._next}"

    def begin(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def intrinsic(self, name: str, *arguments: str) -> str:
        """Call an LLVM intrinsic on numbers of all samples."""
        full = f"{name}.{self.lanes.suffix}"
        V = self.lanes.vector
        self.used.add(f"declare {V} @{full}({', '.join([V] * len(arguments))})")
        return self.new(f"call {V} @{full}({', '.join(f'{V} {a}' for a in arguments)})")


def instruction(w: Writer, op: Op, x: Sequence[str], flags: str = "") -> str | None:
    """Write an operation on values x as one instruction, and return its name; None if it is a function of a library.

    `flags` are those of floating-point arithmetic.
    """
    V, mask = w.lanes.vector, w.lanes.mask
    if op in ARITHMETIC:
        return w.new(f"{ARITHMETIC[op]} {flags} {V} {', '.join(x)}")
    if op is Op.SQRT:
        return w.intrinsic("llvm.sqrt", x[0])
    if op is Op.LESS:
        return w.new(f"fcmp olt {V} {x[0]}, {x[1]}")
    if op is Op.SELECT:
        return w.new(f"select {mask} {x[0]}, {V} {x[1]}, {V} {x[2]}")
    if op in LOGIC:
        return w.new(f"{LOGIC[op]} {mask} {x[0]}, {w.lanes.true if op is Op.NOT else x[1]}")
    return None
