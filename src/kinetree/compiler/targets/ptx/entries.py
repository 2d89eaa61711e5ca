"""LLVM assembly of a Program's GPU kernels, with one thread per sample.

Both entries take, for each input and then each output, a pointer, the distance between samples and the distance between
entries (both in numbers; 0 between samples: all share one), and last the number of samples. `kernel` takes any
distances. `rows` is for row-major arrays, with distance 1 between entries: each warp copies the rows of its samples
through shared memory, so that neighboring threads access neighboring addresses. Outputs must not overlap inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.program import Program
from ..llvm import elementary
from ..llvm.arithmetic import Writer, operations
from ..llvm.number_types import SCALARS
from ..llvm.scalar import Entries, OwnFunctions
from .head import GLOBAL, bare_angles, head, row
from .rows import write_rows
from .schedule import scheduled
from .stage import Stage
from .staging import WARP, layout

ENTRIES = ("kernel", "rows")
THREADS = 128
"""The threads of a block, if their shared memory allows it."""
SHARED_BLOCK = 24 * 1024
"""The shared memory of a block [bytes] above which it has fewer threads."""
STAGED = 48
"""The number of input entries from which threads keep them in shared memory, because registers are scarce."""


def emit(program: Program, dtype: str, entries: Sequence[str] = ENTRIES) -> str:
    """Return the assembly of a module with some of the entries."""
    program = scheduled(program)
    w = Writer(SCALARS[dtype])
    writers = {"kernel": _staged_kernel if _is_staged(program) else _kernel, "rows": write_rows}
    for entry in entries:
        writers[entry](program, w)
        w.lines.append("}")
    return "\n".join([*w.lines, *OwnFunctions().definitions(w), "attributes #0 = { nounwind }\n"])


def launch(program: Program, dtype: str, entry: str) -> tuple[int, int]:
    """Return the threads of a block and its dynamic shared memory [bytes]."""
    size = SCALARS[dtype].bits // 8
    if entry == "rows":
        places = layout(scheduled(program), size, outputs=True)
    elif _is_staged(program):
        places = layout(scheduled(program), size, outputs=False)
    else:
        return THREADS, 0
    threads = THREADS
    while threads > WARP and places.bytes(threads, size) > SHARED_BLOCK:
        threads //= 2
    return threads, places.bytes(threads, size)


def _is_staged(program: Program) -> bool:
    return sum(a.size for a in program.inputs) >= STAGED


def _begin(program: Program, w: Writer) -> list[str]:
    """Write the head of `kernel` and the exit of threads without a sample; return the addresses of samples."""
    head(program, w, "kernel")
    w.do("%inside = icmp slt i64 %i, %n")
    w.do("br i1 %inside, label %go, label %out")
    w.begin("go")
    return [row(w, k, "%i") for k in range(len(program.inputs) + len(program.outputs))]


def _entry(w: Writer, k: int, row: str, index: int) -> str:
    """Write the address of an entry of a sample with any distance between entries."""
    return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} {row}, i64 {w.new(f'mul i64 %e{k}, {index}')}")


def _kernel(program: Program, w: Writer) -> None:
    """Write the entry for any distances, with inputs in registers."""
    S, size = w.lanes.scalar, w.lanes.bits // 8
    rows = _begin(program, w)
    bare, angles = bare_angles(program)
    known: dict[tuple[int, int], str] = {}

    def load(group: int, index: int) -> str:
        if (group, index) not in known:
            known[group, index] = w.new(f"load {S}, {GLOBAL} {_entry(w, group, rows[group], index)}, align {size}")
        return known[group, index]

    if angles:
        small = elementary.within_a_revolution(w, [load(*place) for place in angles])
        known.update(zip(angles, small, strict=True))
    _finish(program, w, rows, load, bare)


def _staged_kernel(program: Program, w: Writer) -> None:
    """Write the entry for any distances, with inputs that each thread copies to its row in shared memory."""
    S, size = w.lanes.scalar, w.lanes.bits // 8
    rows = _begin(program, w)
    places = layout(program, size, outputs=False)
    stage = Stage(w, places)
    for k, at in enumerate(places.inputs):
        if at is not None:
            for index in range(program.inputs[k].size):
                stage.copy(_entry(w, k, rows[k], index), stage.own(at + index))
    stage.arrived()

    def load(group: int, index: int) -> str:
        at = places.inputs[group]
        if at is not None:
            return stage.load(at + index)
        return w.new(f"load {S}, {GLOBAL} {_entry(w, group, rows[group], index)}, align {size}")

    _finish(program, w, rows, load, stage.reduced(program), stage.before)


def _finish(
    program: Program,
    w: Writer,
    rows: list[str],
    load: Callable[[int, int], str],
    bare: set[int],
    before: Callable[[int, list[str]], None] | None = None,
) -> None:
    """Write the arithmetic, with results that are stored as soon as they are known."""
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)

    def store(group: int, index: int, x: str) -> None:
        k = count + group
        w.do(f"store {S} {x}, {GLOBAL} {_entry(w, k, rows[k], index)}, align {size}")

    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare, before))
    w.do("br label %out")
    w.begin("out")
    w.do("ret void")
