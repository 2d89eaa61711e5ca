"""LLVM assembly of a kernel of the lane language as a GPU kernel, with one run per thread.

The entry `kernel` takes, for each argument, a pointer, the distance between samples and those of its axes (all in
bytes; 0 between samples: all share one), then the length of the axis t and the number of samples. Its memory is in
registers, because `assemble` of machine.py inlines its Programs and every index is a constant. Only the stages of
methods that keep several are in memory, where a stage is found by its number.
"""

from __future__ import annotations

from ...ir.program import Program
from ...lanes.form import Kernel
from ..llvm import elementary
from ..llvm.arithmetic import operations
from ..llvm.instructions import Writer
from ..llvm.lane_statements import Statements
from ..llvm.number_types import SCALARS
from ..llvm.scalar import Entries, OwnFunctions
from ..llvm.writer import Text
from .choices import bare_angles
from .head import REGISTERS
from .schedule import scheduled


def emit_lanes(kernel: Kernel, dtype: str) -> str:
    """Return the module's assembly."""
    lanes = SCALARS[dtype]
    w, t = Writer(lanes), Text()
    programs = [_program(program, w, name) for name, program in kernel.programs]
    _entry(kernel, t, Statements(kernel, t, lanes))
    w.used |= t.used
    return "\n".join([*programs, t.text(), *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def _program(program: Program, w: Writer, name: str) -> str:
    """Return the function `name(in, k)` of a Program, which is inlined where it is called."""
    program = scheduled(program)
    S, size = w.lanes.scalar, w.lanes.bits // 8
    bare, angles = bare_angles(program, None)
    starts = [sum(a.size for a in program.inputs[:k]) for k in range(len(program.inputs))]
    firsts = [sum(a.size for a in program.outputs[:k]) for k in range(len(program.outputs))]
    known: dict[tuple[int, int], str] = {}

    def load(group: int, index: int) -> str:
        if (group, index) not in known:
            place = w.new(f"getelementptr {S}, ptr %in, i64 {starts[group] + index}")
            known[group, index] = w.new(f"load {S}, ptr {place}, align {size}")
        return known[group, index]

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, ptr {w.new(f'getelementptr {S}, ptr %k, i64 {firsts[group] + index}')}, align {size}")

    w.lines, w.label = [], "entry"
    if angles:
        small = elementary.within_a_revolution(w, [load(*place) for place in angles])
        known.update(zip(angles, small, strict=True))
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare))
    body, w.lines = w.lines, []
    head = f"define internal void @{name}(ptr noalias %in, ptr noalias %k) alwaysinline #0 {{"
    return "\n".join([head, "entry:", *body, "  ret void", "}"])


def _entry(kernel: Kernel, t: Text, statements: Statements) -> None:
    """Write the entry: the memory of a run, the index of its sample, and the statements."""
    parameters = []
    for a in kernel.arguments:
        parameters += [f"ptr noalias {'' if a.output else 'readonly '}%p_{a.name}", f"i64 %s_{a.name}"]
        parameters += [f"i64 %c_{a.name}_{d}" for d in range(len(a.shape))]
    t.put(f"define ptx_kernel void @kernel({', '.join(parameters)}, i64 %count, i64 %n) #0 {{", "entry:")
    for m in kernel.memory:
        t.put(f"  %m_{m.name} = alloca i8, i64 {statements.width(m.kind) * m.size}, align 16")
    for register in REGISTERS:
        t.used.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
        t.put(f"  %{register} = zext i32 {t.new(f'call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()')} to i64")
    t.put(
        f"  %i = add i64 {t.new('mul i64 %ctaid, %ntid')}, %tid",
        "  %inside = icmp slt i64 %i, %n",
        "  br i1 %inside, label %start, label %done",
        "start:",
    )
    statements.write(kernel.body)
    t.put("  br label %done", "done:", "  ret void", "}")
