"""LLVM assembly of kernels of the lane language: NumPy's inner loop over samples, or a function of one sample.

The inner loop runs on blocks of 8 (16) samples, one per lane of a vector. Idle lanes of the last block repeat its last
sample, so that the bits of a sample do not depend on its neighbors.

Kernels with lanes that are gathered run several blocks at once, in phases.
"""

from __future__ import annotations

from ...compiler.ir.program import Program
from ...compiler.lanes.form import (
    Kernel,
)
from . import vector_math
from .arithmetic import arithmetic, attributes, bare_angles, operations, places_of
from .blocks import (
    PARAMETERS,
    check_inputs,
    reduce_angles,
    release,
    reserve,
    scan_entries,
    write_arguments,
)
from .lane_statements import Statements
from .phases import Frames, common_values, divide
from .scalar import Entries, LibraryFunctions
from .writer import LANES, SCALARS, Text, Writer

# --- Programs as functions on blocks of vectors, for kernels that call them ---


def emit_called(program: Program, w: Writer, name: str) -> list[str]:
    """Return the assembly of `name(in, k, bad)`, which reduces large angles and writes the results to k in order.

    `bad` points to two counts of blocks with angles that are not finite. Results are stored as soon as they are
    computed: they must not share memory with the inputs.
    """
    lanes = w.lanes
    w.label = "entry"
    arithmetic(program, w, places=places_of(program))
    body, w.lines = w.lines, []
    t = Text()
    t.put(
        f"define internal void @{name}_body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out) "
        "noinline #0 {",
        "entry:",
        *body,
        "  ret void",
        "}",
        f"define internal void @{name}(ptr %in, ptr %k, ptr %bad) noinline #0 {{",
        "compute:",
    )
    _, angles = bare_angles(program)
    if angles:
        t.put(f"  %top = alloca {lanes.integers}, align 64")
        t.put(f"  store {lanes.integers} zeroinitializer, ptr %top, align 64")
        scan_entries(t, lanes, "%in", angles, "%top")
        check_inputs(t, lanes, f"{name}_reduce")
    t.put(f"  call void @{name}_body(ptr %in, ptr %k)", "  ret void", "}")
    w.used |= t.used
    return [t.text(), reduce_angles(lanes, w, angles, f"{name}_reduce")] if angles else [t.text()]


def emit_lanes(kernel: Kernel, dtype: str) -> str:
    """Return the module's assembly; its function `kernel` is NumPy's inner loop for the kernel's signature."""
    lanes = LANES[dtype]
    w = Writer(lanes)
    parts = [line for name, program in kernel.programs for line in emit_called(program, w, name)]
    t, common = Text(), common_values(kernel.body, {})
    items = divide(kernel.body, common)
    _Frame(kernel, t, Statements(kernel, t, lanes), "kernel" if items is None else "single").write()
    if items is not None:
        more = Text()
        Frames(kernel, more, lanes, items, common).write()
        parts.append(more.text())
        t.used |= more.used
    parts += [t.text(), vector_math.exact_functions(lanes, w), *sorted(w.used | t.used), attributes()]
    return "\n".join(parts)


class _Frame:
    """The code around the statements of a kernel: its arguments, its memory, and the loop over blocks of samples."""

    def __init__(self, kernel: Kernel, t: Text, statements: Statements, name: str) -> None:
        self.kernel, self.t, self.statements, self.name = kernel, t, statements, name

    def write(self) -> None:
        t, lanes = self.t, self.statements.lanes
        t.put(f"define void @{self.name}{PARAMETERS} #0 {{", "entry:")
        workspace = reserve(t, {f"m_{m.name}": self.statements.width(m.kind) * m.size for m in self.kernel.memory})
        write_arguments(self.kernel, t)
        t.put(
            "  br label %head",
            "head:",
            f"  %i = phi i64 [ 0, %{'ready' if workspace else 'entry'} ], [ %next, %after ]",
            "  %more = icmp slt i64 %i, %n",
            "  br i1 %more, label %start, label %done",
            "start:",
        )
        self.statements.write(self.kernel.body)
        t.put("  br label %after", "after:", f"  %next = add i64 %i, {lanes.count}", "  br label %head", "done:")
        if workspace:
            release(t)
        t.put("  ret void", "}")


# --- Kernels for one run per call, as functions of object code ---


def emit_scalar_kernel(kernel: Kernel, dtype: str) -> str:
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
