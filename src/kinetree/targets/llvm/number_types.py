"""The LLVM types of a sample's numbers: vectors with one lane per sample, or scalars of a single sample."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...compiler.ir.operations import Op


@dataclass(frozen=True)
class Lanes:
    """A vector type with as many samples as 64 bytes hold."""

    scalar: str
    bits: int
    count: int

    @property
    def vector(self) -> str:
        """The LLVM type of a vector."""
        return f"<{self.count} x {self.scalar}>"

    @property
    def integers(self) -> str:
        """The LLVM type of integers as wide as the scalars."""
        return f"<{self.count} x i{self.bits}>"

    @property
    def mask(self) -> str:
        """The LLVM type of a comparison's result."""
        return f"<{self.count} x i1>"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsic functions on vectors of this type."""
        return f"v{self.count}f{self.bits}"

    def constant(self, x: float) -> str:
        """Return a vector with the same number in every lane."""
        return f"splat ({self.scalar} {self.number(x)})"

    def whole(self, n: int) -> str:
        """Return a vector with the same integer in every lane."""
        return f"splat (i{self.bits} {n})" if n else "zeroinitializer"

    @property
    def true(self) -> str:
        """The mask that is true in every lane."""
        return "splat (i1 true)"

    def number(self, x: float) -> str:
        """Return a number with every bit kept; a float32 is written as the double it equals."""
        return number(x, self.bits)

    def pattern(self, x: float) -> int:
        """Return the bit pattern of a number as an integer."""
        return pattern(x, self.bits)


@dataclass(frozen=True)
class Scalars:
    """The same interface for one sample, whose numbers are scalars: for processors without vectors, such as GPUs."""

    scalar: str
    bits: int
    count = 1

    @property
    def vector(self) -> str:
        """The LLVM type of a number."""
        return self.scalar

    @property
    def integers(self) -> str:
        """The LLVM type of integers as wide as the numbers."""
        return f"i{self.bits}"

    @property
    def mask(self) -> str:
        """The LLVM type of a comparison's result."""
        return "i1"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsic functions on this type."""
        return f"f{self.bits}"

    def constant(self, x: float) -> str:
        """Return a number."""
        return self.number(x)

    def whole(self, n: int) -> str:
        """Return an integer."""
        return str(n)

    @property
    def true(self) -> str:
        """The true mask."""
        return "true"

    def number(self, x: float) -> str:
        """Return a number with every bit kept; a float32 is written as the double it equals."""
        return number(x, self.bits)

    def pattern(self, x: float) -> int:
        """Return the bit pattern of a number as an integer."""
        return pattern(x, self.bits)


LANES = {"float64": Lanes("double", 64, 8), "float32": Lanes("float", 32, 16)}
SCALARS = {"float64": Scalars("double", 64), "float32": Scalars("float", 32)}


def number(x: float, bits: int) -> str:
    """Return a number with every bit kept; a float32 is written as the double it equals."""
    if bits == 32:
        x = struct.unpack("f", struct.pack("f", x))[0]
    return "0x" + struct.pack(">d", x).hex().upper()


def pattern(x: float, bits: int) -> int:
    """Return the bit pattern of a number as an integer."""
    return int.from_bytes(struct.pack(">d" if bits == 64 else ">f", x))


# --- LLVM assembly of single operations: lines with unique names, and the instruction of each operation that has one.

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
