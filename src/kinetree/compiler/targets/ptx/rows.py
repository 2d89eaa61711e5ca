"""The GPU kernel for row-major arrays, which copies rows through shared memory."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.program import Program
from ..llvm.arithmetic import operations
from ..llvm.instructions import Writer
from ..llvm.scalar import Entries, OwnFunctions
from .choices import bare_angles, fused
from .head import GLOBAL, head, reduce_angles, row
from .stage import Stage
from .staging import Layout
from .warp_rows import WarpRows

Load = Callable[[int, int], str]
"""A function that writes the load of an entry of an input, and returns its name."""


def write_rows(program: Program, w: Writer, places: Layout) -> None:
    """Write the entry for row-major arrays.

    The threads of a warp copy the rows of their samples together, so that neighbors access neighboring addresses.
    """
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    head(program, w, "rows")
    stage = Stage(w, places)
    copies = WarpRows(w, stage)
    for k, block in enumerate(places.inputs):
        if block is not None:
            copies.fetch(k, block)
    stage.arrived()
    stage.meet()
    own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {w.new('sub i64 %n, 1')})")
    direct = {k: row(w, k, own) for k, block in enumerate((*places.inputs, *places.outputs)) if block is None}

    def load(group: int, index: int) -> str:
        block = places.inputs[group]
        if block is not None:
            return stage.load(block.place(index))
        place = w.new(f"getelementptr {S}, {GLOBAL} {direct[group]}, i64 {index}")
        return w.new(f"load {S}, {GLOBAL} {place}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        block = places.outputs[group]
        if block is not None:
            stage.store(block.place(index), x)
        else:
            place = w.new(f"getelementptr {S}, {GLOBAL} {direct[count + group]}, i64 {index}")
            w.do(f"store {S} {x}, {GLOBAL} {place}, align {size}")

    bare, angles = bare_angles(program, places)
    if places.early:
        read = _all_read(program, w, stage, load, angles)
        stage.meet()  # outputs are placed over rows of other threads
    else:
        read = load
        stage.reduced(angles)
    around = Entries(program, w, OwnFunctions(), read, store, bare, stage.before, fused(program, places))
    operations(program, w, around)
    if any(block is not None for block in places.outputs):
        stage.meet()
        copies = WarpRows(w, stage)
    for j, block in enumerate(places.outputs):
        if block is not None:
            copies.deliver(count + j, block)
    w.do("ret void")


def _all_read(program: Program, w: Writer, stage: Stage, load: Load, angles: list[tuple[int, int]]) -> Load:
    """Write the loads of all inputs, with bare angles reduced to one revolution; return a function of their names."""
    known: dict[tuple[int, int], str] = {}
    for k, block in enumerate(stage.places.inputs):
        names = stage.whole_row(block) if block is not None else [load(k, i) for i in range(program.inputs[k].size)]
        known |= {(k, i): name for i, name in enumerate(names)}
    reduce_angles(angles, w, known)
    return lambda group, index: known[group, index]
