"""Writing LLVM assembly: the types of a sample's numbers, and lines with unique names, loops and branches.

Numbers are vectors with one lane per sample, or scalars of a single sample.
"""

from __future__ import annotations

import platform
import re
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ...compiler.ir.operations import Op
from .. import abi


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

    `flags` are the flags of floating-point arithmetic.
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


# --- Functions with loops and branches ---


class Text:
    """The lines of one function."""

    def __init__(self) -> None:
        """Start without lines."""
        self.lines: list[str] = []
        self.used: set[str] = set()
        self._next = 0

    def put(self, *lines: str) -> None:
        """Append lines without changes."""
        self.lines.extend(lines)

    def new(self, text: str) -> str:
        """Append `name = text` and return the name."""
        name = f"%x{self._tag()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def loop(self, stop: int | str, step: int, body: Callable[[str], object]) -> None:
        """Write a loop over 0, step, ... below stop that runs at least once; `body` takes the name of the counter."""

        def alone(counter: str, _: list[str]) -> list[str]:
            body(counter)
            return []

        self.fold(stop, "", [], alone, step=step)

    def fold(
        self,
        stop: int | str,
        kind: str,
        values: list[str],
        body: Callable[[str, list[str]], list[str]],
        *,
        step: int = 1,
    ) -> list[str]:
        """Write a loop over 0, step, ... below stop that runs at least once and passes values on; return the last ones.

        `body` takes the names of the counter and of the values of one type, and returns the names of the next values.
        """
        tag, before = self._tag(), self.current_block()
        self.put(f"  br label %loop{tag}", f"loop{tag}:")
        place = len(self.lines)
        passed = [f"%p{tag}_{j}" for j in range(len(values))]
        after = body(f"%k{tag}", passed)
        end = self.current_block()
        self.lines[place:place] = [
            f"  %k{tag} = phi i64 [ 0, %{before} ], [ %kn{tag}, %{end} ]",
            *(
                f"  {p} = phi {kind} [ {x}, %{before} ], [ {y}, %{end} ]"
                for p, x, y in zip(passed, values, after, strict=True)
            ),
        ]
        self.put(
            f"  %kn{tag} = add i64 %k{tag}, {step}",
            f"  %km{tag} = icmp slt i64 %kn{tag}, {stop}",
            f"  br i1 %km{tag}, label %loop{tag}, label %end{tag}",
            f"end{tag}:",
        )
        return after

    def repeat(self, body: Callable[[], str]) -> None:
        """Write a loop that runs at least once, and again while the condition that `body` returns holds."""
        tag = self._tag()
        self.put(f"  br label %again{tag}", f"again{tag}:")
        condition = body()
        self.put(f"  br i1 {condition}, label %again{tag}, label %enough{tag}", f"enough{tag}:")

    def while_(self, condition: Callable[[], str], body: Callable[[], object]) -> None:
        """Write a loop that runs while a condition holds."""
        tag = self._tag()
        self.put(f"  br label %test{tag}", f"test{tag}:")
        holds = condition()
        self.put(f"  br i1 {holds}, label %do{tag}, label %end{tag}", f"do{tag}:")
        body()
        self.put(f"  br label %test{tag}", f"end{tag}:")

    def if_(self, condition: str, body: Callable[[], object]) -> None:
        """Write code that runs if a condition holds."""
        tag = self._tag()
        self.put(f"  br i1 {condition}, label %then{tag}, label %end{tag}", f"then{tag}:")
        body()
        self.put(f"  br label %end{tag}", f"end{tag}:")

    def either(self, condition: str, yes: Callable[[], object], no: Callable[[], object]) -> None:
        """Write code that runs if a condition holds, and code that runs otherwise."""
        tag = self._tag()
        self.put(f"  br i1 {condition}, label %then{tag}, label %else{tag}", f"then{tag}:")
        yes()
        self.put(f"  br label %end{tag}", f"else{tag}:")
        no()
        self.put(f"  br label %end{tag}", f"end{tag}:")

    def require(self, condition: str, otherwise: str) -> None:
        """Write a branch to the block `otherwise` unless a condition holds."""
        tag = self._tag()
        self.put(f"  br i1 {condition}, label %go{tag}, label %{otherwise}", f"go{tag}:")

    def _tag(self) -> str:
        """Return a number for the next names."""
        self._next += 1
        return str(self._next)

    def current_block(self) -> str:
        """Return the label of the current basic block."""
        for line in reversed(self.lines):
            if line.endswith(":"):
                return line[:-1]
        return "entry"

    def text(self) -> str:
        """Return all lines as text."""
        return "\n".join(self.lines)


# --- The floating-point exception flags of the processor, which NumPy reads after every call ---

ALL = {
    "x86_64": 0x3D,
    "amd64": 0x3D,
    "aarch64": 0x1F,
    "arm64": 0x1F,
    "riscv64": 0x1F,
    "ppc64le": 0x3E000000,
    "s390x": 0x00F80000,
}
"""FE_ALL_EXCEPT of <fenv.h> by machine: invalid, divide by zero, overflow, underflow, inexact."""
INEXACT = {
    "x86_64": 0x20,
    "amd64": 0x20,
    "aarch64": 0x10,
    "arm64": 0x10,
    "riscv64": 0x01,
    "ppc64le": 0x02000000,
    "s390x": 0x00080000,
}
"""FE_INEXACT of <fenv.h> by machine, which almost every operation raises."""
WINDOWS, INEXACT_ON_WINDOWS = 0x1F, 0x01
"""FE_ALL_EXCEPT and FE_INEXACT of the Universal C Runtime, the same on every machine."""


def all_flags() -> int:
    """Return FE_ALL_EXCEPT of this machine; 0, which clears no flag, on unknown machines."""
    return WINDOWS if sys.platform == "win32" else ALL.get(platform.machine().lower(), 0)


def reported_flags() -> int:
    """Return the flags that NumPy reports: all except inexact; 0 on unknown machines."""
    inexact = INEXACT_ON_WINDOWS if sys.platform == "win32" else INEXACT.get(platform.machine().lower(), 0)
    return all_flags() & ~inexact


def clear_flags(t: Text) -> None:
    """Write a call of feclearexcept for all flags."""
    t.used.add("declare i32 @kt_feclearexcept(i32)")
    t.new(f"call i32 @kt_feclearexcept(i32 {all_flags()})")


# --- Modules that are the same for all kernels: files of this folder, in which $NAME stands for a number of abi.py ---

PAUSE = {"x86_64": ("@llvm.x86.sse2.pause", ""), "aarch64": ("@llvm.aarch64.hint", "i32 1")}
"""The instruction by machine with which a waiting loop leaves the core to its neighbor, as an intrinsic function."""


def constant_module(name: str, **more: int) -> str:
    """Return the assembly of a file, with numbers in place of their names; `more` are numbers that abi.py lacks."""
    function, given = PAUSE.get(platform.machine(), ("", ""))
    known: dict[str, object] = {
        "ALL_FLAGS": all_flags(),
        "REPORTED_FLAGS": reported_flags(),
        "PAUSE_DECLARATION": function and f"declare void {function}({given.partition(' ')[0]})",
        "PAUSE": function and f"call void {function}({given})",
        **more,
    }

    def value(found: re.Match[str]) -> str:
        name, _, member = found[1].partition(".")
        x = known[name] if name in known else getattr(abi, name)
        number = getattr(x, member) if member else x
        return str(int(number)) if isinstance(number, int) else str(number)

    text = Path(__file__).with_name(name).read_text(encoding="ascii")
    return re.sub(r"\$([A-Z]\w*(?:\.\w+)?)", value, text)
