"""LLVM assembly of a Program's GPU kernels, with one thread per sample.

Both entries take, for each input and then each output, a pointer, the distance between samples and the distance between
entries (both in numbers; 0 between samples: all share one), and last the number of samples. `kernel` takes any
distances. `rows` is for row-major arrays, with distance 1 between entries. Outputs must not overlap inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...ir.program import Program
from ..llvm.instructions import Writer
from ..llvm.number_types import SCALARS
from ..llvm.scalar import OwnFunctions
from .direct import write_direct, write_staged
from .rows import write_rows
from .schedule import most_in_use, scheduled
from .spills import BUDGET
from .staging import WARP, Layout, layout

ENTRIES = ("kernel", "rows")
THREADS = 64
"""The threads of a block, if their shared memory allows it. On an H200, 128 were up to 14 percent slower."""
SHARED_BLOCK = 99 * 1024
"""The shared memory of a block [bytes] above which it has fewer threads: what a block may take on any GPU."""
CROWDED = {8: 120, 4: 280}
"""The inputs and values in use, by the size of a number [bytes], above which inputs are in shared memory.

On an H200, Talos with 208 (inverse dynamics) is faster so in float64, and with 266 (forward) slower in float32."""
WIDE = 100
"""The bytes of the inputs of a sample above which rows are copied together, through shared memory.

Shorter rows stay in the cache while a thread reads them. On an H200, copies cost a four-bar with 36 bytes 15 percent
and a UR5 with 72 bytes 9 percent. Panda with 108 bytes gains 37 percent by them in inverse dynamics."""


def emit(program: Program, dtype: str, entries: Sequence[str] = ENTRIES) -> str:
    """Return the assembly of a module with some of the entries."""
    w = Writer(SCALARS[dtype])
    for entry in entries:
        ordered, places = arranged(program, dtype, entry)
        if places is None:
            write_direct(ordered, w, entry)
        else:
            {"kernel": write_staged, "rows": write_rows}[entry](ordered, w, places)
        w.lines.append("}")
    return "\n".join([*w.lines, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def launch(program: Program, dtype: str, entry: str) -> tuple[int, int]:
    """Return the threads of a block and its dynamic shared memory [bytes]."""
    _, places = arranged(program, dtype, entry)
    if places is None:
        return THREADS, 0
    size, threads = SCALARS[dtype].bits // 8, THREADS
    while threads > WARP and places.bytes(threads, size) > SHARED_BLOCK:
        threads //= 2
    return threads, places.bytes(threads, size)


@lru_cache(maxsize=4)
def arranged(program: Program, dtype: str, entry: str) -> tuple[Program, Layout | None]:
    """Return a Program in the order for an entry, and the layout of its rows in shared memory if it has some.

    Threads read all inputs into registers first, so that they wait for memory once only. If registers are too few for
    the inputs and the values in use, inputs are in shared memory.
    """
    size = SCALARS[dtype].bits // 8
    ordered = scheduled(program) if most_in_use(program) > BUDGET[size] else program
    count = sum(a.size for a in program.inputs)
    crowded = most_in_use(ordered) + count > CROWDED[size]
    if entry == "rows" and (crowded or count * size > WIDE):
        return ordered, layout(ordered, size, rows=True, early=not crowded)
    return ordered, layout(ordered, size, rows=False) if crowded else None
