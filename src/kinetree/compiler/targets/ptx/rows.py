"""The GPU kernel for row-major arrays, which copies rows through shared memory."""

from __future__ import annotations

from ...ir.program import Program
from ..llvm.arithmetic import Writer, operations
from ..llvm.scalar import Entries, OwnFunctions
from .head import GLOBAL, head, row
from .phases import in_phase
from .stage import Stage
from .staging import WARP, Layout
from .warp_rows import WarpRows


def write_rows(program: Program, w: Writer, places: Layout) -> None:
    """Write the entry for row-major arrays.

    The threads of a warp copy the rows of their samples together, so that neighbors access neighboring addresses.
    """
    S, size, count = w.lanes.scalar, w.lanes.bits // 8, len(program.inputs)
    head(program, w, "rows")
    stage = Stage(w, places)
    # Warps and threads beyond the last sample repeat it, so that no thread is missing at barriers.
    w.used.add("declare i64 @llvm.umin.i64(i64, i64)")
    last = w.new("sub i64 %n, 1")
    begin = w.new(f"sub i64 %i, {w.new('zext i32 %lane to i64')}")
    w.do(f"%first = call i64 @llvm.umin.i64(i64 {begin}, i64 {last})")
    rest = w.new("sub i64 %n, %first")
    w.do(f"%valid = trunc i64 {w.new(f'call i64 @llvm.umin.i64(i64 {rest}, i64 {WARP})')} to i32")
    rows = WarpRows(w, stage)
    for k, at in enumerate(places.inputs):
        if at is not None:
            rows.fetch(k, program.inputs[k].size, at)
    stage.arrived()
    stage.meet()
    own = w.new(f"call i64 @llvm.umin.i64(i64 %i, i64 {last})")
    direct = {k: row(w, k, own) for k, at in enumerate((*places.inputs, *places.outputs)) if at is None}

    def load(group: int, index: int) -> str:
        at = places.inputs[group]
        if at is not None:
            return stage.load(at + index)
        place = w.new(f"getelementptr {S}, {GLOBAL} {direct[group]}, i64 {index}")
        return w.new(f"load {S}, {GLOBAL} {place}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        at = places.outputs[group]
        if at is not None:
            stage.store(at + index, x)
        else:
            place = w.new(f"getelementptr {S}, {GLOBAL} {direct[count + group]}, i64 {index}")
            w.do(f"store {S} {x}, {GLOBAL} {place}, align {size}")

    bare = stage.reduced(program)
    before = in_phase(program, w, stage.before)
    operations(program, w, Entries(program, w, OwnFunctions(), load, store, bare, before))
    if any(at is not None for at in places.outputs):
        stage.meet()
    for j, at in enumerate(places.outputs):
        if at is not None:
            rows.deliver(count + j, program.outputs[j].size, at)
    w.do("ret void")
