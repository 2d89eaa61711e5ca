"""LLVM assembly of a Program on vectors, with one SIMD lane per sample.

The function `body` does the arithmetic. Its inputs and outputs are blocks of memory with one vector per entry. The
function `kernel` is NumPy's inner loop: it copies rows of samples into such a block (blocks.py), runs the body, and
copies the results back. The remainder of a batch runs through the same body, with its last sample repeated in the idle
lanes, so that the bits of a sample do not depend on its neighbors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ...ir.program import Program
from ...ir.trace import Op
from . import vector_math
from .blocks import kernel

FLAGS = "nsz contract"
"""The flags of floating-point instructions: a product and a sum may be fused.

nnan and ninf are excluded because NaN and infinities must be visible. Reassociation would be allowed, but it made
larger robots slower by about 5 percent."""

BINARY = {Op.ADD: "fadd", Op.SUB: "fsub", Op.MUL: "fmul", Op.DIV: "fdiv"}
BOOLEAN = {Op.AND: "and", Op.OR: "or", Op.NOT: "xor"}


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

    def constant(self, x: float) -> str:
        """Return a vector with the same number in every lane."""
        return f"splat ({self.scalar} {self.number(x)})"

    def number(self, x: float) -> str:
        """Return a number with every bit kept; a float32 is written as the double it equals."""
        if self.bits == 32:
            x = struct.unpack("f", struct.pack("f", x))[0]
        return "0x" + struct.pack(">d", x).hex().upper()

    def pattern(self, x: float) -> int:
        """Return the bit pattern of a number as an integer."""
        return int.from_bytes(struct.pack(">d" if self.bits == 64 else ">f", x))


LANES = {"float64": Lanes("double", 64, 8), "float32": Lanes("float", 32, 16)}


class Writer:
    """Lines of assembly with unique names."""

    def __init__(self, lanes: Lanes) -> None:
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
        """Call an LLVM intrinsic on vectors."""
        full = f"{name}.v{self.lanes.count}f{self.lanes.bits}"
        V = self.lanes.vector
        self.used.add(f"declare {V} @{full}({', '.join([V] * len(arguments))})")
        return self.new(f"call {V} @{full}({', '.join(f'{V} {a}' for a in arguments)})")


def emit(program: Program, dtype: str) -> str:
    """Return the module's assembly."""
    lanes = LANES[dtype]
    w = Writer(lanes)
    arithmetic(program, w)
    parts = [
        "define internal void @body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out) noinline #0 {",
        "entry:",
        *w.lines,
        "  ret void",
        "}",
        kernel(program, lanes, w, bare_angles(program)[1], slots_of(program)),
        vector_math.exact_functions(lanes, w),
        *sorted(w.used),
        attributes(),
    ]
    return "\n".join(parts)


def attributes() -> str:
    """Return the attributes of every function: vectors of 64 bytes if the processor has them."""
    return 'attributes #0 = { "prefer-vector-width"="512" "min-legal-vector-width"="512" nounwind }'


def slots_of(program: Program) -> list[int]:
    """Return the index of each entry of the outputs in the body's output block."""
    slot = {k: j for j, k in enumerate(distinct_results(program))}
    return [slot[k] for entries in program.results for k in entries]


def distinct_results(program: Program) -> list[int]:
    """Return the operations that are results, each once; symmetric matrices and zeros repeat many."""
    return list(dict.fromkeys(k for entries in program.results for k in entries))


def bare_angles(program: Program) -> tuple[set[int], list[int]]:
    """Return the sines and cosines of bare angles, and the indices of these inputs in the block.

    A bare angle is an input that is used only in sines and cosines, with or without an added constant. The kernel may
    therefore reduce large ones to one revolution beforehand.
    """
    ops = program.ops
    users: list[list[int]] = [[] for _ in ops]
    for j, (op, *x) in enumerate(ops):
        if op > Op.CONST:
            for k in x:
                users[k].append(j)
    kept = {k for entries in program.results for k in entries}

    def serves_sines(k: int) -> bool:
        return k not in kept and all(ops[j][0] in (Op.SIN, Op.COS) for j in users[k])

    def is_shift(j: int) -> bool:
        return ops[j][0] in (Op.ADD, Op.SUB) and any(ops[k][0] is Op.CONST for k in ops[j][1:]) and serves_sines(j)

    starts, total = [], 0
    for a in program.inputs:
        starts.append(total)
        total += a.size
    bare, places = set(), []
    for k, op in enumerate(ops):
        if op[0] is not Op.INPUT or k in kept or not users[k]:
            continue
        shifts = [j for j in users[k] if is_shift(j)]
        if all(j in shifts or ops[j][0] in (Op.SIN, Op.COS) for j in users[k]):
            bare |= {k, *shifts}
            places.append(starts[op[1]] + op[2])
    return bare, places


def boolean(w: Writer, op: Op, names: list[str]) -> str:
    """Write a combination of comparisons; "not" is "xor" with true."""
    return w.new(f"{BOOLEAN[op]} {w.lanes.mask} {names[0]}, {names[1] if op is not Op.NOT else 'splat (i1 true)'}")


def arithmetic(program: Program, w: Writer) -> None:
    """Write the operations of a program, from the block %in to the block %out."""
    V, lanes = w.lanes.vector, w.lanes
    offsets, total = [], 0
    for a in program.inputs:
        offsets.append(total)
        total += a.size
    names: list[str] = []
    trig: dict[int, tuple[str, str]] = {}
    bare, _ = bare_angles(program)  # the kernel keeps these within LIMIT
    slots = {k: slot for slot, k in enumerate(distinct_results(program))}

    def load(group: int, index: int) -> str:
        p = w.new(f"getelementptr {V}, ptr %in, i64 {offsets[group] + index}")
        return w.new(f"load {V}, ptr {p}, align 64")

    for op, *x in program.ops:
        if op is Op.INPUT:
            name = load(*x)
        elif op is Op.CONST:
            name = lanes.constant(x[0])
        elif op in BINARY:
            name = w.new(f"{BINARY[op]} {FLAGS} {V} {names[x[0]]}, {names[x[1]]}")
        elif op is Op.NEG:
            name = w.new(f"fneg {FLAGS} {V} {names[x[0]]}")
        elif op is Op.SQRT:
            name = w.intrinsic("llvm.sqrt", names[x[0]])
        elif op in (Op.SIN, Op.COS):
            if x[0] not in trig:
                write = vector_math.sines if x[0] in bare else vector_math.guarded_sines
                trig[x[0]] = write(w, names[x[0]])
            name = trig[x[0]][op is Op.COS]
        elif op is Op.LESS:
            name = w.new(f"fcmp olt {V} {names[x[0]]}, {names[x[1]]}")
        elif op is Op.SELECT:
            name = w.new(f"select {lanes.mask} {names[x[0]]}, {V} {names[x[1]]}, {V} {names[x[2]]}")
        elif op in BOOLEAN:
            name = boolean(w, op, [names[k] for k in x])
        else:
            name = vector_math.by_library(w, op.name.lower(), [names[k] for k in x])
        names.append(name)
        if (
            slot := slots.get(len(names) - 1)
        ) is not None:  # stored immediately, because values in use longer are spilled to the stack
            w.do(f"store {V} {name}, ptr {w.new(f'getelementptr {V}, ptr %out, i64 {slot}')}, align 64")
