"""LLVM assembly of a Program's GPU kernels, with one thread per sample.

Both entries take, for each input and then each output, a pointer, the distance between samples and the distance between
entries (both in numbers; 0 between samples: all share one), and last the number of samples. `kernel` takes any
distances. `rows` is for row-major arrays, with distance 1 between entries: each warp copies the rows of its samples
through shared memory, so that neighboring threads access neighboring addresses. Outputs must not overlap inputs.
"""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import elementary
from ..llvm.arithmetic import Writer, operations
from ..llvm.number_types import SCALARS
from ..llvm.scalar import Entries, OwnFunctions
from .head import GLOBAL, bare_angles, head, row
from .rows import write_rows
from .staging import WARP, layout

THREADS = 128
"""The threads of a block."""


def emit(program: Program, dtype: str) -> str:
    """Return the module's assembly."""
    parts, used = [], set()
    for write in (_kernel, write_rows):
        w = Writer(SCALARS[dtype])
        write(program, w)
        parts += [*w.lines, "}"]
        used |= w.used
    w = Writer(SCALARS[dtype])
    w.used = used
    return "\n".join([*parts, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def launch(program: Program, dtype: str, entry: str) -> tuple[int, int]:
    """Return the threads of a block and its dynamic shared memory [bytes]."""
    if entry == "kernel":
        return THREADS, 0
    size = SCALARS[dtype].bits // 8
    places = layout(program, size)
    threads = THREADS
    while threads > WARP and places.bytes(threads, size) > 24 * 1024:
        threads //= 2
    return threads, places.bytes(threads, size)


def _entry(w: Writer, k: int, row: str, index: int) -> str:
    """Write the address of an entry of a sample with any distance between entries."""
    return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} {row}, i64 {w.new(f'mul i64 %e{k}, {index}')}")


def _kernel(program: Program, w: Writer) -> None:
    """Write the entry for any distances."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    head(program, w, "kernel")
    w.do("%inside = icmp slt i64 %i, %n")
    w.do("br i1 %inside, label %go, label %out")
    w.begin("go")
    rows = [row(w, k, "%i") for k in range(count + len(program.outputs))]
    bare, angles = bare_angles(program)
    known: dict[tuple[int, int], str] = {}

    def load(group: int, index: int) -> str:
        if (group, index) not in known:
            known[group, index] = w.new(f"load {S}, {GLOBAL} {_entry(w, group, rows[group], index)}, align {size}")
        return known[group, index]

    def store(group: int, index: int, x: str) -> None:
        k = count + group
        w.do(f"store {S} {x}, {GLOBAL} {_entry(w, k, rows[k], index)}, align {size}")

    if angles:
        small = elementary.within_a_revolution(w, [load(*place) for place in angles])
        known.update(zip(angles, small, strict=True))
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare))
    w.do("br label %out")
    w.begin("out")
    w.do("ret void")
