"""The target of object code: Programs and kernels as C functions for a processor, with sines of its C library."""

from __future__ import annotations

from ....errors import InputError
from ...ir.program import Program
from ...lanes.form import Kernel
from ..protocol import Unit
from .arithmetic import operations
from .child_process import compiled
from .instructions import Writer
from .lane_statements import Statements
from .number_types import SCALARS
from .processors import processor, target_machine
from .scalar import Entries, LibraryFunctions, scalar_function
from .writer import Text


class ObjectCode:
    """Object code for one processor."""

    def __init__(self, name: str) -> None:
        """Choose a processor by name, or by a triple of LLVM; InputError if LLVM does not know it."""
        self.name = name
        target_machine(name)

    def emit(self, unit: Unit, dtype: str) -> bytes:
        """Return the object file of a Program, or of a kernel for one run per call."""
        chosen, layout = processor(self.name), target_machine(self.name).target_data
        head = f'source_filename = "{unit.name}"\ntarget datalayout = "{layout}"\ntarget triple = "{chosen.triple}"\n'  # type: ignore
        return compiled(head + assembly(unit, dtype), chosen.triple, chosen.options)


def assembly(unit: Unit, dtype: str) -> str:
    """Return LLVM assembly that is the same for all processors; its function has the name of the unit."""
    if isinstance(unit, Program):
        return scalar_function(unit, dtype, unit.name, LibraryFunctions())
    if isinstance(unit, Kernel):
        return _kernel(unit, dtype)
    raise InputError(f"object code is not written for a {type(unit).__name__}; use lowering='unrolled'")


def _kernel(kernel: Kernel, dtype: str) -> str:
    """Return the function of a kernel: the number of times, then a pointer to a dense array per argument."""
    scalars = SCALARS[dtype]
    w, t = Writer(scalars), Text()
    programs = [_program(program, w, name) for name, program in kernel.programs]
    statements = Statements(kernel, t, scalars)
    timed = "t" in kernel.dimensions
    arguments = [*(["i32 %nt"] if timed else []), *(f"ptr %p_{a.name}" for a in kernel.arguments)]
    t.put(f"define void @{kernel.name}({', '.join(arguments)}) #0 {{", "entry:")
    for m in kernel.memory:
        t.put(f"  %m_{m.name} = alloca i8, i64 {statements.width(m.kind) * m.size}, align 16")
    t.put("  %i = add i64 0, 0")  # the index of the only sample
    if timed:
        t.put("  %count = sext i32 %nt to i64")
    for a in kernel.arguments:
        t.put(f"  %s_{a.name} = add i64 0, 0")
        step = scalars.bits // 8
        for d in reversed(range(len(a.shape))):
            t.put(f"  %c_{a.name}_{d} = add i64 0, {step}")
            step *= int(a.shape[d]) if a.shape[d] != "t" else 1
    statements.write(kernel.body)
    t.put("  ret void", "}")
    declared = sorted(w.used | t.used)
    return "\n".join([*programs, t.text(), *declared, "attributes #0 = { nounwind }"])


def _program(program: Program, w: Writer, name: str) -> str:
    """Return the function of a Program on blocks of inputs and outputs, which the statements of a kernel call."""
    S, size = w.lanes.scalar, w.lanes.bits // 8
    starts = [sum(a.size for a in program.inputs[:k]) for k in range(len(program.inputs))]
    firsts = [sum(a.size for a in program.outputs[:k]) for k in range(len(program.outputs))]

    def load(group: int, index: int) -> str:
        return w.new(f"load {S}, ptr {w.new(f'getelementptr {S}, ptr %in, i64 {starts[group] + index}')}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, ptr {w.new(f'getelementptr {S}, ptr %k, i64 {firsts[group] + index}')}, align {size}")

    w.lines, w.label = [], "entry"
    operations(program, w, Entries(program, w, LibraryFunctions(), load, store), in_memory=True)
    body, w.lines = w.lines, []
    head = f"define internal void @{name}(ptr noalias %in, ptr noalias %k) noinline #0 {{"
    return "\n".join([head, "entry:", *body, "  ret void", "}"])
