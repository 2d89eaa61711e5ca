"""An interpreter of Programs as a GPU kernel: small code, compiled soon, for use until a Program's own code is ready.

The entry `steps` takes the arguments of a Program's kernels (entries.py), then the addresses of its steps and of its
constants. All threads of a block run the same step at the same time, each on the numbers of its own sample, which are
in local memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from ...ir.operations import BOOLEANS, OPERATIONS, Op, Type
from ...ir.program import Program
from ..llvm import elementary, vector_math
from ..llvm.instructions import Writer, instruction
from ..llvm.number_types import SCALARS
from ..llvm.scalar import OwnFunctions
from .entries import arranged
from .head import GLOBAL, head, row
from .machine import assemble
from .steps import SIGNS, Steps, steps

ENTRY = "steps"
THREADS = 64
SLOTS = (256, 512, 1024)
"""The numbers of a thread that an interpreter has room for, beyond which there is none.

The driver keeps local memory for all threads that run at the same time: 2.2 GB on an H200 for 1,024 doubles."""


@dataclass(frozen=True)
class Interpreted:
    """An interpreter as PTX, and the two blocks of data that it takes: the steps and the constants."""

    ptx: bytes
    steps: bytes
    constants: bytes


def interpreted(program: Program, dtype: str, entry: str) -> Interpreted | None:
    """Return a Program for interpretation with the bits of an entry; None if it needs too many slots."""
    found = steps(*arranged(program, dtype, entry))
    if found.slots > SLOTS[-1]:
        return None
    return Interpreted(assemble(emit_interpreter(program, found, dtype)), *packed(found, dtype))


def packed(found: Steps, dtype: str) -> tuple[bytes, bytes]:
    """Return the steps, 16 bytes each, and the constants as the interpreter reads them."""
    rows = b"".join(struct.pack("5Hxxxxxx", *step) for step in found.rows)
    kind = {"float64": "d", "float32": "f"}[dtype]
    return rows, struct.pack(f"{len(found.constants)}{kind}", *found.constants)


def emit_interpreter(program: Program, found: Steps, dtype: str) -> str:
    """Return the assembly of a module with the entry."""
    w = Writer(SCALARS[dtype])
    head(program, w, ENTRY, f"{GLOBAL} noalias readonly %steps", f"{GLOBAL} noalias readonly %constants")
    slots = next(n for n in SLOTS if found.slots <= n)
    w.do(f"%slots = alloca [{slots} x {w.lanes.scalar}], align 8")
    _Cases(program, w).write(found.cases, len(found.rows))
    w.lines.append("}")
    return "\n".join([*w.lines, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


class _Cases:
    """The loop over steps and its cases; %d, %a, %b and %c are the slots of a step's result and operands."""

    def __init__(self, program: Program, w: Writer) -> None:
        self.w, self.program, self.count = w, program, len(program.inputs)
        w.used.add("declare i64 @llvm.umin.i64(i64, i64)")
        own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {w.new('sub i64 %n, 1')})")
        self.rows = [row(w, k, own) for k in range(self.count + len(program.outputs))]

    def write(self, cases: tuple[str, ...], count: int) -> None:
        """Write the loop over the steps."""
        w = self.w
        before = w.label
        w.do("br label %loop")
        w.begin("loop")
        w.do(f"%step = phi i64 [ 0, %{before} ], [ %following, %next ]")
        place = w.new(f"getelementptr <8 x i16>, {GLOBAL} %steps, i64 %step")
        fields = w.new(f"load <8 x i16>, {GLOBAL} {place}, align 16")
        case = w.new(f"extractelement <8 x i16> {fields}, i32 0")
        for k, name in enumerate("dabc", 1):
            w.do(f"%{name} = zext i16 {w.new(f'extractelement <8 x i16> {fields}, i32 {k}')} to i64")
        labels = " ".join(f"i16 {k}, label %case{k}" for k in range(len(cases)))
        w.do(f"switch i16 {case}, label %next [ {labels} ]")
        for k, name in enumerate(cases):
            w.begin(f"case{k}")
            self._case(name)
            w.do("br label %next")
        w.begin("next")
        w.do("%following = add i64 %step, 1")
        w.do(f"br i1 {w.new(f'icmp ult i64 %following, {count}')}, label %loop, label %done")
        w.begin("done")
        w.do("ret void")

    def _case(self, name: str) -> None:
        kind, _, number = name.partition(" ")
        if kind == "input" or kind == "output":
            self._entry(kind, int(number))
        elif name in _SPECIAL:
            _SPECIAL[name](self)
        elif name in SIGNS.values():
            self._fused(name)
        else:
            self._operation(Op[name.upper()])

    def slot(self, at: str) -> str:
        """Write the address of a slot."""
        return self.w.new(f"getelementptr {self.w.lanes.scalar}, ptr %slots, i64 {at}")

    def load(self, at: str) -> str:
        """Write the load of a slot."""
        return self.w.new(f"load {self.w.lanes.scalar}, ptr {self.slot(at)}, align {self.w.lanes.bits // 8}")

    def store(self, x: str, at: str = "%d") -> None:
        """Write the store of a number to a slot."""
        self.w.do(f"store {self.w.lanes.scalar} {x}, ptr {self.slot(at)}, align {self.w.lanes.bits // 8}")

    def _entry(self, kind: str, number: int) -> None:
        """Write the load or the store of entry %c of an array."""
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8
        k = number if kind == "input" else self.count + number
        place = w.new(f"getelementptr {S}, {GLOBAL} {self.rows[k]}, i64 {w.new(f'mul i64 %c, %e{k}')}")
        if kind == "input":
            self.store(w.new(f"load {S}, {GLOBAL} {place}, align {size}"))
        else:
            w.do(f"store {S} {self.load('%a')}, {GLOBAL} {place}, align {size}")

    def constant(self) -> None:
        """Write the load of constant %c."""
        w, S = self.w, self.w.lanes.scalar
        place = w.new(f"getelementptr {S}, {GLOBAL} %constants, i64 %c")
        self.store(w.new(f"load {S}, {GLOBAL} {place}, align {w.lanes.bits // 8}"))

    def _fused(self, name: str) -> None:
        w, S = self.w, self.w.lanes.scalar
        a, b, c = map(self.load, ("%a", "%b", "%c"))
        a = w.new(f"fneg {S} {a}") if name in ("fma-product", "fma-both") else a
        c = w.new(f"fneg {S} {c}") if name in ("fma-rest", "fma-both") else c
        self.store(w.intrinsic("llvm.fma", a, b, c))

    def sines(self, guarded: bool) -> None:
        """Write sine and cosine, to slots %d and %c."""
        angle = self.load("%a")
        how = elementary.guarded_sines if guarded else vector_math.sines
        sine, cosine = how(self.w, angle)
        self.store(sine)
        self.store(cosine, "%c")

    def size(self, *, larger: bool) -> None:
        """Write the size of a number, or the larger of it and a size before."""
        w = self.w
        if not larger:
            self.store(w.intrinsic("llvm.fabs", self.load("%a")))
        else:
            self.store(w.intrinsic("llvm.maxnum", self.load("%a"), w.intrinsic("llvm.fabs", self.load("%b"))))

    def reduce(self) -> None:
        """Write an angle, reduced to one revolution if the largest of all angles is beyond the limit of `sines`."""
        w, V = self.w, self.w.lanes.vector
        angle, largest, here = self.load("%a"), self.load("%b"), w.label
        small: list[str] = []
        cold = elementary.if_any_large(w, [largest], lambda: small.append(elementary.call(w, "revolution", [angle])))
        self.store(w.new(f"phi {V} [ {angle}, %{here} ], [ {small[0]}, %{cold} ]"))

    def _operation(self, op: Op) -> None:
        """Write an operation; conditions are numbers, 1 or 0."""
        w, S = self.w, self.w.lanes.scalar
        zero, one = w.lanes.number(0.0), w.lanes.number(1.0)
        kinds = OPERATIONS[op].operands
        x = [self.load(f"%{name}") for name in "abc"[: len(kinds)]]
        x = [w.new(f"fcmp une {S} {a}, {zero}") if k is Type.BOOLEAN else a for a, k in zip(x, kinds, strict=True)]
        found = instruction(w, op, x) or elementary.call(w, op.name.lower(), x)
        self.store(w.new(f"select i1 {found}, {S} {one}, {S} {zero}") if op in BOOLEANS else found)


_SPECIAL: dict[str, Callable[[_Cases], None]] = {
    "constant": _Cases.constant,
    "copy": lambda cases: cases.store(cases.load("%a")),
    "sines": lambda cases: cases.sines(guarded=False),
    "guarded sines": lambda cases: cases.sines(guarded=True),
    "size": lambda cases: cases.size(larger=False),
    "larger": lambda cases: cases.size(larger=True),
    "reduce": _Cases.reduce,
}
