"""LLVM assembly of a Program's GPU kernels, with one thread per sample.

Both entries take, for each input and then each output, a pointer, the distance between samples and the distance between
entries (both in numbers; 0 between samples: all share one), and last the number of samples. `kernel` takes any
distances. `rows` is for row-major arrays, with distance 1 between entries. Outputs must not overlap inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from ..llvm.arithmetic import operations
from ..llvm.scalar import Entries, OwnFunctions
from ..llvm.writer import SCALARS, Writer
from .head import GLOBAL, head, reduce_angles, row
from .rows import write_rows
from .schedule import BUDGET, most_in_use, schedule
from .staging import WARP, Layout, Stage, bare_angles, fused_sums, layout

# --- GPU kernels whose threads access the arrays by themselves, with inputs in registers or in shared memory ---


class _Arrays:
    """The addresses of a thread's sample in all arrays, with any distance between entries."""

    def __init__(self, program: Program, w: Writer, entry: str) -> None:
        """Write the head of an entry; threads beyond the last sample repeat it."""
        head(program, w, entry)
        self.w = w
        w.used.add("declare i64 @llvm.umin.i64(i64, i64)")
        own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {w.new('sub i64 %n, 1')})")
        self.last = {k: (0, row(w, k, own)) for k in range(len(program.inputs) + len(program.outputs))}

    def place(self, k: int, index: int) -> str:
        """Write the address of an entry of array k, from the address of the last one."""
        w, S = self.w, self.w.lanes.scalar
        before, address = self.last[k]
        if index != before:
            step = f"%e{k}" if index == before + 1 else w.new(f"mul i64 %e{k}, {index - before}")
            address = w.new(f"getelementptr {S}, {GLOBAL} {address}, i64 {step}")
            self.last[k] = index, address
        return address

    def load(self, k: int, index: int) -> str:
        """Write the load of an entry of array k."""
        S, size = self.w.lanes.scalar, self.w.lanes.bits // 8
        return self.w.new(f"load {S}, {GLOBAL} {self.place(k, index)}, align {size}")


def write_direct(program: Program, w: Writer, entry: str) -> None:
    """Write an entry that reads all inputs into registers.

    In `rows` the distance between entries is known, but addresses with that constant were slower on an H200.
    """
    arrays = _Arrays(program, w, entry)
    read = sorted(op[1:] for op in program.ops if op[0] is Op.INPUT)
    known: dict[tuple[int, int], str] = {place: arrays.load(*place) for place in read}
    reduce_angles(bare_angles(program, None)[1], w, known)
    _finish(program, w, arrays, lambda *place: known[place], None)


def write_staged(program: Program, w: Writer, places: Layout) -> None:
    """Write the entry for any distances, with inputs that each thread copies to shared memory."""
    arrays = _Arrays(program, w, "kernel")
    stage = Stage(w, places)
    for k, block in enumerate(places.inputs):
        if block is not None:
            for index in range(block.count):
                stage.copy(arrays.place(k, index), stage.own(block.place(index)))
    stage.arrived()

    def load(group: int, index: int) -> str:
        block = places.inputs[group]
        return stage.load(block.place(index)) if block is not None else arrays.load(group, index)

    stage.reduced(bare_angles(program, places)[1])
    _finish(program, w, arrays, load, places, stage.before)


def _finish(
    program: Program,
    w: Writer,
    arrays: _Arrays,
    load: Callable[[int, int], str],
    places: Layout | None,
    before: Callable[[int, list[str]], None] | None = None,
) -> None:
    """Write the arithmetic, with results that are stored as soon as they are known."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, {GLOBAL} {arrays.place(count + group, index)}, align {size}")

    bare, _ = bare_angles(program, places)
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare, before, fused_sums(program, places)))
    w.do("ret void")


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
        ordered, places = arrange(program, dtype, entry)
        if places is None:
            write_direct(ordered, w, entry)
        else:
            {"kernel": write_staged, "rows": write_rows}[entry](ordered, w, places)
        w.lines.append("}")
    return "\n".join([*w.lines, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def launch(program: Program, dtype: str, entry: str) -> tuple[int, int]:
    """Return the threads of a block and its dynamic shared memory [bytes]."""
    _, places = arrange(program, dtype, entry)
    if places is None:
        return THREADS, 0
    size, threads = SCALARS[dtype].bits // 8, THREADS
    while threads > WARP and places.bytes(threads, size) > SHARED_BLOCK:
        threads //= 2
    return threads, places.bytes(threads, size)


@lru_cache(maxsize=4)
def arrange(program: Program, dtype: str, entry: str) -> tuple[Program, Layout | None]:
    """Return a Program in the order for an entry, and the layout of its rows in shared memory if it has some.

    Threads read all inputs into registers first, so that they wait for memory once only. If registers are too few for
    the inputs and the values in use, inputs are in shared memory.
    """
    size = SCALARS[dtype].bits // 8
    ordered = schedule(program) if most_in_use(program) > BUDGET[size] else program
    count = sum(a.size for a in program.inputs)
    crowded = most_in_use(ordered) + count > CROWDED[size]
    if entry == "rows" and (crowded or count * size > WIDE):
        return ordered, layout(ordered, size, rows=True, early=not crowded)
    return ordered, layout(ordered, size, rows=False) if crowded else None
