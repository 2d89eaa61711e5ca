"""LLVM assembly of a kernel of the lane language: NumPy's inner loop over samples, one lane of a vector per sample.

A kernel runs on blocks of 8 (16) samples. Idle lanes of the last block repeat its last sample, so that the bits of a
sample do not depend on its neighbors.
"""

from __future__ import annotations

from ...lanes.form import Kernel
from . import vector_math
from .arithmetic import attributes
from .called import called
from .instructions import Writer
from .lane_statements import Statements
from .memory import release, reserve
from .number_types import LANES
from .writer import Text


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
