"""The target LLVM: vector code for this processor, without a C compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...compiler.rolled.program import RolledUnit, Step
from ..abi import Crew, Entry, Handler
from ..protocol import Unit
from . import vector_math
from .arithmetic import arithmetic, attributes, bare_angles, emit, places_of
from .block_checks import check_inputs, reduce_angles, release, reserve, scan_entries
from .crew_code import emit_crew
from .entries import emit_entry, emit_handler
from .lane_statements import Statements
from .machine import Loaded, compile_assembly, fingerprint
from .number_types import LANES, Writer
from .rolled import emit_maker, emit_rolled
from .writer import Text

# --- LLVM assembly of a kernel of the lane language: NumPy's inner loop over samples, one lane of a vector per
# sample.
#
# A kernel runs on blocks of 8 (16) samples. Idle lanes of the last block repeat its last sample, so that the bits of
# a
# sample do not depend on its neighbors.

# --- Programs as functions on blocks of vectors, for kernels that call them ---


def called(program: Program, w: Writer, name: str) -> list[str]:
    """Return the assembly of `name(in, k, bad)`, which reduces large angles and writes the results to k in order.

    `bad` points to two counts of blocks with angles that are not finite. Results are stored as soon as they are
    computed: their memory must be different from that of the inputs.
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
    parts = [line for name, program in kernel.programs for line in called(program, w, name)]
    t = Text()
    _Frame(kernel, t, Statements(kernel, t, lanes)).write()
    parts += [t.text(), vector_math.exact_functions(lanes, w), *sorted(w.used | t.used), attributes()]
    return "\n".join(parts)


class _Frame:
    """The code around the statements of a kernel: its arguments, its memory, and the loop over blocks of samples."""

    def __init__(self, kernel: Kernel, t: Text, statements: Statements) -> None:
        self.kernel, self.t, self.statements = kernel, t, statements

    def write(self) -> None:
        t, lanes = self.t, self.statements.lanes
        t.put("define void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %bad) #0 {", "entry:")
        workspace = reserve(t, {f"m_{m.name}": self.statements.width(m.kind) * m.size for m in self.kernel.memory})
        t.put("  %n = load i64, ptr %dims", "  %last = sub i64 %n, 1")
        if "t" in self.kernel.dimensions:
            at = 1 + self.kernel.dimensions.index("t")
            t.put(f"  %count = load i64, ptr {t.new(f'getelementptr i64, ptr %dims, i64 {at}')}")
        self._arguments()
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

    def _arguments(self) -> None:
        """Write the loads of pointers and strides: first between samples, then of the core dimensions."""
        t, at = self.t, len(self.kernel.arguments)
        for k, a in enumerate(self.kernel.arguments):
            t.put(f"  %p_{a.name} = load ptr, ptr {t.new(f'getelementptr ptr, ptr %args, i64 {k}')}")
            t.put(f"  %s_{a.name} = load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {k}')}")
            for d in range(len(a.shape)):
                t.put(f"  %c_{a.name}_{d} = load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {at}')}")
                at += 1


EMITTERS: dict[type, Callable[[Any, str], str]] = {
    Program: emit,
    Kernel: emit_lanes,
    RolledUnit: emit_rolled,
    Step: emit_maker,
    Entry: emit_entry,
    Handler: emit_handler,
    Crew: emit_crew,
}


class LLVM:
    """The target of this machine."""

    def fingerprint(self) -> str:
        """Return the processor, its features and the version of LLVM."""
        return fingerprint()

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the assembly of a unit."""
        return EMITTERS[type(unit)](unit, dtype)

    def build(self, source: str) -> bytes:
        """Return the object code of assembly."""
        return compile_assembly(source)

    def load(self, code: bytes) -> Loaded:
        """Link object code into this process."""
        return Loaded(code)
